"""The row of segments that make up a log, in order of their base offsets; the last one takes the appends."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import accumulate
from typing import NamedTuple

from penstock.model.errors import ApiError
from penstock.records.batch import BatchHeader
from penstock.records.walk import Steps
from penstock.runtime.files import DiskFile
from penstock.runtime.page_cache import in_steps
from penstock.storage.search_by_time import search
from penstock.storage.segment import Segment, TimestampOffset

_FEW_ABORTED = 32
"""Aborted transactions that a fetch may be told without asking which of them it really meets."""

_MANY_READERS = 16
"""Reads in a row at one mark after which its batch is looked at each time."""


class Slice(NamedTuple):
    """A part of a .log file that starts with a whole batch. The file stays readable while this is held.

    It may end in the middle of a batch; the client drops such a rest and asks again.
    """

    file: DiskFile
    position: int
    size_bytes: int
    base_offset: int  # of the first batch


class _EmptyFile:
    """What a slice without bytes points to, so that a fetch at the end opens no file."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0

    def append(self, data: object) -> None:
        raise OSError("not a file")

    def read_at(self, position: int, size: int) -> bytes:
        return b""

    def is_cold(self, position: int, size: int) -> bool:
        return False

    def load(self, position: int, size: int) -> None: ...
    def prefetch(self, position: int, size: int) -> None: ...
    def truncate(self, size: int) -> None: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...
    def fileno(self) -> int:
        raise OSError("not a file")


EMPTY_FILE: DiskFile = _EmptyFile()


