"""One segment: a .log file of batches and its two indexes, and where transactions were aborted a third.

A segment keeps only its .log file open, and that from its first use on. Positions are bytes in the .log file.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import HEADER_SIZE, LENGTH_OVERHEAD, BatchHeader, read_header
from penstock.runtime.files import Disk, DiskFile
from penstock.runtime.page_cache import memory_only
from penstock.storage.index import OffsetIndex, TimeIndex
from penstock.storage.names import (
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_path,
)
from penstock.storage.options import LogOptions
from penstock.storage.transaction_index import AbortedTransaction, TransactionIndex

MAX_RELATIVE_OFFSET = 2**31 - 1
MIN_BATCH_LENGTH = HEADER_SIZE - LENGTH_OVERHEAD

_SCAN = struct.Struct(
    ">qi11xi"
)  # base offset, batch length, last offset delta: all a search needs of a header
_SCAN_SIZE = _SCAN.size
_scan = _SCAN.unpack_from
_SCAN_CHUNK_BYTES = 4096  # read ahead when batches turn out to be small
_SMALL_BATCH_BYTES = 2048
_MAX_MARKS = 16
_UNKNOWN = -2


class Located(NamedTuple):
    position: int
    base_offset: int
    size_bytes: int


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


class Segment:
    __slots__ = (
        "_disk",
        "_max_timestamp",
        "_max_timestamp_offset",
        "base_offset",
        "bytes_since_index_entry",
        "created_ms",
        "directory",
        "file",
        "file_suffix",
        "first_timestamp",
        "last_marked_read",
        "marked_reads",
        "marks",
        "offset_index",
        "size_bytes",
        "time_index",
        "transactions",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: int,
        *,
        created_ms: int,
        size_bytes: int = 0,
        index_size: int = 0,
        time_index_size: int = 0,
        file_suffix: str = "",
    ) -> None:
        self._disk = disk
        self.file_suffix = file_suffix  # of all its files' names, while compaction swaps it in
        self.directory = directory
        self.base_offset = base_offset
        self.size_bytes = size_bytes
        self.created_ms = created_ms
        self.file: DiskFile | None = None
        self.offset_index = OffsetIndex(disk, self.path(OFFSET_INDEX_SUFFIX), base_offset, index_size)
        self.time_index = TimeIndex(disk, self.path(TIME_INDEX_SUFFIX), base_offset, time_index_size)
        self.transactions: TransactionIndex | None = None  # None: no transaction was aborted here
        self.bytes_since_index_entry = 0
        # The timestamp that segment.ms counts from: of the first batch; _UNKNOWN until it is needed, -1 when
        # there is none.
        self.first_timestamp = _UNKNOWN if size_bytes else -1
        self._max_timestamp = _UNKNOWN if size_bytes else -1
        self._max_timestamp_offset = base_offset
        # Where readers that have caught up will come next: offset → position. Saves them every search.
        self.marks: dict[int, int] | None = None
        # The offset at which a mark was last used, and how often in a row: who cannot get past it comes again and again.
        self.last_marked_read = -1
        self.marked_reads = 0

    @classmethod
    def create(cls, disk: Disk, directory: str, base_offset: int, *, now_ms: int) -> "Segment":
        """A new, empty segment with its three files; leftovers of the same name are emptied."""
        segment = cls(disk, directory, base_offset, created_ms=now_ms)
        disk.write(segment.offset_index.path, b"")
        disk.write(segment.time_index.path, b"")
        # Last: this file is what makes a segment. Left behind by a failure after it, it would end the log at its
        # base for the next open, while the log goes on in the segment before.
        file = disk.open(segment.path(LOG_SUFFIX), create=True)
        if file.size:
            file.truncate(0)
        segment.file = file
        return segment

    def path(self, suffix: str) -> str:
        return segment_path(self.directory, self.base_offset, suffix + self.file_suffix)

    def open_file(self) -> DiskFile:
        file = self.file
        if file is None:
            file = self.file = self._disk.open(self.path(LOG_SUFFIX))
        return file

    # --- writing

    def append(
        self, data: memoryview, *, last_offset: int, max_timestamp: int, index_interval_bytes: int
    ) -> None:
        """One batch at the end. The index is told about this batch when enough bytes came since its last
        entry.
        """
        file = self.file
        if file is None:
            file = self.open_file()
        file.append(data)
        size = len(data)
        position = self.size_bytes
        self.size_bytes = position + size
        self._note(position, size, last_offset, max_timestamp, index_interval_bytes)

    def note(self, position: int, header: BatchHeader, index_interval_bytes: int) -> None:
        """The bookkeeping of an append for a batch that is already in the file (replication, recovery)."""
        self._note(
            position, header.size_bytes, header.last_offset, header.max_timestamp, index_interval_bytes
        )

    def _note(
        self, position: int, size: int, last_offset: int, max_timestamp: int, index_interval_bytes: int
    ) -> None:
        if position == 0:
            self.first_timestamp = max_timestamp
        largest = self._max_timestamp
        if largest == _UNKNOWN:
            largest = self.max_timestamp
        if max_timestamp > largest:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
        if self.bytes_since_index_entry > index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.append_if_later(self._max_timestamp, self._max_timestamp_offset)
            self.bytes_since_index_entry = size
        else:
            self.bytes_since_index_entry += size

    def finish(self) -> bool:
        """At roll and close: the time index always ends with the segment's largest timestamp. Whether a file grew."""
        if self._max_timestamp != _UNKNOWN:
            self.time_index.append_if_later(self._max_timestamp, self._max_timestamp_offset)
        wrote = self.offset_index.write()
        if self.transactions is not None:
            wrote = self.transactions.write() or wrote
        return self.time_index.write() or wrote

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        """Its marker is in this segment."""
        index = self.transactions
        if index is None:
            index = self.transactions = TransactionIndex(self._disk, self.path(TRANSACTION_INDEX_SUFFIX))
        index.append(transaction)

    def attach_aborted(self) -> None:
        """The file of a segment that another process has made, if there is one."""
        path = self.path(TRANSACTION_INDEX_SUFFIX)
        if self._disk.exists(path):
            self.transactions = TransactionIndex(self._disk, path, self._disk.size(path))

    def drop_aborted(self) -> None:
        self.transactions = None
        self._disk.delete(self.path(TRANSACTION_INDEX_SUFFIX))

    def should_roll(self, now_ms: int, max_timestamp: int, options: LogOptions) -> bool:
        """Whether segment.ms has passed: by the batches' own timestamps, or by the clock when they have none."""
        if self.size_bytes == 0:
            return False
        first_timestamp = self.load_first_timestamp()
        if self.first_timestamp == _UNKNOWN:
            return False  # the next batch will know
        limit = options.segment_ms - self.jitter_ms(min(options.segment_jitter_ms, options.segment_ms))
        if first_timestamp >= 0:
            return max_timestamp - first_timestamp > limit
        return now_ms - self.created_ms > limit

    def load_first_timestamp(self) -> int:
        """Of the first batch, from the file where it is not known; -1 when there is none, or not in memory yet: who appends
        cannot wait for it.
        """
        if self.first_timestamp == _UNKNOWN:
            file = self.open_file()
            if not memory_only.is_on and file.is_cold(0, HEADER_SIZE):
                file.prefetch(0, HEADER_SIZE)
                return -1
            self.first_timestamp = read_header(file.read_at(0, HEADER_SIZE)).max_timestamp
        return self.first_timestamp

    def has_full_index(self, options: LogOptions) -> bool:
        max_bytes = options.segment_index_bytes
        return self.offset_index.is_full(max_bytes) or self.time_index.is_full(max_bytes)

    def jitter_ms(self, limit_ms: int) -> int:
        """Spreads the rolls of many partitions, the same for one segment each time it is asked."""
        if limit_ms <= 0:
            return 0
        return zlib.crc32(self.path(LOG_SUFFIX).encode()) % limit_ms

    def truncate_to(self, offset: int) -> int:
        """Cuts the segment before the batch that contains an offset; returns the new end offset."""
        found = self.find(offset)
        if found is not None:
            self.cut(found.position)
            self.offset_index.truncate_to(offset)
            self.time_index.truncate_to(offset)
            if self.transactions is not None:
                self.transactions.truncate_to(offset)
        self._max_timestamp = _UNKNOWN if self.size_bytes else -1
        self.first_timestamp = _UNKNOWN if self.size_bytes else -1
        return self.reload_tail()

    def restart_bookkeeping(self) -> None:
        """Forgets what is known of the batches, before they are noted again one by one."""
        self.first_timestamp = self._max_timestamp = -1
        self._max_timestamp_offset = self.base_offset
        self.bytes_since_index_entry = 0
        self.marks = None

    def cut(self, position: int) -> None:
        """Only the .log file; the indexes are the caller's."""
        self.open_file().truncate(position)
        self.size_bytes = position
        self.marks = None

    def reload_tail(self) -> int:
        """After an open or a cut: the end offset and the largest timestamp, from the headers behind the last
        index entry.
        """
        entry_position = self.offset_index.last_position()
        end_position = entry_position
        end_offset = self.base_offset
        self._max_timestamp, self._max_timestamp_offset = self.time_index.last_entry()
        for position, header in self.headers(entry_position):
            end_offset = header.last_offset + 1
            end_position = position + header.size_bytes
            if header.max_timestamp > self._max_timestamp:
                self._max_timestamp = header.max_timestamp
                self._max_timestamp_offset = header.last_offset
        self.bytes_since_index_entry = end_position - entry_position
        return end_offset

    # --- searching

    @property
    def max_timestamp(self) -> int:
        if self._max_timestamp == _UNKNOWN:
            self._max_timestamp, self._max_timestamp_offset = self.time_index.last_entry()
        return self._max_timestamp

    def find(self, offset: int) -> Located | None:
        """The batch that contains an offset, or the next one; None when all batches end below it."""
        position = self.offset_index.lookup(offset)
        size = self.size_bytes
        file = self.file
        if file is None:
            file = self.open_file()
        chunk = b""
        chunk_position = position
        chunk_size = _SCAN_SIZE
        while position < size:
            at = position - chunk_position
            if at + _SCAN_SIZE > len(chunk):
                chunk = file.read_at(position, chunk_size)
                chunk_position = position
                at = 0
                if len(chunk) < _SCAN_SIZE:
                    raise self.damaged(position)
            base_offset, length, last_offset_delta = _scan(chunk, at)
            end = position + length + LENGTH_OVERHEAD
            if length < MIN_BATCH_LENGTH or end > size:
                raise self.damaged(position)
            if base_offset + last_offset_delta >= offset:
                return Located(position, base_offset, length + LENGTH_OVERHEAD)
            if length < _SMALL_BATCH_BYTES:
                chunk_size = _SCAN_CHUNK_BYTES
            position = end
        return None

    def position_of(self, end_offset: int) -> int:
        """Where the batches end that are wholly below an offset."""
        if self.marks is not None and end_offset in self.marks:
            return self.marks[end_offset]
        found = self.find(end_offset)
        if found is None:
            return self.size_bytes
        if found.base_offset == end_offset:
            self.mark(end_offset, found.position)
        return found.position

    def batch_size_at(self, position: int) -> int:
        """ApiError where none can be."""
        header = self.open_file().read_at(position, _SCAN_SIZE)
        length: int = _scan(header)[1] if len(header) == _SCAN_SIZE else -1
        size = length + LENGTH_OVERHEAD
        if length < MIN_BATCH_LENGTH or position + size > self.size_bytes:
            raise self.damaged(position)
        return size

    def mark(self, offset: int, position: int) -> None:
        marks = self.marks
        if marks is None:
            self.marks = {offset: position}
        elif offset not in marks:
            if len(marks) >= _MAX_MARKS:
                del marks[next(iter(marks))]
            marks[offset] = position

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of each batch from a position on; ApiError where the bytes are no batch."""
        file = self.open_file()
        size = self.size_bytes
        chunk = b""
        chunk_position = position
        chunk_size = HEADER_SIZE
        while position < size:
            at = position - chunk_position
            if at + HEADER_SIZE > len(chunk):
                chunk = file.read_at(position, chunk_size)
                chunk_position = position
                at = 0
                if len(chunk) < HEADER_SIZE:
                    raise self.damaged(position)
            header = read_header(chunk, at)
            end = position + header.batch_length + LENGTH_OVERHEAD
            if header.batch_length < MIN_BATCH_LENGTH or end > size:
                raise self.damaged(position)
            yield position, header
            if header.batch_length < _SMALL_BATCH_BYTES:
                chunk_size = _SCAN_CHUNK_BYTES
            position = end

    # --- the end of it

    def rename_deleted(self, *, keep_snapshot: bool = False) -> list[str]:
        """Marks the files for deletion; returns their new paths. Whoever reads them now keeps reading."""
        self.open_file()
        renamed = []
        for suffix in SEGMENT_SUFFIXES if keep_snapshot else (*SEGMENT_SUFFIXES, SNAPSHOT_SUFFIX):
            path = self.path(suffix)
            if self._disk.exists(path):
                self._disk.replace(path, path + DELETED_SUFFIX)
                renamed.append(path + DELETED_SUFFIX)
        return renamed

    def damaged(self, position: int) -> ApiError:
        return ApiError(
            ErrorCode.CORRUPT_MESSAGE, f"no record batch at byte {position} of {self.path(LOG_SUFFIX)}"
        )
