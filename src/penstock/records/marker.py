"""The marker that ends a transaction in a partition: a control batch with one record.

key    version int16 = 0, type int16: 0 abort, 1 commit
value  version int16 = 0, coordinator epoch int32

Every transaction ends with one per partition, so that the usual form of it, 78 bytes, is written and read at once.
"""

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from penstock.records.batch import (
    CONTROL_BIT,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    InvalidRecord,
)
from penstock.records.build import sign
from penstock.records.walk import Record, iterate_records

_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")
# length, attributes, timestamp delta, offset delta and key length of the record; its key; value length; value; headers
_RECORD: Final = struct.Struct(">5shhchic")
_BEFORE_KEY: Final = bytes((16 << 1, 0, 0, 0, 4 << 1))
_BEFORE_VALUE: Final = bytes((6 << 1,))
_NO_HEADERS: Final = b"\0"
_SIZE: Final = HEADER_SIZE + _RECORD.size
ABORT: Final = 0
COMMIT: Final = 1


class Marker(NamedTuple):
    committed: bool
    coordinator_epoch: int


def build_marker(
    *, producer_id: int, producer_epoch: int, committed: bool, coordinator_epoch: int, timestamp_ms: int
) -> bytearray:
    batch = bytearray(_SIZE)
    HEADER.pack_into(
        batch, 0, 0, _SIZE - LENGTH_OVERHEAD, 0, MAGIC, 0, TRANSACTIONAL_BIT | CONTROL_BIT, 0, timestamp_ms,
        timestamp_ms, producer_id, producer_epoch, NO_SEQUENCE, 1,
    )  # fmt: skip
    _RECORD.pack_into(
        batch, HEADER_SIZE, _BEFORE_KEY, 0, COMMIT if committed else ABORT, _BEFORE_VALUE, 0,
        coordinator_epoch, _NO_HEADERS,
    )  # fmt: skip
    sign(memoryview(batch))
    return batch


def read_marker(records: Iterable[Record]) -> Marker | None:
    """Of the records of a control batch; None where it is not a marker of a transaction."""
    try:
        for record in records:
            _, kind = _KEY.unpack_from(record.key or b"")
            _, coordinator_epoch = _VALUE.unpack_from(record.value or b"")
            if kind in (ABORT, COMMIT):
                return Marker(kind == COMMIT, coordinator_epoch)
    except (InvalidRecord, struct.error):
        pass
    return None


def marker_of(batch: Buffer, header: BatchHeader) -> Marker | None:
    """Of a whole control batch; None where it is not a marker, or holds none any more after a compaction."""
    if len(batch) == _SIZE and header.records_count == 1:
        before_key, _, kind, before_value, _, coordinator_epoch, headers = _RECORD.unpack_from(
            batch, HEADER_SIZE
        )
        if (
            before_key == _BEFORE_KEY and before_value == _BEFORE_VALUE and headers == _NO_HEADERS
            and kind in (ABORT, COMMIT)
        ):  # fmt: skip
            return Marker(kind == COMMIT, coordinator_epoch)
    return read_marker(iterate_records(batch, header))
