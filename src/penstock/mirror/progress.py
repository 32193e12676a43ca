"""How far flows of this process are: told by tasks, read by who shows it."""

from __future__ import annotations

import threading
import time
from typing import ClassVar, NamedTuple

from penstock.model.ids import TopicPartition


class Reached(NamedTuple):
    records: int
    size_bytes: int
    lag: int
    partitions: int
    topics: int


class Progress:
    """Of one flow. Threads may share it."""

    _all: ClassVar[dict[tuple[str, str], Progress]] = {}
    _all_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records = self._size_bytes = 0
        self._next: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        self.changed_s = time.monotonic()

    @classmethod
    def of(cls, source: str, target: str) -> Progress:
        with cls._all_lock:
            return cls._all.setdefault((source, target), cls())

    def wrote(self, records: int, size_bytes: int) -> None:
        with self._lock:
            self._records += records
            self._size_bytes += size_bytes
            self.changed_s = time.monotonic()

    def reached(self, place: TopicPartition, next_offset: int, end: int | None) -> None:
        """In the source."""
        with self._lock:
            self._next[place] = next_offset
            if end is not None:
                self._ends[place] = end

    def forget(self, places: list[TopicPartition]) -> None:
        with self._lock:
            for place in places:
                self._next.pop(place, None)
                self._ends.pop(place, None)

    def kept(self) -> dict[TopicPartition, int]:
        """The next offset of each partition."""
        with self._lock:
            return dict(self._next)

    def now(self) -> Reached:
        with self._lock:
            lag = sum(max(0, end - self._next.get(place, 0)) for place, end in self._ends.items())
            topics = {place.topic for place in self._next}
            return Reached(self._records, self._size_bytes, lag, len(self._next), len(topics))
