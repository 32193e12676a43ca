"""Building a batch: for the broker's own topics, for tests and tools. Producers build theirs."""

from collections.abc import Iterable, Sequence

from penstock.records import compression
from penstock.records.batch import (
    ATTRIBUTES_AT,
    CONTROL_BIT,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    MAX_TIMESTAMP_AT,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_header,
)
from penstock.records.crc import crc32c

NewRecord = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]], int]


def build_batch(
    records: Iterable[NewRecord],
    *,
    base_offset: int = 0,
    codec: int = compression.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    leader_epoch: int = 0,
) -> bytearray:
    """One batch of (key, value, headers, timestamp in ms) records with dense offsets.

    ValueError when there are none.
    """
    payload = bytearray()
    count = 0
    base_timestamp = NO_TIMESTAMP
    max_timestamp = NO_TIMESTAMP
    for key, value, headers, timestamp in records:
        if count == 0:
            base_timestamp = timestamp
        max_timestamp = max(max_timestamp, timestamp)
        _write_record(payload, timestamp - base_timestamp, count, key, value, headers)
        count += 1
    if count == 0:
        raise ValueError("a batch needs at least one record")
    stored = compression.compress(codec, payload)
    attributes = codec | (TRANSACTIONAL_BIT if transactional else 0) | (CONTROL_BIT if control else 0)
    batch = bytearray(HEADER_SIZE + len(stored))
    HEADER.pack_into(
        batch, 0, base_offset, len(batch) - LENGTH_OVERHEAD, leader_epoch, MAGIC, 0, attributes, count - 1,
        base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count,
    )  # fmt: skip
    batch[HEADER_SIZE:] = stored
    sign(memoryview(batch))
    return batch


def sign(batch: memoryview) -> None:
    """Recomputes the CRC after a change behind byte 21."""
    crc = crc32c(batch[ATTRIBUTES_AT:])
    batch[CRC_AT:ATTRIBUTES_AT] = crc.to_bytes(4, "big")


def stamp_append_time(batch: memoryview, now_ms: int) -> BatchHeader:
    """message.timestamp.type=LogAppendTime: the batch carries the broker's time; returns its new header.

    The records keep their deltas, which every reader then ignores.
    """
    batch[ATTRIBUTES_AT + 1] |= LOG_APPEND_TIME_BIT
    batch[MAX_TIMESTAMP_AT : MAX_TIMESTAMP_AT + 8] = now_ms.to_bytes(8, "big", signed=True)
    sign(batch)
    return read_header(batch)


def write_varint(out: bytearray, value: int) -> None:
    raw = (value << 1) ^ (value >> 63)
    while raw > 0x7F:
        out.append((raw & 0x7F) | 0x80)
        raw >>= 7
    out.append(raw)


def _write_record(
    out: bytearray,
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> None:
    body = bytearray(1)  # attributes: none are defined
    write_varint(body, timestamp_delta)
    write_varint(body, offset_delta)
    _write_bytes(body, key)
    _write_bytes(body, value)
    write_varint(body, len(headers))
    for name, header_value in headers:
        _write_bytes(body, name.encode("utf-8"))
        _write_bytes(body, header_value)
    write_varint(out, len(body))
    out += body


def _write_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        write_varint(out, -1)
    else:
        write_varint(out, len(value))
        out += value
