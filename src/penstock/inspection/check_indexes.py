"""The offset index and the time index of a segment against its batches, told one after the other."""

import os
import struct

from penstock.inspection.problems import REBUILD_INDEXES, Problem
from penstock.model.units import count_text
from penstock.storage.index import OFFSET_ENTRY, TIME_ENTRY
from penstock.storage.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, segment_path

_MAX_TOLD = 3  # of one index; it is rebuilt as a whole


class _Entries:
    """The entries of one index file and the one that is next to be compared."""

    def __init__(self, path: str, entry: struct.Struct, *, is_last: bool) -> None:
        self.path = path
        self.entry_size = entry.size
        self.told = 0
        self.problems: list[Problem] = []
        self.next = 0
        self.entries: list[tuple[int, int]] = []
        self.is_missing = not os.path.exists(path)
        if self.is_missing:
            return
        with open(path, "rb") as file:
            data = file.read()
        if len(data) % entry.size:
            self.tell(f"{len(data)} bytes are no whole number of entries of {entry.size} bytes")
        used = used_entries(data, entry.size)
        if used < len(data) // entry.size and not is_last:
            self.tell(f"zeros behind the last entry, at byte {used * entry.size}")
        self.entries = list(entry.iter_unpack(data[: used * entry.size]))

    def tell(self, cause: str, *, number: int | None = None, offset: int | None = None) -> None:
        self.told += 1
        if self.told <= _MAX_TOLD:
            position = None if number is None else number * self.entry_size
            self.problems.append(Problem(self.path, cause, position, offset, REBUILD_INDEXES))

    def all_problems(self) -> list[Problem]:
        if self.told > _MAX_TOLD:
            more = f"{count_text(self.told - _MAX_TOLD, 'more entry is', 'more entries are')} wrong"
            return [*self.problems, Problem(self.path, more, repair=REBUILD_INDEXES)]
        return self.problems


def used_entries(data: bytes, entry_size: int) -> int:
    """How many entries are in use: Kafka keeps the file of the last segment larger than it needs, filled with zeros.

    The first entry may itself be all zeros: the batch of one record at offset 0, at byte 0.
    """
    used = -(-len(data.rstrip(b"\0")) // entry_size)
    return min(used, len(data) // entry_size)


class IndexCheck:
    def __init__(self, directory: str, base_offset: int, *, is_last: bool) -> None:
        self._base_offset = base_offset
        self._offsets = _Entries(
            segment_path(directory, base_offset, OFFSET_INDEX_SUFFIX), OFFSET_ENTRY, is_last=is_last
        )
        self._times = _Entries(
            segment_path(directory, base_offset, TIME_INDEX_SUFFIX), TIME_ENTRY, is_last=is_last
        )
        self._batches = 0
        self._largest_timestamp = -1
        self._check_order()

    def _check_order(self) -> None:
        previous = (-1, -1)
        for number, entry in enumerate(self._offsets.entries):
            if entry[0] <= previous[0] or entry[1] <= previous[1]:
                offset = self._base_offset + entry[0]
                self._offsets.tell("out of order", number=number, offset=offset)
            previous = entry
        previous = (-2, -1)
        for number, entry in enumerate(self._times.entries):
            if entry[0] <= previous[0] or entry[1] < previous[1]:
                offset = self._base_offset + entry[1]
                self._times.tell(f"timestamp {entry[0]} is out of order", number=number, offset=offset)
            previous = entry

    def batch(self, position: int, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        """The next batch of the log."""
        offsets = self._offsets
        while offsets.next < len(offsets.entries):
            relative_offset, at = offsets.entries[offsets.next]
            if at > position:
                break
            offset = self._base_offset + relative_offset
            if at < position:
                offsets.tell(
                    f"points to byte {at}, where no batch begins", number=offsets.next, offset=offset
                )
            elif base_offset > offset:
                offsets.tell(
                    f"points to the batch at byte {at}, which begins at offset {base_offset}",
                    number=offsets.next,
                    offset=offset,
                )
            offsets.next += 1
        before = self._largest_timestamp
        if max_timestamp > before:
            self._largest_timestamp = max_timestamp
        times = self._times
        while times.next < len(times.entries):
            timestamp, relative_offset = times.entries[times.next]
            if self._base_offset + relative_offset > last_offset:
                break
            if not before <= timestamp <= self._largest_timestamp:
                times.tell(
                    f"timestamp {timestamp}, but the largest up to there is {self._largest_timestamp}",
                    number=times.next,
                    offset=self._base_offset + relative_offset,
                )
            times.next += 1
        self._batches += 1

    def finish(self, *, is_complete: bool, is_closed: bool, is_live: bool) -> list[Problem]:
        """`is_complete`: the whole log could be read. `is_closed`: nothing will be appended without a look at it."""
        problems: list[Problem] = []
        for entries in (self._offsets, self._times):
            if entries.is_missing and self._batches and not is_live:
                problems.append(Problem(entries.path, "missing", repair=REBUILD_INDEXES))
            left = len(entries.entries) - entries.next
            if left and is_complete and not is_live:
                entries.tell(
                    f"{count_text(left, 'entry points', 'entries point')} behind the end of the log",
                    number=entries.next,
                )
        last = self._times.entries[-1][0] if self._times.entries else -1
        is_short = is_closed and not is_live and is_complete and not self._times.is_missing
        if is_short and last < self._largest_timestamp:
            self._times.tell(f"ends at timestamp {last}, the log at {self._largest_timestamp}")
        return problems + self._offsets.all_problems() + self._times.all_problems()
