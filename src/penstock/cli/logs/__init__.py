"""The files of a log directory, looked at from outside: what `penstock log` does. No broker is needed.

The path through it: `places.look_at` says which logs a directory holds; `verify.check` walks them and yields
`Problem`s; `repair.repair` mends those that say how. `layout` and `picture` are `penstock log show`.

Promises: without `repair` nothing is written. Not promised: a picture of one moment while a broker writes.
"""
