"""Offset and time indexes: their entries, and what the log says to them."""

import os
import struct
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from penstock.client.errors import Refused
from penstock.inspection.dump.log_bytes import StoredBatch, map_file, stored_batches
from penstock.model.java_order import in_hash_map_order
from penstock.records.walk import iterate_records
from penstock.storage.index import OFFSET_ENTRY, TIME_ENTRY

_WARM_BYTES = 8192
_Pairs = TypeVar("_Pairs")


class Findings:
    """What does not fit, gathered while files are dumped and told at the end, in Kafka's order and words."""

    def __init__(self) -> None:
        self._index_mismatches: dict[str, dict[int, int]] = {}
        self._time_mismatches: dict[str, list[tuple[int, int]]] = {}
        self._out_of_order: dict[str, list[tuple[int, int]]] = {}
        self._not_found: dict[str, list[tuple[int, int]]] = {}
        self._gaps: dict[str, dict[int, int]] = {}

    def index_mismatch(self, path: str, *, indexed: int, found: int) -> None:
        self._index_mismatches.setdefault(os.path.abspath(path), {})[indexed] = found

    def time_mismatch(self, path: str, *, indexed: int, found: int) -> None:
        self._time_mismatches.setdefault(os.path.abspath(path), []).append((indexed, found))

    def out_of_order(self, path: str, *, timestamp: int, before: int) -> None:
        self._out_of_order.setdefault(os.path.abspath(path), []).append((timestamp, before))

    def offset_not_found(self, path: str, *, indexed: int, found: int) -> None:
        self._not_found.setdefault(os.path.abspath(path), []).append((indexed, found))

    def not_consecutive(self, path: str, *, before: int, after: int) -> None:
        self._gaps.setdefault(os.path.abspath(path), {})[before] = after

    def lines(self) -> list[str]:
        lines = []
        for path in _listed(self._index_mismatches):
            lines.append(f"Mismatches in :{path}")
            pairs = sorted(self._index_mismatches[path].items(), reverse=True)
            lines += [f"  Index offset: {indexed}, log offset: {found}" for indexed, found in pairs]
        for path in _listed(self._time_mismatches):
            lines.append(f"Found timestamp mismatch in :{path}")
            lines += [
                f"  Index timestamp: {indexed}, log timestamp: {found}"
                for indexed, found in self._time_mismatches[path]
            ]
        for path in _listed(self._out_of_order):
            lines.append(f"Found out of order timestamp in :{path}")
            lines += [
                f"  Index timestamp: {timestamp}, Previously indexed timestamp: {before}"
                for timestamp, before in self._out_of_order[path]
            ]
        for path in _listed(self._not_found):
            lines.append(f"The following indexed offsets are not found in :{path}")
            lines += [
                f"Indexed offset: {indexed}, found log offset: {found}"
                for indexed, found in self._not_found[path]
            ]
        for path in _listed(self._gaps):
            lines.append(f"Non-consecutive offsets in {path}")
            lines += [
                f"  {before} is followed by {after}" for before, after in sorted(self._gaps[path].items())
            ]
        return lines


def _listed(by_path: dict[str, _Pairs]) -> list[str]:
    """computeIfAbsent puts a new key before those that share its bucket."""
    return in_hash_map_order(list(reversed(by_path)))


