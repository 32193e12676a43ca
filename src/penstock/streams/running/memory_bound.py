"""A plan whose state outgrows its memory ends with a sentence, before the system ends it without one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from penstock.spark.tasks.failures import Hopeless

EACH_S: Final = 0.5
_STATM: Final = Path("/proc/self/statm")


class StateTooLarge(Hopeless):
    """Another attempt would read the same state."""


class MemoryBound:
    """Of the process: tasks that are threads of one process have one bound together. None: there is none."""

    def __init__(self, task: int, max_bytes: int | None) -> None:
        self._task, self._max_bytes = task, max_bytes
        self._next_s = 0.0

    def check(self, entries: Callable[[], int]) -> None:
        if self._max_bytes is None or time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + EACH_S
        used = used_bytes()
        if used is not None and used > self._max_bytes:
            raise StateTooLarge(
                f"the process of task {self._task} takes {used:,} bytes of memory, more than state.memory.max.bytes, "
                f"{self._max_bytes:,}, with {entries():,} entries of state: run it with more tasks, raise the bound, or set "
                "state.store=disk"
            )


def used_bytes() -> int | None:
    """None where the system does not say."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
