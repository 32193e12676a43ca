"""The files of a log directory, looked at from outside. No broker is needed. `penstock log` and kafka-dump-log print
what is found here; docs/how-to/check-a-log.md shows programs that use it.

The path through it: `places.look_at` says which logs a directory holds; `verify.check` walks them and yields
`Problem`s; `repair.repair` repairs those that say how. `layout.read_layouts` describes the segments of each log.
`dump.files.dump` yields the contents of a single file as lines, in the form of kafka-dump-log.

Promises: without `repair` nothing is written. Not promised: a picture of one moment while a broker writes.
"""
