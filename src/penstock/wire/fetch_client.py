"""Fetch from the asking side: what a follower asks for, and answers read so that the records stay where they were received.

The forms are those of `fetch`, which has the broker's side.
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from penstock.wire.errors import Malformed
from penstock.wire.fetch import (
    ABORTED,
    DIVERGING_EPOCH,
    DIVERGING_EPOCH_TAG,
    FLEXIBLE_FROM,
    HEAD,
    PARTITION_V12,
    REPLICA_STATE,
    REPLICA_STATE_TAG,
    RESPONSE_HEAD,
    RESULT,
    RESULT_V4,
    SESSION,
    TOPIC_IDS_FROM,
    FetchPartition,
)
from penstock.wire.fields import I32, read_count, read_topic_key, skip_tags
from penstock.wire.primitives import read_tag, read_uvarint, uvarint
from penstock.wire.schema import ZERO_UUID

TAGGED_REPLICA_FROM: Final = 15
READ_UNCOMMITTED: Final = 0


class PartitionAnswer(NamedTuple):
    topic_id: bytes
    """All zeros before version 13, which has names instead."""
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]]
    """(producer id, first offset)"""
    records: memoryview | None
    """A part of the frame: nothing is copied, and the frame lives as long as it does. None: no records."""
    preferred_read_replica: int
    diverging_epoch: tuple[int, int] | None
    """(epoch, end offset)"""


class FetchAnswer(NamedTuple):
    error_code: int
    session_id: int
    throttle_time_ms: int
    partitions: list[PartitionAnswer]


def write_request(
    version: int,
    *,
    replica_id: int,
    replica_epoch: int,
    max_wait_ms: int,
    min_bytes: int,
    max_bytes: int,
    session_id: int,
    session_epoch: int,
    topics: Sequence[tuple[bytes, Sequence[FetchPartition]]],
    forgotten: Sequence[tuple[bytes, Sequence[int]]],
    rack_id: str = "",
) -> bytes:
    """A follower's request, versions 15 to 18, which differ in nothing that it says: topics by id, who it is in a tag."""
    if version < TAGGED_REPLICA_FROM:
        raise ValueError(f"a follower does not ask in version {version}")
    out = bytearray()
    out += HEAD.pack(max_wait_ms, min_bytes, max_bytes, READ_UNCOMMITTED)
    out += SESSION.pack(session_id, session_epoch)
    out += uvarint(len(topics) + 1)
    for topic_id, partitions in topics:
        out += topic_id
        out += uvarint(len(partitions) + 1)
        for partition in partitions:
            out += PARTITION_V12.pack(*partition)
            out += b"\x00"
        out += b"\x00"
    out += uvarint(len(forgotten) + 1)
    for topic_id, indexes in forgotten:
        out += topic_id
        out += uvarint(len(indexes) + 1)
        out += struct.pack(f">{len(indexes)}i", *indexes)
        out += b"\x00"
    rack = rack_id.encode()
    out += uvarint(len(rack) + 1)
    out += rack
    out += bytes((1, REPLICA_STATE_TAG, REPLICA_STATE.size + 1))
    out += REPLICA_STATE.pack(replica_id, replica_epoch)
    out += b"\x00"
    return bytes(out)


def read_response(body: memoryview, version: int) -> FetchAnswer:
    """The answer behind its header, versions 4 to 18; Malformed where it is none."""
    try:
        return _read(body, version)
    except (struct.error, IndexError):
        raise Malformed("the fetch answer ends before its fields") from None
    except UnicodeDecodeError:
        raise Malformed("a name in the fetch answer is not UTF-8") from None


def _read(body: memoryview, version: int) -> FetchAnswer:
    flexible = version >= FLEXIBLE_FROM
    error_code = session_id = 0
    if version >= 7:
        throttle_time_ms, error_code, session_id = RESPONSE_HEAD.unpack_from(body)
        offset = RESPONSE_HEAD.size
    else:
        (throttle_time_ms,) = I32.unpack_from(body)
        offset = I32.size
    topic_count, offset = read_count(body, offset, flexible=flexible)
    found: list[PartitionAnswer] = []
    for _ in range(topic_count):
        key, offset = read_topic_key(body, offset, by_id=version >= TOPIC_IDS_FROM, flexible=flexible)
        topic_id = key if isinstance(key, bytes) else ZERO_UUID
        partition_count, offset = read_count(body, offset, flexible=flexible)
        for _ in range(partition_count):
            partition, offset = _read_partition(topic_id, body, offset, version)
            found.append(partition)
        if flexible:
            offset = skip_tags(body, offset)
    return FetchAnswer(error_code, session_id, throttle_time_ms, found)


def _read_partition(
    topic_id: bytes, body: memoryview, offset: int, version: int
) -> tuple[PartitionAnswer, int]:
    flexible = version >= FLEXIBLE_FROM
    log_start_offset = preferred_read_replica = -1
    if version >= 5:
        index, error, high_watermark, stable_offset, log_start_offset = RESULT.unpack_from(body, offset)
        offset += RESULT.size
    else:
        index, error, high_watermark, stable_offset = RESULT_V4.unpack_from(body, offset)
        offset += RESULT_V4.size
    aborted_count, offset = read_count(body, offset, flexible=flexible)
    aborted = []
    for _ in range(aborted_count):
        aborted.append(ABORTED.unpack_from(body, offset))
        offset += ABORTED.size
        if flexible:
            offset = skip_tags(body, offset)
    if version >= 11:
        (preferred_read_replica,) = I32.unpack_from(body, offset)
        offset += I32.size
    if flexible:
        size, offset = read_uvarint(body, offset)
        size -= 1
    else:
        (size,) = I32.unpack_from(body, offset)
        offset += I32.size
    records = None
    if size > 0:
        if size > len(body) - offset:
            raise Malformed("the records run past the end of the fetch answer")
        records = body[offset : offset + size]
        offset += size
    diverging_epoch = None
    if flexible:
        diverging_epoch, offset = _read_diverging_epoch(body, offset)
    answer = PartitionAnswer(
        topic_id, index, error, high_watermark, stable_offset, log_start_offset, aborted, records,
        preferred_read_replica, diverging_epoch,
    )  # fmt: skip
    return answer, offset


def _read_diverging_epoch(body: memoryview, offset: int) -> tuple[tuple[int, int] | None, int]:
    """Of a partition's tagged fields only this one means something here, and mostly there are none."""
    if body[offset] == 0:
        return None, offset + 1
    found = None
    count, offset = read_uvarint(body, offset)
    for _ in range(count):
        tag, value, offset = read_tag(body, offset, len(body))
        if tag == DIVERGING_EPOCH_TAG:
            epoch, end_offset = DIVERGING_EPOCH.unpack_from(body, value)
            found = epoch, end_offset
    return found, offset
