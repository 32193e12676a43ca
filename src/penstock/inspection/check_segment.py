"""Every batch of one segment: header, CRC, order of offsets; and on the way what its indexes say about it."""

from collections.abc import Callable
from mmap import mmap
from time import monotonic, sleep
from typing import Final, NamedTuple
from zlib import crc32

from penstock.inspection.check_indexes import IndexCheck
from penstock.inspection.check_transactions import MARKED_BITS, TransactionCheck
from penstock.inspection.dump.log_bytes import LEAST_RECORD_SIZE, UP_TO_MAGIC, map_file
from penstock.inspection.problems import CUT_TAIL, Problem
from penstock.records.batch import (
    ATTRIBUTES_AT,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    InvalidRecord,
    read_header,
)
from penstock.records.crc import crc32c
from penstock.records.walk import iterate_records
from penstock.storage.names import LOG_SUFFIX, segment_path
from penstock.storage.segment import MAX_RELATIVE_OFFSET, MIN_BATCH_LENGTH

REPORT_EVERY_BYTES = 8 * 1024 * 1024
MAX_TOLD = 20
"""Problems of one .log file that are told one by one."""
WRITE_SECONDS: Final = 1.0
_MAGIC_BYTE: Final = bytes([MAGIC])

Progress = Callable[[int], None]


class SegmentPlace(NamedTuple):
    directory: str
    base_offset: int
    end_offset: int | None
    """Where the next segment begins; None for the last."""

    def path(self, suffix: str) -> str:
        return segment_path(self.directory, self.base_offset, suffix)


class Checked(NamedTuple):
    problems: list[Problem]
    batches: int
    end_offset: int
    """Behind the last batch that can be read."""
    epochs: list[tuple[int, int]]
    """Leader epochs in the order in which they wrote, each with its first offset."""


class _Walk:
    """The state of a walk; one object per segment."""

    def __init__(
        self,
        segment: SegmentPlace,
        view: memoryview,
        indexes: IndexCheck,
        transactions: TransactionCheck,
        *,
        deep: bool,
    ) -> None:
        self.segment = segment
        self.view = view
        self.indexes = indexes
        self.transactions = transactions
        self.deep = deep
        self.problems: list[Problem] = []
        self.told = 0
        self.batches = 0
        self.end_offset = segment.base_offset
        self.epochs: list[tuple[int, int]] = []
        self.path = segment.path(LOG_SUFFIX)

    def run(self, progress: Progress, *, is_live: bool) -> None:
        view, size = self.view, len(self.view)
        unpack, check_at = HEADER.unpack_from, self.indexes.batch
        limit = self.segment.end_offset
        position = reported = 0
        latest_epoch = -1
        while position < size:
            why = ""
            if position + HEADER_SIZE > size:
                why = "a torn batch header"
            else:
                (base_offset, length, epoch, magic, crc, attributes, delta, _, max_timestamp, _, _, _,
                 count) = unpack(view, position)  # fmt: skip
                end = position + length + LENGTH_OVERHEAD
                if magic != MAGIC or length < MIN_BATCH_LENGTH or delta < 0 or count < 0:
                    why = f"no record batch of format {MAGIC}"
                elif end > size:
                    why = f"a torn batch: {end - size} of its {length + LENGTH_OVERHEAD} bytes are missing"
            if why:
                old = _old_format(view, position)
                if old is not None:
                    self._bad(
                        position, self.end_offset, f"messages of format {old}, which Penstock does not read"
                    )
                    break
                behind = self._unreadable(position, why, is_live=is_live)
                if behind is None:
                    break
                position = behind
                continue
            if crc32c(view[position + ATTRIBUTES_AT : end]) != crc:
                is_tail = end == size and limit is None
                if not (is_tail and is_live and self._becomes_sound(position)):
                    cause = f"wrong CRC: offsets {base_offset} to {base_offset + delta} cannot be believed"
                    self._bad(
                        position, base_offset, cause, repair=CUT_TAIL if is_tail and not is_live else None
                    )
                if is_tail:
                    break
            else:
                if self.deep:
                    self._check_records(position, end)
                if attributes & MARKED_BITS:
                    self.transactions.batch(view[position:end])
            last_offset = base_offset + delta
            if base_offset < self.end_offset:
                self._bad(position, base_offset, f"offset {self.end_offset} or above was expected")
            elif limit is not None and last_offset >= limit:
                self._bad(position, base_offset, f"passes the next segment, which begins at {limit}")
            elif last_offset - self.segment.base_offset > MAX_RELATIVE_OFFSET:
                self._bad(position, base_offset, "too far from the segment's base offset")
            if count > delta + 1:
                self._bad(position, base_offset, f"claims {count} records in {delta + 1} offsets")
            check_at(position, base_offset, last_offset, max_timestamp)
            if epoch != latest_epoch:
                self.epochs.append((epoch, base_offset))
                latest_epoch = epoch
            self.end_offset = max(self.end_offset, last_offset + 1)
            self.batches += 1
            position = end
            if position - reported >= REPORT_EVERY_BYTES:
                progress(position - reported)
                reported = position
        progress(size - reported)

    def _unreadable(self, position: int, why: str, *, is_live: bool) -> int | None:
        """Where sound batches go on behind it, if they do: then it is not the tail, and must not be cut."""
        is_last = self.segment.end_offset is None
        if is_last and is_live and self._becomes_sound(position):
            return None
        behind = _next_sound(self.view, position + 1, self.end_offset, self.segment.end_offset)
        if behind is not None:
            cause = f"{why}; sound batches go on at byte {behind}"
            self._bad(position, self.end_offset, cause)
        elif not is_last:
            cause = f"{why}; the last {len(self.view) - position} bytes of the segment cannot be read"
            self._bad(position, self.end_offset, cause)
        else:
            self._bad(position, self.end_offset, why, repair=None if is_live else CUT_TAIL)
        return behind

    def _becomes_sound(self, position: int) -> bool:
        """The broker may just be writing the last batch; that takes it no time that could be noticed."""
        deadline = monotonic() + WRITE_SECONDS
        while not _is_sound(map_file(self.path), position):
            if monotonic() > deadline:
                return False
            sleep(WRITE_SECONDS / 20)
        return True

    def _bad(self, position: int, offset: int, cause: str, *, repair: str | None = None) -> None:
        self.told += 1
        if self.told <= MAX_TOLD or repair is not None:
            self.problems.append(Problem(self.path, cause, position, offset, repair))

    def _check_records(self, position: int, end: int) -> None:
        batch = self.view[position:end]
        header = read_header(batch)
        try:
            previous = header.base_offset - 1
            for record in iterate_records(batch, header):
                if not previous < record.offset <= header.last_offset:
                    self._bad(position, record.offset, "a record's offset is out of order in its batch")
                if record.timestamp > header.max_timestamp:
                    self._bad(position, record.offset, "a record is later than its batch's largest timestamp")
                previous = record.offset
        except InvalidRecord as error:
            self._bad(position, header.base_offset, str(error))


