"""Log compaction: of each key only the last record stays; order and offsets never change.

The one path through it: the broker asks `choose.dirtiest` which log is worth it and sends a `task.CleaningTask` to
a worker process (`worker.py`), which maps the keys of the dirty part (`key_map.py`), copies what is still the last
of its key into `.cleaned` files (`clean.py`, with the walks of `map_kernels.py` and
`filter_kernels.py`), and says so segment by segment; the
broker swaps each in (`swap.py`).

Promises: the broker never imports numpy or numba, and neither reads nor writes a record for compaction; a crash
between any two steps leaves the old segments or the new ones, never a mixture; a damaged batch stops the cleaning
of its log and changes nothing. Memory is bounded by log.cleaner.dedupe.buffer.size. Not promised: that a log is
free of superseded records at any moment; the active segment is never touched.
"""
