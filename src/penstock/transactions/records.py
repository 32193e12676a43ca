"""The records of `__transaction_state`, byte for byte Kafka's.

A key opens with its type, a value with its version, both int16, big-endian throughout:

    key 0        transactional id: string
    value v0–v1  producer id: int64, producer epoch: int16, timeout: int32, state: int8,
                 partitions: null if Empty, or [topic: string, partitions: [int32]],
                 time of last update: int64, time of start: int64,
                 [v1 tagged fields: 0 = previous producer id, 1 = next producer id: int64,
                  2 = transaction version of the client, 3 = next producer epoch: int16]

Version 1 is "flexible": lengths are varints (length + 1, 0 = null) and each struct ends with tagged fields, those with
their default left out. Written is v1, and v0 below transaction version 1, which loses what is tagged. Kafka 4.3 knows
field 3 but does not fill it, and neither do we. A null value forgets the id.
"""

import struct
from typing import Final

from penstock.coordination.form import NO_PRODUCER_ID
from penstock.model.ids import TopicPartition
from penstock.transactions.state import TransactionMetadata, TransactionState
from penstock.wire.primitives import read_tag, read_uvarint, skip_tags, uvarint

_HEAD: Final = struct.Struct(">hqhib")
_TIMES: Final = struct.Struct(">qq")
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")

RECORDED: Final = {
    int(state): state
    for state in TransactionState
    if state not in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE)
}


def write_key(transactional_id: str) -> bytes:
    raw = transactional_id.encode()
    return b"\0\0" + _INT16.pack(len(raw)) + raw


def read_key(key: bytes) -> str | None:
    """The transactional id; None for a type that is not ours; ValueError when the bytes are not what the type says."""
    try:
        if _INT16.unpack_from(key)[0] != 0:
            return None
        return _legacy_string(key, 2)[0]
    except struct.error as error:
        raise ValueError("the key of a transaction ends too early") from error


def write_value(metadata: TransactionMetadata, *, version: int) -> bytes:
    parts = [
        _HEAD.pack(
            version, metadata.producer_id, metadata.producer_epoch, metadata.timeout_ms, metadata.state
        )
    ]
    topics: dict[str, list[int]] | None = None
    if metadata.state is not TransactionState.EMPTY:
        topics = {}
        for topic, partition in sorted(metadata.partitions):
            topics.setdefault(topic, []).append(partition)
    parts += _legacy_topics(topics) if version == 0 else _compact_topics(topics)
    parts.append(_TIMES.pack(metadata.last_update_ms, metadata.start_ms))
    if version > 0:
        parts.append(_tags(metadata))
    return b"".join(parts)


def _legacy_topics(topics: dict[str, list[int]] | None) -> list[bytes]:
    if topics is None:
        return [b"\xff\xff\xff\xff"]
    parts = [_INT32.pack(len(topics))]
    for name, partitions in topics.items():
        raw = name.encode()
        parts += (
            _INT16.pack(len(raw)),
            raw,
            struct.pack(f">i{len(partitions)}i", len(partitions), *partitions),
        )
    return parts


def _compact_topics(topics: dict[str, list[int]] | None) -> list[bytes]:
    if topics is None:
        return [b"\0"]
    parts = [uvarint(len(topics) + 1)]
    for name, partitions in topics.items():
        raw = name.encode()
        parts += (uvarint(len(raw) + 1), raw, uvarint(len(partitions) + 1))
        parts += (struct.pack(f">{len(partitions)}i", *partitions), b"\0")
    return parts


def _tags(metadata: TransactionMetadata) -> bytes:
    tags = []
    if metadata.previous_producer_id != NO_PRODUCER_ID:
        tags.append(b"\0\x08" + _INT64.pack(metadata.previous_producer_id))
    if metadata.next_producer_id != NO_PRODUCER_ID:
        tags.append(b"\1\x08" + _INT64.pack(metadata.next_producer_id))
    if metadata.client_transaction_version:
        tags.append(b"\2\2" + _INT16.pack(metadata.client_transaction_version))
    return uvarint(len(tags)) + b"".join(tags)


def read_value(value: bytes) -> TransactionMetadata:
    """ValueError when the bytes are not what the version says."""
    try:
        version, producer_id, epoch, timeout_ms, status = _HEAD.unpack_from(value)
        if version not in (0, 1):
            raise ValueError(f"version {version} of a transaction is not known")
        if status not in RECORDED:
            raise ValueError(f"a transaction is never recorded in state {status}")
        read_topics = _read_legacy_topics if version == 0 else _read_compact_topics
        partitions, at = read_topics(value, _HEAD.size)
        last_update_ms, start_ms = _TIMES.unpack_from(value, at)
        tags = _read_tags(value, at + _TIMES.size) if version == 1 else {}
        return TransactionMetadata(
            producer_id,
            epoch,
            timeout_ms,
            RECORDED[status],
            frozenset(partitions),
            last_update_ms,
            start_ms,
            _INT64.unpack(tags[0])[0] if 0 in tags else NO_PRODUCER_ID,
            _INT64.unpack(tags[1])[0] if 1 in tags else NO_PRODUCER_ID,
            _INT16.unpack(tags[2])[0] if 2 in tags else 0,
        )
    except (struct.error, IndexError) as error:
        raise ValueError("a transaction's record ends too early") from error


def _read_legacy_topics(value: bytes, at: int) -> tuple[list[TopicPartition], int]:
    found: list[TopicPartition] = []
    (count,) = _INT32.unpack_from(value, at)
    at += 4
    for _ in range(count):
        name, at = _legacy_string(value, at)
        (length,) = _INT32.unpack_from(value, at)
        at = _read_partitions(value, at + 4, name, length, found)
    return found, at


def _read_compact_topics(value: bytes, at: int) -> tuple[list[TopicPartition], int]:
    found: list[TopicPartition] = []
    count, at = read_uvarint(value, at)
    for _ in range(count - 1):
        length, at = read_uvarint(value, at)
        name, at = _text(value, at, length - 1), at + length - 1
        length, at = read_uvarint(value, at)
        at = _read_partitions(value, at, name, length - 1, found)
        at = skip_tags(value, at, len(value))
    return found, at


def _read_partitions(value: bytes, at: int, name: str, count: int, found: list[TopicPartition]) -> int:
    end = at + 4 * count
    if count < 0 or end > len(value):
        raise ValueError(f"a transaction cannot have {count} partitions of a topic")
    found += (TopicPartition(name, index) for index in struct.unpack_from(f">{count}i", value, at))
    return end


def _read_tags(value: bytes, at: int) -> dict[int, bytes]:
    found = {}
    count, at = read_uvarint(value, at)
    for _ in range(count):
        tag, begin, at = read_tag(value, at, len(value))
        found[tag] = value[begin:at]
    return found


def _legacy_string(raw: bytes, at: int) -> tuple[str, int]:
    (length,) = _INT16.unpack_from(raw, at)
    return _text(raw, at + 2, length), at + 2 + length


def _text(raw: bytes, at: int, length: int) -> str:
    if length < 0 or at + length > len(raw):
        raise ValueError("a string of a transaction's record is null or longer than the record")
    return raw[at : at + length].decode()