class _IndexFile(NamedTuple):
    """An index as Kafka maps it: also the zeros behind the last entry that a crash leaves count as entries."""

    entries: list[tuple[int, int]]
    size_bytes: int

    def floor_position(self, relative_offset: int) -> int:
        """The position that Kafka's search gives for an offset: first in the warm end of the file, then before it."""
        entries = self.entries
        if not entries:
            return 0
        first_warm = max(0, len(entries) - 1 - _WARM_BYTES // OFFSET_ENTRY.size)
        if entries[first_warm][0] < relative_offset:
            low, high = first_warm, len(entries) - 1
        elif entries[0][0] > relative_offset:
            return 0
        else:
            low, high = 0, first_warm
        while low < high:
            middle = (low + high + 1) // 2
            if entries[middle][0] > relative_offset:
                high = middle - 1
            elif entries[middle][0] < relative_offset:
                low = middle
            else:
                return entries[middle][1]
        return entries[low][1]


def dump_offset_index(
    path: str, findings: Findings, *, sanity_only: bool, verify_only: bool, max_bytes: int
) -> Iterator[str]:
    """A line for each entry, in Kafka's words. Refused where the index cannot be compared with its log."""
    base_offset, log_path = _neighbours(path)
    log = map_file(log_path)
    index = _read(path, OFFSET_ENTRY)
    if not index.entries:
        yield f"{path} is empty."
        return
    if sanity_only:
        _check_offset_index(path, index, base_offset)
        yield f"{path} passed sanity check."
        return
    for number, (relative_offset, position) in enumerate(index.entries):
        if relative_offset == 0 and number > 0:
            return  # the zeros behind the entries
        offset = base_offset + relative_offset
        last_offset = _first_last_offset(log, log_path, position, max_bytes)
        if last_offset != offset:
            findings.index_mismatch(path, indexed=offset, found=last_offset)
        if not verify_only:
            yield f"offset: {offset} position: {position}"


def dump_time_index(path: str, findings: Findings, *, sanity_only: bool, verify_only: bool) -> Iterator[str]:
    """As `dump_offset_index`."""
    base_offset, log_path = _neighbours(path)
    log = map_file(log_path)
    offset_index = _read(log_path.removesuffix(".log") + ".index", OFFSET_ENTRY)
    index = _read(path, TIME_ENTRY)
    if sanity_only:
        _check_time_index(path, index, base_offset)
        yield f"{path} passed sanity check."
        return
    previous = -1
    for number, (timestamp, relative_offset) in enumerate(index.entries):
        if relative_offset == 0 and number > 0:
            return
        offset = base_offset + relative_offset
        position = offset_index.floor_position(relative_offset)
        found, largest = _batch_at(log, log_path, position, offset)
        if found != offset:
            findings.offset_not_found(path, indexed=offset, found=found)
        else:
            if largest != timestamp:
                findings.time_mismatch(path, indexed=timestamp, found=largest)
            if previous >= timestamp:
                findings.out_of_order(path, timestamp=timestamp, before=previous)
        if not verify_only:
            yield f"timestamp: {timestamp} offset: {offset}"
        previous = timestamp


def _neighbours(path: str) -> tuple[int, str]:
    stem = os.path.basename(path).split(".")[0]
    return int(stem), os.path.join(os.path.dirname(os.path.abspath(path)), stem + ".log")


def _read(path: str, entry: struct.Struct) -> _IndexFile:
    with open(path, "rb") as file:
        data = file.read()
    whole = len(data) - len(data) % entry.size
    return _IndexFile(list(entry.iter_unpack(data[:whole])), len(data))


def _first_last_offset(log: memoryview, log_path: str, position: int, max_bytes: int) -> int:
    _check_slice(log, log_path, position)
    part = log[: min(len(log), position + max_bytes)]
    for batch in stored_batches(part, log_path, position):
        return batch.last_offset
    raise Refused(f"there is no whole batch at position {position} of {log_path}")


def _batch_at(log: memoryview, log_path: str, position: int, offset: int) -> tuple[int, int]:
    """(last offset, largest timestamp) of the first batch from a position on that ends at or behind an offset."""
    _check_slice(log, log_path, position)
    for batch in stored_batches(log, log_path, position):
        last_offset = batch.last_offset
        if last_offset >= offset:
            return last_offset, _largest_timestamp(batch) if last_offset == offset else -1
    return -1, -1


def _largest_timestamp(batch: StoredBatch) -> int:
    if batch.header is None:
        return -1
    return max((record.timestamp for record in iterate_records(batch.data, batch.header)), default=-1)


def _check_slice(log: memoryview, log_path: str, position: int) -> None:
    if position < 0:
        raise Refused(f"Invalid position: {position} in read from {log_path}")
    if position > len(log):
        raise Refused(f"Slice from position {position} exceeds end position of {log_path} ({len(log)} bytes)")


def _check_offset_index(path: str, index: _IndexFile, base_offset: int) -> None:
    path = os.path.abspath(path)
    last_offset = base_offset + index.entries[-1][0]
    if last_offset < base_offset:
        raise Refused(
            f"Corrupt index found, index file {path} has non-zero size but the last offset is {last_offset} "
            f"which is less than the base offset {base_offset}"
        )
    _check_multiple(f"Index file {path}", index, OFFSET_ENTRY)


def _check_time_index(path: str, index: _IndexFile, base_offset: int) -> None:
    path = os.path.abspath(path)
    if index.entries:
        first_timestamp = index.entries[0][0]
        last_timestamp, last_relative_offset = index.entries[-1]
        if last_timestamp < first_timestamp:
            raise Refused(
                f"Corrupt time index found, time index file ({path}) has non-zero size but the last timestamp is "
                f"{last_timestamp} which is less than the first timestamp {first_timestamp}"
            )
        if last_relative_offset < 0:
            raise Refused(
                f"Corrupt time index found, time index file ({path}) has non-zero size but the last offset is "
                f"{base_offset + last_relative_offset} which is less than the first offset {base_offset}"
            )
    _check_multiple(f"Time index file {path}", index, TIME_ENTRY)


def _check_multiple(what: str, index: _IndexFile, entry: struct.Struct) -> None:
    if index.size_bytes % entry.size:
        raise Refused(
            f"{what} is corrupt, found {index.size_bytes} bytes which is neither positive nor a multiple of "
            f"{entry.size}"
        )
