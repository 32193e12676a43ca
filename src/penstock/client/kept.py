"""Answers that are kept: by what was asked, up to a bound, and for a while where they may change."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

MAX_KEPT: Final = 10_000


class Kept(Generic[T]):
    """The least used of more than `at_most` are dropped; those older than `for_s` are asked for again. Threads may share it."""

    def __init__(self, for_s: float | None = None, at_most: int = MAX_KEPT) -> None:
        self._for_s = for_s
        self._at_most = at_most
        self._entries: OrderedDict[Hashable, tuple[T, float]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, ask: Callable[[], T]) -> T:
        now_s = time.monotonic()
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and (self._for_s is None or now_s - entry[1] < self._for_s):
                self._entries.move_to_end(key)
                return entry[0]
        value = ask()  # outside the lock: one slow answer holds up nobody who asks for what is kept
        with self._lock:
            self._entries[key] = (value, now_s)
            self._entries.move_to_end(key)
            while len(self._entries) > self._at_most:
                self._entries.popitem(last=False)
        return value
