"""The header of a record batch, format v2 ("magic 2").

    at   size  field
     0    8    base offset                 assigned by the leader at append; not covered by the CRC
     8    4    batch length                bytes after this field: the whole batch has 12 more
    12    4    partition leader epoch      assigned by the leader; not covered by the CRC
    16    1    magic                       2
    17    4    CRC-32C                     of everything from 21 to the end
    21    2    attributes                  bits 0-2 codec, 3 log append time, 4 transactional, 5 control, 6 delete horizon
    23    4    last offset delta           last offset - base offset; survives compaction
    27    8    base timestamp              of the first record, in ms
    35    8    max timestamp               largest of the records, or the append time
    43    8    producer id                 -1: none
    51    2    producer epoch              -1: none
    53    4    base sequence               -1: none
    57    4    records count
    61    …    records, together compressed by the codec

Example: base offset 100, last offset delta 9 → offsets 100 … 109, the next batch starts at 110.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = 61
LENGTH_OVERHEAD = 12  # the base offset and the length field itself
BATCH_LENGTH_AT = 8
LEADER_EPOCH_AT = 12
MAGIC_AT = 16
CRC_AT = 17
ATTRIBUTES_AT = 21  # the CRC covers everything from here on
MAX_TIMESTAMP_AT = 35
RECORDS_COUNT_AT = 57
MAGIC = 2

CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

CREATE_TIME = 0
LOG_APPEND_TIME = 1

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1


class BatchHeader(NamedTuple):
    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size_bytes(self) -> int:
        return self.batch_length + LENGTH_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        return LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_BIT else CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def last_sequence(self) -> int:
        """Sequences wrap from 2^31-1 to 0; -1 when the batch has none."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


class InvalidRecord(ValueError):
    """Bytes that are not a well-formed batch or record."""


Buffer = bytes | bytearray | memoryview

_unpack_header = HEADER.unpack_from
# `BatchHeader(*fields)` runs a Python-level __new__; this is the same without it (0.15 µs instead of 0.5).
_new_header = cast(Callable[[Any, Any], BatchHeader], tuple.__new__)


def records_count(batch: Buffer) -> int:
    """As its header says."""
    return int.from_bytes(batch[RECORDS_COUNT_AT : RECORDS_COUNT_AT + 4], "big")


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at a position; struct.error when fewer than 61 bytes are left."""
    return _new_header(BatchHeader, _unpack_header(buffer, position))


def iterate_headers(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each whole batch in a buffer; stops at the first one that is not whole.

    Raises InvalidRecord when a header cannot be one (another magic, or a length below the header's own).
    """
    position = 0
    size = len(buffer)
    while position + HEADER_SIZE <= size:
        header = read_header(buffer, position)
        if header.magic != MAGIC or header.batch_length < HEADER_SIZE - LENGTH_OVERHEAD:
            raise InvalidRecord(f"no record batch of format 2 at byte {position}")
        if position + header.batch_length + LENGTH_OVERHEAD > size:
            return
        yield position, header
        position += header.batch_length + LENGTH_OVERHEAD