def _is_sound(view: memoryview, position: int) -> bool:
    """A whole batch with the right CRC."""
    if position + HEADER_SIZE > len(view):
        return False
    header = read_header(view, position)
    end = position + header.size_bytes
    if header.magic != MAGIC or header.batch_length < MIN_BATCH_LENGTH or end > len(view):
        return False
    return crc32c(view[position + ATTRIBUTES_AT : end]) == header.crc


def _next_sound(view: memoryview, position: int, least_offset: int, limit: int | None) -> int | None:
    """The first position from which on there is a sound batch, with an offset that may come next."""
    data = view.obj
    if not isinstance(data, mmap):
        return None
    if limit is None:
        limit = least_offset + MAX_RELATIVE_OFFSET
    at = data.find(_MAGIC_BYTE, position + MAGIC_AT)
    while at >= 0:
        start = at - MAGIC_AT
        base_offset = int.from_bytes(view[start : start + 8], "big")
        if least_offset <= base_offset < limit and _is_sound(view, start):
            return start
        at = data.find(_MAGIC_BYTE, at + 1)
    return None


def _old_format(view: memoryview, position: int) -> int | None:
    """0 or 1 when a sound message of Kafka 0.10 or older begins there."""
    if position + UP_TO_MAGIC > len(view) or view[position + MAGIC_AT] not in (0, 1):
        return None
    length = int.from_bytes(view[position + 8 : position + 12], "big")
    message = view[position + LENGTH_OVERHEAD : position + LENGTH_OVERHEAD + length]
    if length < LEAST_RECORD_SIZE or len(message) < length:
        return None
    is_sound = crc32(message[4:]) == int.from_bytes(message[:4], "big")
    return view[position + MAGIC_AT] if is_sound else None


def check_segment(
    segment: SegmentPlace,
    transactions: TransactionCheck,
    *,
    deep: bool,
    is_live: bool,
    is_clean: bool,
    progress: Progress,
) -> Checked:
    """`transactions`: of the log, after all segments before this one. `is_live`: a broker is appending, so the last bytes
    may be half there. `is_clean`: it was closed properly.
    """
    indexes = IndexCheck(segment.directory, segment.base_offset, is_last=segment.end_offset is None)
    walk = _Walk(segment, map_file(segment.path(LOG_SUFFIX)), indexes, transactions, deep=deep)
    transactions.begin()
    walk.run(progress, is_live=is_live)
    if walk.told > len(walk.problems):
        more = f"{walk.told - len(walk.problems)} more problems of the same kind"
        walk.problems.append(Problem(walk.path, more))
    is_complete = not walk.problems
    problems = walk.problems + indexes.finish(
        is_complete=is_complete, is_closed=segment.end_offset is not None or is_clean, is_live=is_live
    )
    problems += transactions.finish(
        segment.base_offset, end_offset=walk.end_offset, is_complete=is_complete, is_live=is_live
    )
    return Checked(problems, walk.batches, walk.end_offset, walk.epochs)
