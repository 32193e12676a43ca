"""Records on their way into topics: known topics, values in their formats, and the one producer of a login.

`batch.Batch` (v2: a list of records) or `v3.records` (a stream of them) → `known_topics` → `values` → `sender`
"""
