"""The bytes of a .log file as Kafka walks them: batch after batch by their lengths, believing nothing else."""

import mmap
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from penstock.records.batch import HEADER_SIZE, LENGTH_OVERHEAD, MAGIC, MAGIC_AT, BatchHeader, read_header

UP_TO_MAGIC = 17
LEAST_RECORD_SIZE = 14  # of Kafka's oldest format
_OFFSET_AND_SIZE = struct.Struct(">qi")


class NotABatch(Exception):
    """Bytes that no batch can begin with; the message is Kafka's."""


class StoredBatch(NamedTuple):
    position: int
    size_bytes: int
    offset: int
    """The first field of a batch: its base offset; in formats 0 and 1 its last offset."""
    header: BatchHeader | None
    """None in formats 0 and 1."""
    data: memoryview

    @property
    def last_offset(self) -> int:
        return self.offset if self.header is None else self.header.last_offset


def map_file(path: str) -> memoryview:
    """The bytes of a file, mapped and not read; the mapping goes with the last reference to them."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def stored_batches(data: memoryview, path: str, position: int = 0) -> Iterator[StoredBatch]:
    """Each whole batch from a position on; NotABatch where a length cannot be one."""
    end = len(data)
    while position < end - UP_TO_MAGIC:
        offset, size = _OFFSET_AND_SIZE.unpack_from(data, position)
        if size < LEAST_RECORD_SIZE:
            raise NotABatch(
                f"Found record size {size} smaller than minimum record overhead ({LEAST_RECORD_SIZE}) in file {path}."
            )
        if position > end - LENGTH_OVERHEAD - size:
            return
        whole = size + LENGTH_OVERHEAD
        batch = data[position : position + whole]
        header = None
        if batch[MAGIC_AT] >= MAGIC:
            if whole < HEADER_SIZE:
                raise NotABatch(f"Found a batch of {whole} bytes, less than its header, in file {path}.")
            header = read_header(batch)
        yield StoredBatch(position, whole, offset, header, batch)
        position += whole
