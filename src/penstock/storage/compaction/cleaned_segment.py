"""The segment that a cleaning writes: `<base offset>.log.cleaned` with its indexes, all on the device when it is done."""

import numpy as np

from penstock.runtime.files import Disk
from penstock.storage import names
from penstock.storage.compaction import filter_kernels, layout
from penstock.storage.compaction.task import CleanedSegment
from penstock.storage.transaction_index import AbortedTransaction, encode

_ENTRIES = 1024
_Entries = np.ndarray[tuple[int, int], np.dtype[np.int64]]


class SegmentWriter:
    """Batches gather in `out`; the walks note them in `state` for the indexes and `flush` writes both."""

    __slots__ = (
        "_disk",
        "_file",
        "_index",
        "_path",
        "_time_index",
        "_transactions",
        "_unthrottled",
        "base_offset",
        "bytes_written",
        "offset_entries",
        "options",
        "out",
        "state",
        "time_entries",
    )

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, *, options: layout.Words, buffer_bytes: int
    ) -> None:
        self._disk = disk
        self._path = names.segment_path(directory, base_offset, "")
        self.base_offset = base_offset
        self.options = options
        options[layout.BASE_OFFSET] = base_offset
        for suffix in names.SEGMENT_SUFFIXES:
            disk.delete(self._path + suffix + names.CLEANED_SUFFIX)
        self._file = disk.open(self._path + names.LOG_SUFFIX + names.CLEANED_SUFFIX, create=True)
        self._index: list[bytes] = []
        self._time_index: list[bytes] = []
        self._transactions: list[bytes] = []
        self.out = np.empty(buffer_bytes, dtype=np.uint8)
        self.offset_entries: _Entries = np.empty((_ENTRIES, 2), dtype=np.int64)
        self.time_entries: _Entries = np.empty((_ENTRIES, 2), dtype=np.int64)
        self.state = np.zeros(layout.STATE_WORDS, dtype=np.int64)
        self.state[layout.MAX_TIMESTAMP] = self.state[layout.LAST_TIME_ENTRY] = -1
        self.state[layout.MAX_TIMESTAMP_OFFSET] = base_offset
        self.bytes_written = 0
        self._unthrottled = 0

    def append(self, batch: bytes | bytearray, *, last_offset: int, max_timestamp: int) -> None:
        """One batch that Python has made."""
        self.make_room(len(batch))
        at = int(self.state[layout.OUT_POSITION])
        self.out[at : at + len(batch)] = np.frombuffer(batch, dtype=np.uint8)
        filter_kernels.note_batch(
            len(batch),
            last_offset,
            max_timestamp,
            self.options,
            self.offset_entries,
            self.time_entries,
            self.state,
        )
        self.state[layout.OUT_POSITION] = at + len(batch)

    def append_transaction(self, transaction: AbortedTransaction) -> None:
        self._transactions.append(encode(transaction))

    def make_room(self, size: int) -> None:
        """For `size` bytes and one entry of each index."""
        if self.state[layout.OFFSET_ENTRIES] >= _ENTRIES or self.state[layout.OUT_POSITION] + size > len(
            self.out
        ):
            self.flush()
        if size > len(self.out):
            self.out = np.empty(size, dtype=np.uint8)

    def flush(self) -> None:
        size = int(self.state[layout.OUT_POSITION])
        if size:
            self._file.append(self.out.data[:size])
            self.bytes_written += size
            self._unthrottled += size
            self.state[layout.OUT_POSITION] = 0
        self._index.append(self.offset_entries[: self.state[layout.OFFSET_ENTRIES]].astype(">i4").tobytes())
        times = self.time_entries[: self.state[layout.TIME_ENTRIES]]
        packed = np.empty(len(times), dtype=[("timestamp", ">i8"), ("offset", ">i4")])
        packed["timestamp"] = times[:, 0]
        packed["offset"] = times[:, 1]
        self._time_index.append(packed.tobytes())
        self.state[layout.OFFSET_ENTRIES] = self.state[layout.TIME_ENTRIES] = 0

    def take_unthrottled(self) -> int:
        """Bytes written since the last question."""
        size, self._unthrottled = self._unthrottled, 0
        return size

    def finish(self, replaced: list[int]) -> CleanedSegment:
        self.flush()
        if self.state[layout.MAX_TIMESTAMP] > self.state[layout.LAST_TIME_ENTRY]:
            last = np.array([self.state[layout.MAX_TIMESTAMP]], dtype=">i8").tobytes()
            last += np.array(
                [self.state[layout.MAX_TIMESTAMP_OFFSET] - self.base_offset], dtype=">i4"
            ).tobytes()
            self._time_index.append(last)
        index, time_index = b"".join(self._index), b"".join(self._time_index)
        files = [(names.OFFSET_INDEX_SUFFIX, index), (names.TIME_INDEX_SUFFIX, time_index)]
        if self._transactions:
            files.append((names.TRANSACTION_INDEX_SUFFIX, b"".join(self._transactions)))
        for suffix, data in files:
            self._disk.write(self._path + suffix + names.CLEANED_SUFFIX, data, sync=True)
        self._file.sync()
        self._file.close()
        return CleanedSegment(self.base_offset, replaced, self.bytes_written, len(index), len(time_index))
