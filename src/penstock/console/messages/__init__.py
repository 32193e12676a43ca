"""Messages of a topic: searched, followed, decoded, exported, produced and copied. A library; the pages draw what it gives.

The path of a search: `wanted` ◇ says what is looked for, and refuses what cannot be (a pattern that RE2 has not, a path that is
none). `scan` asks the cluster for the range of each partition, and reads it in rounds, newest or oldest first. `reading` makes
Arrow batches of what the brokers send. `matching` ◇ says which rows are meant, without an object for any of them. `rows` decodes
those few by `decode`, hides what `access.masking` hides, and the best `limit` are kept. `jobs` runs all that in a thread, so that
no event loop waits. `tail` follows the end of a topic the same way.

Promised: memory is bounded by a few answers of a broker and `limit` cut rows, whatever is in the topic. Text, patterns and paths
take time in proportion to the bytes. A search that is cancelled stops within a slice of a few megabytes. What is masked is not
found by looking for it. Not promised: that times within a partition rise. Records are ordered by their times, and a search ends
early where it trusts that later records are newer.
"""
