"""Garbage collection in Spark's Python workers, which would cost more than what they do.

Spark collects after every call of a worker, and a collection looks at all that was ever imported: with pandas, pyarrow
and numba 70 ms, for each task and twice for each micro-batch. What is loaded stays loaded, so it is set aside once.
"""

from __future__ import annotations

import gc

_is_set_aside = False


def set_aside_what_is_loaded() -> None:
    """Once in a process; later calls do nothing. For Spark's workers only: a program's garbage would stay, too."""
    global _is_set_aside
    if not _is_set_aside:
        _is_set_aside = True
        gc.collect()
        gc.freeze()
