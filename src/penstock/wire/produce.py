"""Produce, by hand: the codec of the hot path. Records stay views into the receive buffer; nothing is copied.

Request v3–8:   transactional_id string?, acks i16, timeout_ms i32, [topic: name string, [partition: index i32, records bytes?]]
Request v9–13:  the same in compact forms with tagged fields; from v13 a topic id of 16 bytes stands for the name.
Response:       [topic: name or id, [partition: index i32, error i16, base_offset i64, log_append_time_ms i64,
                log_start_offset i64 (v5+), record_errors [] and error_message (v8+), current_leader (v10+, tagged)]],
                throttle_time_ms i32, node_endpoints (v10+, tagged)
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from penstock.wire.errors import Malformed
from penstock.wire.fields import (
    I16,
    I32,
    read_count,
    read_string,
    read_topic_key,
    skip_tags,
    write_topic_key,
)
from penstock.wire.leaders import CurrentLeader, NodeEndpoint, current_leader_field, node_endpoints_field
from penstock.wire.primitives import read_uvarint, uvarint

FLEXIBLE_FROM: Final = 9
MAX_TOPICS: Final = 20_000
"""Bound on the topics and on the partitions of one request: an empty one takes six bytes to send and far more to keep.
No producer comes near it."""
TOPIC_IDS_FROM: Final = 13
LEADERS_FROM: Final = 10
CURRENT_LEADER_TAG: Final = 0
NO_LEADERS: Final[Mapping[tuple[int, int], CurrentLeader]] = {}

_ACKS: Final = struct.Struct(">hi")
_INDEX_AND_SIZE: Final = struct.Struct(">ii")
_RESULT: Final = struct.Struct(">ihqqq")
_RESULT_V4: Final = struct.Struct(">ihqq")
_pack_flexible: Final = struct.Struct(">ihqqqbbb").pack
_pack_single_topic: Final = struct.Struct(">ih").pack
_pack_single_v3: Final = struct.Struct(">iihqqi").pack
_pack_single_v5: Final = struct.Struct(">iihqqqi").pack
_pack_single_v8: Final = struct.Struct(">iihqqqihi").pack
_pack_single_flexible: Final = struct.Struct(">bihqqqbbbbib").pack
_unpack_i32: Final = I32.unpack_from


# Plain tuples where there is one per partition: a named one costs six times as much to make.
ProducePartition = tuple[int, "memoryview | None"]
"""index, records"""
ProduceTopic = tuple["str | bytes", list[ProducePartition]]
"""The topic's name, or from version 13 its id; its partitions."""


class RecordToBlame(NamedTuple):
    """An error message about one record of the batch."""

    record: int
    message: str


ProduceResult = tuple[int, int, int, int, int, "str | RecordToBlame | None"]
"""index, error code, base offset, log append time, log start offset, error message"""


def refused(
    index: int, error_code: int, message: str | None = None, record: int | None = None
) -> ProduceResult:
    told = RecordToBlame(record, message) if record is not None and message is not None else message
    return (index, error_code, -1, -1, -1, told)


