"""The keys of stores.

A row's key, with its window where it has one, is packed (`state_values`). Stores that forget by time have the time in front, as
the number of a bucket, so that what is old is one range:

    bucket (8 bytes)  length of the row's key (4)  row's key  time (8)  [more]

A bucket is half of the retention long, at least a minute. The empty key is a store's own: stream time is kept there.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any, Final

from penstock.streams.kernel.state_values import pack
from penstock.streams.kernel.stores import Store

OWN: Final = b""
FIRST: Final = b"\x00" * 8
MIN_BUCKET_MS: Final = 60_000

_time: Final = Struct(">q")
_head: Final = Struct(">qI")


def row_key(key: tuple[Any, ...], window: tuple[int, int] | None) -> bytes:
    return pack(key) if window is None else pack((key, window))


def time_bytes(time: int) -> bytes:
    return _time.pack(time)


class TimedKeys:
    """Of one store with a retention."""

    def __init__(self, retention_ms: int) -> None:
        self.retention_ms = retention_ms
        self.bucket_ms = max(retention_ms // 2, MIN_BUCKET_MS)
        self._oldest = 0  # the first bucket that may still hold something

    def key(self, row_key: bytes, time: int, more: bytes = b"") -> bytes:
        return _head.pack(time // self.bucket_ms, len(row_key)) + row_key + _time.pack(time) + more

    def between(self, store: Store, row_key: bytes, first: int, last: int) -> Iterator[tuple[bytes, Any]]:
        """Entries of one key, times from `first` to `last`, both included, oldest first."""
        for bucket in range(first // self.bucket_ms, last // self.bucket_ms + 1):
            head = _head.pack(bucket, len(row_key)) + row_key
            yield from store.range(head + _time.pack(first), head + _time.pack(last + 1))

    def forget(self, store: Store, stream_time: int) -> None:
        """Buckets that lie wholly beyond the retention go. Cheap when there is none."""
        oldest = max(stream_time - self.retention_ms, 0) // self.bucket_ms
        if oldest > self._oldest:
            for key, _ in list(store.range(FIRST, _time.pack(oldest))):
                store.put(key, None)
            self._oldest = oldest


class StreamTime:
    """The largest timestamp that a step has seen. It is written to the store when the task is flushed."""

    __slots__ = ("_key", "_store", "_written", "now")

    def __init__(self, store: Store, key: bytes = OWN) -> None:
        self._store, self._key = store, key
        self.now = self._written = store.get(key) if store.get(key) is not None else -1

    def flush(self) -> None:
        if self.now != self._written:
            self._store.put(self._key, self.now)
            self._written = self.now