class Segments:
    __slots__ = ("_bases", "_peaks", "_row", "active")

    def __init__(self, row: list[Segment]) -> None:
        self.replace(row)

    def replace(self, row: list[Segment]) -> None:
        self._row = row
        self._bases = [segment.base_offset for segment in row]
        self.active = row[-1]
        # The largest timestamp up to each closed segment; made when a time is first asked for.
        self._peaks: list[int] | None = None

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._row)

    def __len__(self) -> int:
        return len(self._row)

    def __getitem__(self, number: int) -> Segment:
        return self._row[number]

    def from_offset(self, offset: int) -> list[Segment]:
        """The segment that may contain an offset, and all later ones."""
        return self._row[max(bisect_right(self._bases, offset) - 1, 0) :]

    def up_to(self, offset: int) -> list[Segment]:
        """The segment that may contain what is just before an offset, and the one before it."""
        end = max(bisect_right(self._bases, offset - 1), 1)
        return self._row[max(end - 2, 0) : end]

    def count_below(self, offset: int) -> int:
        """How many of the first segments end at or below an offset."""
        return max(bisect_right(self._bases, offset) - 1, 0)

    def read(
        self, offset: int, max_bytes: int, *, end_offset: int, log_end: int, at_least_one: bool
    ) -> Slice:
        """See Log.read; offset < end_offset ≤ log_end."""
        active = self.active
        if offset >= active.base_offset:
            return self._read_one(active, offset, max_bytes, end_offset, log_end, at_least_one)
        for segment in self.from_offset(offset):
            # A segment may end below its successor's base (after compaction): then the next batch is in a
            # later one.
            found = self._read_one(segment, offset, max_bytes, end_offset, log_end, at_least_one)
            if found.file is not EMPTY_FILE:
                return found
        return Slice(EMPTY_FILE, 0, 0, offset)

    def _read_one(
        self, segment: Segment, offset: int, max_bytes: int, end_offset: int, log_end: int, at_least_one: bool
    ) -> Slice:
        marks = segment.marks
        position = marks.get(offset) if marks is not None else None
        base_offset = offset
        first_size = -1
        if position is None:
            found = segment.find(offset)
            if found is None:
                return Slice(EMPTY_FILE, 0, 0, offset)
            position, base_offset, first_size = found
        elif segment.last_marked_read != offset:
            segment.last_marked_read = offset
            segment.marked_reads = 0
        elif segment.marked_reads < _MANY_READERS:
            segment.marked_reads += 1
        elif position < segment.size_bytes:
            first_size = segment.batch_size_at(position)
        end_position = segment.size_bytes
        if end_offset < log_end:
            if segment is self.active or end_offset < self._end_of(segment):
                end_position = segment.position_of(end_offset)
        elif segment is self.active:
            segment.mark(log_end, end_position)
        size = end_position - position
        if size > max_bytes:
            if first_size < 0:
                first_size = segment.batch_size_at(position)
            # A part of one batch alone is nothing to a client, or worse: Java's consumer takes it for an error.
            if first_size > max_bytes and not at_least_one:
                return Slice(segment.file or segment.open_file(), position, 0, base_offset)
            size = max(first_size, max_bytes)
        elif size <= 0:
            return Slice(EMPTY_FILE, 0, 0, offset)
        return Slice(segment.file or segment.open_file(), position, size, base_offset)

    def _end_of(self, segment: Segment) -> int:
        """Where the offsets of a segment that is not the last end: at the next one's base."""
        return self._bases[bisect_right(self._bases, segment.base_offset)]

    def headers(self, offset: int) -> Iterator[tuple[Segment, int, BatchHeader]]:
        """(segment, position, header) of each batch from the one that contains an offset on."""
        for segment in self.from_offset(offset):
            found = segment.find(offset)
            if found is not None:
                for position, header in segment.headers(found.position):
                    yield segment, position, header

    def size_between(self, *, from_offset: int, to_offset: int) -> int:
        """Bytes of the batches from one offset to another, both where batches begin or end."""
        size = 0
        for segment in self.from_offset(from_offset):
            if segment.base_offset >= to_offset:
                break
            start = segment.position_of(from_offset) if segment.base_offset < from_offset else 0
            is_last = segment is self.active or to_offset < self._end_of(segment)
            size += (segment.position_of(to_offset) if is_last else segment.size_bytes) - start
        return size

    def aborted_transactions(self, from_offset: int, up_to_offset: int) -> list[tuple[int, int]]:
        """See Log.aborted_transactions."""
        found: list[tuple[int, int]] = []
        for segment in self.from_offset(from_offset):
            if segment.transactions is not None:
                more, is_all = segment.transactions.overlapping(from_offset, up_to_offset)
                found += more
                if is_all:
                    break
        return found

    def aborted_in(self, found: Slice, from_offset: int, *, end_offset: int) -> list[tuple[int, int]]:
        """See Log.aborted_in."""
        aborted = self.aborted_transactions(from_offset, end_offset)
        if len(aborted) > _FEW_ABORTED:
            end_offset = min(end_offset, self.end_of_slice(found))
            aborted = self.aborted_transactions(from_offset, end_offset)
        return aborted

    def end_of_slice(self, found: Slice) -> int:
        """An offset behind all that is in a slice; not much behind, as far as the index knows."""
        segment = self.from_offset(found.base_offset)[0]
        offset = segment.offset_index.offset_from(found.position + found.size_bytes)
        if offset is not None:
            return offset
        return 2**63 - 1 if segment is self.active else self._end_of(segment)

    def find_timestamp(self, timestamp: int, start_offset: int) -> Steps[TimestampOffset | None]:
        """The first record from start_offset on whose timestamp is not below the asked one.

        Timestamps may go down, their running maximum does not: the first segment that reaches the asked one is found by
        bisection, in a thousand segments as fast as in ten.
        """
        while True:
            if self._peaks is None:
                self._peaks = yield from in_steps(self._look_for_peaks)
            row = self._row
            first = bisect_left(self._peaks, timestamp, lo=self.count_below(start_offset))
            try:
                return (yield from _find_timestamp(row[first:], timestamp, start_offset))
            except (FileNotFoundError, ApiError):
                if self._row is row:
                    raise
                # Segments went, or others took their place, while the search paused: it begins again with those there are.

    def _look_for_peaks(self) -> list[int]:
        return list(accumulate((segment.max_timestamp for segment in self._row[:-1]), max))

    def find_max_timestamp(self, start_offset: int) -> Steps[TimestampOffset | None]:
        found = yield from in_steps(lambda: [each.max_timestamp for each in self.from_offset(start_offset)])
        latest = max(found)
        return (yield from self.find_timestamp(latest, start_offset)) if latest >= 0 else None


def _find_timestamp(
    row: Iterable[Segment], timestamp: int, start_offset: int
) -> Steps[TimestampOffset | None]:
    for segment in row:
        if (yield from in_steps(partial(_max_timestamp, segment))) >= timestamp:
            found = yield from search(segment, timestamp, start_offset)
            if found is not None:
                return found
    return None


def _max_timestamp(segment: Segment) -> int:
    return segment.max_timestamp
