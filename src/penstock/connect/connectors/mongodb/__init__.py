"""MongoDB's collections from records, and records from their change streams.

`sink` makes a write of each record and sends them in bulks; `source` copies what is there, if asked to, and follows a change
stream, whose resume token is the source offset. The names of settings are those of MongoDB's own connector. Documents are plain
Python between the two; `documents` turns them into what Connect has.
"""
