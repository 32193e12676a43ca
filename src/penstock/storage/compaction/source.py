"""Reading a segment forward, a buffer at a time, with the last, incomplete batch read again."""

from types import TracebackType
from typing import Self

import numpy as np

from penstock.records.batch import BATCH_LENGTH_AT, HEADER_SIZE, LENGTH_OVERHEAD, BatchHeader, read_header
from penstock.runtime.files import Disk
from penstock.storage import names
from penstock.storage.compaction import layout
from penstock.storage.compaction.task import SourceSegment


class CorruptSegment(Exception):
    """Bytes in a segment that are not what was once appended; the text says where."""


class SegmentReader:
    """Use in a `with` block. state[POSITION] is relative to `buffer`, which `fill` moves on."""

    __slots__ = ("_at", "_bytes", "_chunk_bytes", "_end", "_file", "_path", "buffer")

    def __init__(
        self, disk: Disk, directory: str, segment: SourceSegment, chunk_bytes: int, *, start: int = 0
    ) -> None:
        self._path = names.segment_path(directory, segment.base_offset, names.LOG_SUFFIX)
        self._file = disk.open(self._path)
        self._end = segment.size_bytes
        self._at = start  # of the buffer in the file
        self._chunk_bytes = chunk_bytes
        self._bytes = b""
        self.buffer: layout.Bytes = np.frombuffer(b"", dtype=np.uint8)

    def fill(self, state: layout.Words) -> bool:
        """Makes the buffer hold all of the current batch; False at the end of the segment."""
        while True:
            position = int(state[layout.POSITION])
            left = self._end - self._at - position
            if left <= 0:
                return False
            have = len(self._bytes) - position
            needed = HEADER_SIZE
            if have >= HEADER_SIZE:
                length_at = position + BATCH_LENGTH_AT
                length = int.from_bytes(self._bytes[length_at : length_at + 4], "big", signed=True)
                needed = max(length + LENGTH_OVERHEAD, HEADER_SIZE)
            if have >= needed:
                return True
            if needed > left:
                raise self.corrupt(state, "a batch passes the end of the segment")
            self._read(state, max(needed, min(self._chunk_bytes, left)))

    def _read(self, state: layout.Words, size: int) -> None:
        self._at += int(state[layout.POSITION])
        state[layout.POSITION] = 0
        self._bytes = self._file.read_at(self._at, size)
        if len(self._bytes) < size:
            raise self.corrupt(state, "the file is shorter than it was")
        self.buffer = np.frombuffer(self._bytes, dtype=np.uint8)

    def batch_at(self, state: layout.Words) -> tuple[BatchHeader, bytes]:
        """The batch at the current position; a walk has checked its header and CRC."""
        position = int(state[layout.POSITION])
        header = read_header(self._bytes, position)
        return header, self._bytes[position : position + header.size_bytes]

    def corrupt(self, state: layout.Words, reason: str) -> CorruptSegment:
        return CorruptSegment(f"{self._path} at byte {self._at + int(state[layout.POSITION])}: {reason}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
