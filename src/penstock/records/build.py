"""Building a batch: for the broker's own topics, for tests and tools. Producers build theirs."""

from collections.abc import Iterable, Sequence
from typing import Final

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
    batch = bytearray(HEADER_SIZE)
    count = 0
    base_timestamp = NO_TIMESTAMP
    max_timestamp = NO_TIMESTAMP
    for key, value, headers, timestamp in records:
        if count == 0:
            base_timestamp = timestamp
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        if (
            not headers and timestamp == base_timestamp and count < 64
            and key is not None and value is not None
        ):  # fmt: skip
            # What coordinators write, in half the time: this was a seventh of a commit of ten partitions.
            key_size, value_size = len(key), len(value)
            key_length = _ONE_BYTE[key_size << 1] if key_size < 64 else _varint(key_size)
            value_length = _ONE_BYTE[value_size << 1] if value_size < 64 else _varint(value_size)
            batch += _varint(4 + len(key_length) + key_size + len(value_length) + value_size)
            batch += _PLAIN_HEADS[count]
            batch += key_length
            batch += key
            batch += value_length
            batch += value
            batch += _NO_HEADERS
        else:
            _write_record(batch, timestamp - base_timestamp, count, key, value, headers)
        count += 1
    if count == 0:
        raise ValueError("a batch needs at least one record")
    if codec != compression.NONE:
        batch[HEADER_SIZE:] = compression.compress(codec, bytes(batch[HEADER_SIZE:]))
    attributes = codec | (TRANSACTIONAL_BIT if transactional else 0) | (CONTROL_BIT if control else 0)
    HEADER.pack_into(
        batch, 0, base_offset, len(batch) - LENGTH_OVERHEAD, leader_epoch, MAGIC, 0, attributes, count - 1,
        base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count,
    )  # fmt: skip
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
    out += _varint(value)


def _varint(value: int) -> bytes:
    raw = (value << 1) ^ (value >> 63)
    if raw < 0x80:
        return _ONE_BYTE[raw]
    if raw < 0x4000:
        return bytes((raw & 0x7F | 0x80, raw >> 7))
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


_ONE_BYTE: Final = [bytes((raw,)) for raw in range(0x80)]
_NO_HEADERS: Final = _varint(0)
_PLAIN_HEADS: Final = [b"\0\0" + _varint(offset_delta) for offset_delta in range(64)]
"""Attributes, of which none are defined, no timestamp delta, and the offset delta."""


def _write_record(
    out: bytearray,
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> None:
    body = bytearray(1)  # attributes: none are defined
    body += _varint(timestamp_delta)
    body += _varint(offset_delta)
    _write_bytes(body, key)
    _write_bytes(body, value)
    body += _varint(len(headers))
    for name, header_value in headers:
        _write_bytes(body, name.encode("utf-8"))
        _write_bytes(body, header_value)
    out += _varint(len(body))
    out += body


def _write_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        out += _varint(-1)
    else:
        out += _varint(len(value))
        out += value
