"""The aborted transactions of a segment, in Kafka's form: what a read_committed reader has to leave out.

One entry of 34 bytes for each abort marker in the segment that ends a transaction with batches in this log: version
(int16, 0), producer id, first offset of the transaction, offset of the marker, and the last stable offset right behind
the marker. Entries are in the order of their markers, so both the marker offsets and the last stable offsets only go up.
    example: producer 7 writes at 100, producer 8 at 101; 8 aborts at 102, then 7 at 103:
    (8, 101, 102, 100) (7, 100, 103, 104): behind marker 102 the transaction at 100 was still open.
Hence a search for what overlaps a range may stop at an entry whose last stable offset has reached the range's end: every
transaction that ends later began there or behind.

Most segments have no such file: it comes with its first entry, and its entries go to the file system one by one, since the
compacting process reads them there. No checksum is attempted: after a crash the file is rebuilt with its segment.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from penstock.runtime.files import Disk

_ENTRY = struct.Struct(">hqqqq")  # version, producer id, first offset, last offset, last stable offset
ENTRY_SIZE = _ENTRY.size
VERSION = 0

_OVERLAP = struct.Struct(">2xqqqq")
_LAST_OFFSET = struct.Struct(">18xq")
_CACHED_BYTES = 64 * 1024
"""What a reader has asked for is kept in memory up to this size of an index."""


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """Where the marker is."""
    last_stable_offset: int


def read_entries(data: bytes) -> Iterator[AbortedTransaction]:
    """Of a file's content; a torn entry at its end is left out."""
    whole = len(data) - len(data) % ENTRY_SIZE
    for fields in _ENTRY.iter_unpack(data[:whole]):
        yield AbortedTransaction(*fields[1:])


def encode(transaction: AbortedTransaction) -> bytes:
    return _ENTRY.pack(VERSION, *transaction)


def find_problem(data: bytes, *, base_offset: int, end_offset: int | None = None) -> str:
    """Why a file cannot be the index of a segment with these offsets; empty when it can."""
    if len(data) % ENTRY_SIZE:
        return f"{len(data)} bytes are no whole number of entries of {ENTRY_SIZE} bytes"
    previous_last = base_offset - 1
    for number, (version, _, first, last, stable) in enumerate(_ENTRY.iter_unpack(data)):
        if version != VERSION:
            return f"unknown version {version} of entry {number}"
        if last <= previous_last or (end_offset is not None and last >= end_offset):
            return f"entry {number} says that offset {last} is a marker of this segment"
        if not 0 <= first < last or not 0 <= stable <= last + 1:
            return f"entry {number} makes no sense: offsets {first} to {last}, last stable offset {stable}"
        previous_last = last
    return ""


class TransactionIndex:
    __slots__ = ("_cached", "_disk", "_file_bytes", "_pending", "path")

    def __init__(self, disk: Disk, path: str, file_bytes: int = 0) -> None:
        self._disk = disk
        self.path = path
        self._file_bytes = file_bytes
        self._pending = b""  # entries that a full disk did not take
        self._cached: bytes | None = b"" if file_bytes == 0 else None

    @property
    def entries_count(self) -> int:
        return (self._file_bytes + len(self._pending)) // ENTRY_SIZE

    def append(self, transaction: AbortedTransaction) -> None:
        """The marker is in the log already, which must not fail any more: what cannot be written waits for `write`."""
        entry = encode(transaction)
        self._pending += entry
        if self._cached is not None:
            self._cached = self._cached + entry if len(self._cached) < _CACHED_BYTES else None
        try:
            self.write()
        except OSError:
            pass

    def write(self) -> bool:
        """Hands what waits to the file system; False when there is nothing."""
        if not self._pending:
            return False
        file = self._disk.open(self.path, create=True)
        try:
            file.append(self._pending)
        finally:
            file.close()
        self._file_bytes += len(self._pending)
        self._pending = b""
        return True

    def load(self) -> None:
        """Into memory, all of it."""
        if self._file_bytes:
            self._disk.read(self.path)

    def entries(self) -> list[AbortedTransaction]:
        return list(read_entries(self._data()))

    def overlapping(self, from_offset: int, up_to_offset: int) -> tuple[list[tuple[int, int]], bool]:
        """(producer id, first offset) of each that ends at or behind from_offset and began below up_to_offset; and whether
        later indexes can have no more of them.
        """
        data = self._data()
        found: list[tuple[int, int]] = []
        for at in range(_first_ending_from(data, from_offset) * ENTRY_SIZE, len(data), ENTRY_SIZE):
            producer_id, first, _, stable = _OVERLAP.unpack_from(data, at)
            if first < up_to_offset:
                found.append((producer_id, first))
            if stable >= up_to_offset:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Keeps only transactions whose marker is below an offset."""
        kept = _first_ending_from(self._data(), offset) * ENTRY_SIZE
        if kept >= self._file_bytes:
            self._pending = self._pending[: kept - self._file_bytes]
        else:
            self._pending = b""
            file = self._disk.open(self.path, create=True)
            try:
                file.truncate(kept)
            finally:
                file.close()
            self._file_bytes = kept
        self._cached = None if kept else b""

    def _data(self) -> bytes:
        data = self._cached
        if data is None:
            data = self._disk.read(self.path)[: self._file_bytes] + self._pending
            if len(data) <= _CACHED_BYTES:
                self._cached = data
        return data


def _first_ending_from(data: bytes, offset: int) -> int:
    """The number of the first entry whose marker is at or behind an offset."""
    low, high = 0, len(data) // ENTRY_SIZE
    while low < high:
        middle = (low + high) // 2
        if _LAST_OFFSET.unpack_from(data, middle * ENTRY_SIZE)[0] < offset:
            low = middle + 1
        else:
            high = middle
    return low