class ProduceRequest(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[ProduceTopic]

    def without_records(self) -> "ProduceRequest":
        topics: list[ProduceTopic] = [
            (key, [(index, None) for index, _ in batches]) for key, batches in self.topics
        ]
        return self._replace(topics=topics)


# `ProduceRequest(…)` runs a Python-level __new__; this is the same without it.
_new_request: Final = cast(Callable[[Any, Any], ProduceRequest], tuple.__new__)
# One batch for one partition, without a transactional id, is what a producer with little to send sends: its fields are at
# fixed distances, so that two reads take them all.
_unpack_single_topic: Final = struct.Struct(">hhiih").unpack_from
_unpack_single_partition: Final = struct.Struct(">iii").unpack_from
_unpack_flexible_topic: Final = struct.Struct(">bhib").unpack_from
_unpack_flexible_partition: Final = struct.Struct(">bibb").unpack_from


def read_request(frame: memoryview, offset: int, version: int) -> ProduceRequest:
    try:
        if version >= FLEXIBLE_FROM:
            return _read_single_flexible(frame, offset, version) or _read_flexible(frame, offset, version)
        return _read_single_classic(frame, offset) or _read_classic(frame, offset)
    except (struct.error, IndexError):
        raise Malformed("the produce request ends before its fields") from None
    except UnicodeDecodeError:
        raise Malformed("a name in the produce request is not UTF-8") from None


def _read_single_classic(frame: memoryview, offset: int) -> ProduceRequest | None:
    """A request of one batch without a transactional id; None when it is another one, or not whole."""
    try:
        no_id, acks, timeout_ms, topic_count, length = _unpack_single_topic(frame, offset)
        if no_id != -1 or topic_count != 1 or length < 0:
            return None
        name_at = offset + 14
        name_end = name_at + length
        partition_count, index, size = _unpack_single_partition(frame, name_end)
    except struct.error:
        return None
    records_at = name_end + 12
    end = records_at + size
    if partition_count != 1 or size < 0 or end > len(frame):
        return None
    name = str(frame[name_at:name_end], "utf-8")
    return _new_request(ProduceRequest, (None, acks, timeout_ms, [(name, [(index, frame[records_at:end])])]))


def _read_single_flexible(frame: memoryview, offset: int, version: int) -> ProduceRequest | None:
    """The same in compact forms. Counts are one more than what they count; varints of up to two bytes are read in place."""
    try:
        no_id, acks, timeout_ms, topic_count = _unpack_flexible_topic(frame, offset)
        if no_id != 0 or topic_count != 2:
            return None
        key_at = offset + 8
        key: str | bytes
        if version >= TOPIC_IDS_FROM:
            key_end = key_at + 16
            key = bytes(frame[key_at:key_end])
        else:
            length = frame[key_at]
            if not 0 < length < 0x80:
                return None
            key_end = key_at + length
            key = str(frame[key_at + 1 : key_end], "utf-8")
        partition_count, index, low, high = _unpack_flexible_partition(frame, key_end)
    except (struct.error, IndexError):
        return None
    if (
        partition_count != 2 or low >= 0 or high <= 0
    ):  # a batch has more than 61 bytes, mostly less than 16 KiB
        return None
    records_at = key_end + 7
    end = records_at + (low & 0x7F | high << 7) - 1
    if end + 2 > len(frame) or frame[end] or frame[end + 1]:  # tagged fields
        return None
    return _new_request(ProduceRequest, (None, acks, timeout_ms, [(key, [(index, frame[records_at:end])])]))


def _read_flexible(frame: memoryview, offset: int, version: int) -> ProduceRequest:
    """Versions 9 and later. Varints of one byte, nearly all of them, are read in place: calls were most of the cost."""
    transactional_id: str | None = None
    if frame[offset] == 0:
        offset += 1
    else:
        transactional_id, offset = read_string(frame, offset, flexible=True)
    acks, timeout_ms = _ACKS.unpack_from(frame, offset)
    topic_count, offset = read_count(frame, offset + 6, flexible=True)
    _check_count(topic_count)
    total = 0
    topics: list[ProduceTopic] = []
    for _ in range(topic_count):
        key, offset = read_topic_key(frame, offset, by_id=version >= TOPIC_IDS_FROM, flexible=True)
        partition_count = frame[offset] - 1
        if 0 <= partition_count < 0x7F:
            offset += 1
        else:
            partition_count, offset = read_count(frame, offset, flexible=True)
        total += partition_count
        _check_count(total)
        partitions: list[ProducePartition] = []
        for _ in range(partition_count):
            (index,) = _unpack_i32(frame, offset)
            size, offset = read_uvarint(frame, offset + 4)
            end = offset + size - 1
            if size == 0:
                end = offset
                partitions.append((index, None))
            elif end > len(frame):
                raise Malformed("records run past the end of the frame")
            else:
                partitions.append((index, frame[offset:end]))
            offset = end + 1 if frame[end] == 0 else skip_tags(frame, end)
        offset = offset + 1 if frame[offset] == 0 else skip_tags(frame, offset)
        topics.append((key, partitions))
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _read_classic(frame: memoryview, offset: int) -> ProduceRequest:
    transactional_id, offset = read_string(frame, offset, flexible=False)
    acks, timeout_ms = _ACKS.unpack_from(frame, offset)
    topic_count, offset = read_count(frame, offset + 6, flexible=False)
    _check_count(topic_count)
    total = 0
    topics: list[ProduceTopic] = []
    for _ in range(topic_count):
        key, offset = read_topic_key(frame, offset, by_id=False, flexible=False)
        partition_count, offset = read_count(frame, offset, flexible=False)
        total += partition_count
        _check_count(total)
        partitions: list[ProducePartition] = []
        for _ in range(partition_count):
            index, size = _INDEX_AND_SIZE.unpack_from(frame, offset)
            offset += 8
            if size < 0:
                if size != -1:
                    raise Malformed(f"records of {size} bytes")
                partitions.append((index, None))
                continue
            end = offset + size
            if end > len(frame):
                raise Malformed("records run past the end of the frame")
            partitions.append((index, frame[offset:end]))
            offset = end
        topics.append((key, partitions))
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _check_count(count: int) -> None:
    if count > MAX_TOPICS:
        raise Malformed(f"{count} topics or partitions in one request")


def write_response(
    results: list[tuple[str | bytes, list[ProduceResult]]],
    version: int,
    throttle_time_ms: int = 0,
    *,
    leaders: Mapping[tuple[int, int], CurrentLeader] = NO_LEADERS,
    endpoints: Sequence[NodeEndpoint] = (),
) -> bytes | bytearray:
    """`leaders` by where the refused partition stands: number of the topic, of the partition in it."""
    if leaders and version >= LEADERS_FROM:
        return _write_flexible(results, throttle_time_ms, leaders, endpoints)
    if len(results) == 1:
        ((key, partitions),) = results
        if len(partitions) == 1 and partitions[0][5] is None:
            return _write_single(key, partitions[0], version, throttle_time_ms)
    if version >= FLEXIBLE_FROM:
        return _write_flexible(results, throttle_time_ms)
    return _write_classic(results, version, throttle_time_ms)


def _write_single(key: str | bytes, result: ProduceResult, version: int, throttle_time_ms: int) -> bytes:
    """The answer about one partition, without a message: what follows the topic is of a fixed size."""
    index, error, base_offset, append_time, start_offset, _ = result
    if version >= FLEXIBLE_FROM:
        topic = b"\x02" + (key if isinstance(key, bytes) else _compact(key.encode()))
        # no record errors, no message, three times no tags, around the throttle time
        return topic + _pack_single_flexible(
            2, index, error, base_offset, append_time, start_offset, 1, 0, 0, 0, throttle_time_ms, 0
        )
    assert isinstance(key, str)
    name = key.encode()
    topic = _pack_single_topic(1, len(name)) + name
    if version >= 8:
        return topic + _pack_single_v8(
            1, index, error, base_offset, append_time, start_offset, 0, -1, throttle_time_ms
        )
    if version >= 5:
        return topic + _pack_single_v5(
            1, index, error, base_offset, append_time, start_offset, throttle_time_ms
        )
    return topic + _pack_single_v3(1, index, error, base_offset, append_time, throttle_time_ms)


def _compact(name: bytes) -> bytes:
    return uvarint(len(name) + 1) + name


def _write_flexible(
    results: list[tuple[str | bytes, list[ProduceResult]]],
    throttle_time_ms: int,
    leaders: Mapping[tuple[int, int], CurrentLeader] = NO_LEADERS,
    endpoints: Sequence[NodeEndpoint] = (),
) -> bytearray:
    out = bytearray(uvarint(len(results) + 1))
    for number, (key, partitions) in enumerate(results):
        if isinstance(key, bytes):
            out += key
        else:
            name = key.encode()
            out += uvarint(len(name) + 1)
            out += name
        out += uvarint(len(partitions) + 1)
        for place, (index, error, base_offset, append_time, start_offset, message) in enumerate(partitions):
            leader = leaders.get((number, place)) if leaders else None
            if message is None and leader is None:
                # no record errors, no message, no tags: 1, 0, 0
                out += _pack_flexible(index, error, base_offset, append_time, start_offset, 1, 0, 0)
            else:
                out += _RESULT.pack(index, error, base_offset, append_time, start_offset)
                out += _flexible_message(message)
                out += b"\x00" if leader is None else current_leader_field(CURRENT_LEADER_TAG, leader)
        out += b"\x00"
    out += I32.pack(throttle_time_ms)
    out += node_endpoints_field(endpoints)
    return out


def _flexible_message(message: str | RecordToBlame | None) -> bytes:
    """The errors of single records, each with its own message, and the message about the batch."""
    if message is None:
        return b"\x01\x00"
    if isinstance(message, str):
        return b"\x01" + _compact(message.encode())
    text = _compact(message.message.encode())
    return b"\x02" + I32.pack(message.record) + text + b"\x00" + text


def _classic_message(message: str | RecordToBlame | None) -> bytes:
    if message is None:
        return I32.pack(0) + b"\xff\xff"
    if isinstance(message, str):
        return I32.pack(0) + _text(message)
    text = _text(message.message)
    return I32.pack(1) + I32.pack(message.record) + text + text


def _text(message: str) -> bytes:
    raw = message.encode()
    return I16.pack(len(raw)) + raw


def _write_classic(
    results: list[tuple[str | bytes, list[ProduceResult]]], version: int, throttle_time_ms: int
) -> bytearray:
    out = bytearray(I32.pack(len(results)))
    for key, partitions in results:
        write_topic_key(out, key, flexible=False)
        out += I32.pack(len(partitions))
        for index, error, base_offset, append_time, start_offset, message in partitions:
            if version >= 5:
                out += _RESULT.pack(index, error, base_offset, append_time, start_offset)
            else:
                out += _RESULT_V4.pack(index, error, base_offset, append_time)
            if version >= 8:
                out += _classic_message(message)
    out += I32.pack(throttle_time_ms)
    return out
