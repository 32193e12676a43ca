"""Fetch, by hand: the codec of the hot path. The response leaves holes where records go; the connection fills them
from the log's files.

Request v4–18:  replica_id i32 (to v14), max_wait_ms i32, min_bytes i32, max_bytes i32, isolation_level i8, session_id i32 and
                session_epoch i32 (v7+), [topic: name (to v12) or id, [partition: index i32, current_leader_epoch i32 (v9+),
                fetch_offset i64, last_fetched_epoch i32 (v12+), log_start_offset i64 (v5+), partition_max_bytes i32]],
                forgotten topics [name or id, [i32]] (v7+), rack_id string (v11+). Flexible from v12. A follower says who it
                is in tag 1 from v15: replica_id i32, replica_epoch i64.
Response:       throttle_time_ms i32, error_code i16 and session_id i32 (v7+), [topic, [partition: index i32, error i16,
                high_watermark i64, last_stable_offset i64, log_start_offset i64 (v5+), aborted transactions [producer_id i64,
                first_offset i64], preferred_read_replica i32 (v11+), records bytes, tag 0 for a follower whose log has
                parted from the leader's (v12+): epoch i32, end_offset i64]]
"""

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from penstock.wire.errors import Malformed
from penstock.wire.fields import (
    I32,
    read_count,
    read_string,
    read_topic_key,
    skip_tags,
    write_topic_key,
)
from penstock.wire.leaders import CurrentLeader, NodeEndpoint, current_leader_field, node_endpoints_field
from penstock.wire.primitives import MAX_UNKNOWN_TAGS, read_uvarint, uvarint

FLEXIBLE_FROM: Final = 12
TOPIC_IDS_FROM: Final = 13
DEBUGGING_CONSUMER_ID: Final = -2
"""Kafka's replica id for those who look at any replica, also at one that does not lead."""

HEAD: Final = struct.Struct(">iiib")
SESSION: Final = struct.Struct(">ii")
_PARTITION_V4: Final = struct.Struct(">iqi")
_PARTITION_V5: Final = struct.Struct(">iqqi")
_PARTITION_V9: Final = struct.Struct(">iiqqi")
PARTITION_V12: Final = struct.Struct(">iiqiqi")
RESULT: Final = struct.Struct(">ihqqq")
RESULT_V4: Final = struct.Struct(">ihqq")
RESPONSE_HEAD: Final = struct.Struct(">ihi")
ABORTED: Final = struct.Struct(">qq")
REPLICA_STATE: Final = struct.Struct(">iq")
REPLICA_STATE_TAG: Final = 1
DIVERGING_EPOCH: Final = struct.Struct(">iq")
DIVERGING_EPOCH_TAG: Final = 0
CURRENT_LEADER_TAG: Final = 1
ENDPOINTS_FROM: Final = 16
_NO_ABORTED_NO_REPLICA: Final = b"\x00\xff\xff\xff\xff"
_NO_REPLICA: Final = -1


class FetchPartition(NamedTuple):
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


class FetchRequest(NamedTuple):
    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[tuple[str | bytes, list[FetchPartition]]]
    forgotten: list[tuple[str | bytes, list[int]]]
    rack_id: str
    replica_epoch: int = -1


class FetchResult(NamedTuple):
    """What one partition answers; `records` is a slice of a file, or None for none."""

    partition: int
    error_code: int
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: Any = None
    aborted_transactions: Sequence[tuple[int, int]] | None = None
    """(producer id, first offset); None for read_uncommitted."""
    preferred_read_replica: int = -1
    diverging_epoch: tuple[int, int] | None = None
    """For a follower whose log has parted from ours: our largest epoch up to its own, and the end offset of that."""
    current_leader: CurrentLeader | None = None
    """Who leads instead, where we do not (KIP-951)."""


def read_request(frame: memoryview, offset: int, version: int) -> FetchRequest:
    try:
        return _read(frame, offset, version)
    except (struct.error, IndexError):
        raise Malformed("the fetch request ends before its fields") from None
    except UnicodeDecodeError:
        raise Malformed("a name in the fetch request is not UTF-8") from None


def _read(frame: memoryview, offset: int, version: int) -> FetchRequest:
    replica_id = replica_epoch = -1
    if version < 15:
        (replica_id,) = I32.unpack_from(frame, offset)
        offset += 4
    max_wait_ms, min_bytes, max_bytes, isolation_level = HEAD.unpack_from(frame, offset)
    offset += 13
    session_id, session_epoch = 0, -1
    if version >= 7:
        session_id, session_epoch = SESSION.unpack_from(frame, offset)
        offset += 8
    topics, offset = _read_topics(frame, offset, version)
    forgotten: list[tuple[str | bytes, list[int]]] = []
    if version >= 7:
        forgotten, offset = _read_forgotten(frame, offset, version)
    rack_id = ""
    if version >= 11:
        rack, offset = read_string(frame, offset, flexible=version >= FLEXIBLE_FROM)
        rack_id = rack or ""
    if version >= 15:
        replica_id, replica_epoch = _replica_from_tags(frame, offset)
    return FetchRequest(
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch, topics, forgotten, rack_id,
        replica_epoch,
    )  # fmt: skip


def _read_topics(
    frame: memoryview, offset: int, version: int
) -> tuple[list[tuple[str | bytes, list[FetchPartition]]], int]:
    flexible = version >= FLEXIBLE_FROM
    count, offset = read_count(frame, offset, flexible=flexible)
    topics: list[tuple[str | bytes, list[FetchPartition]]] = []
    for _ in range(count):
        key, offset = read_topic_key(frame, offset, by_id=version >= TOPIC_IDS_FROM, flexible=flexible)
        partition_count, offset = read_count(frame, offset, flexible=flexible)
        partitions: list[FetchPartition] = []
        for _ in range(partition_count):
            if version >= 12:
                partitions.append(FetchPartition(*PARTITION_V12.unpack_from(frame, offset)))
                offset = skip_tags(frame, offset + 32)
            elif version >= 9:
                index, epoch, fetch_offset, start, size = _PARTITION_V9.unpack_from(frame, offset)
                partitions.append(FetchPartition(index, epoch, fetch_offset, -1, start, size))
                offset += 28
            elif version >= 5:
                index, fetch_offset, start, size = _PARTITION_V5.unpack_from(frame, offset)
                partitions.append(FetchPartition(index, -1, fetch_offset, -1, start, size))
                offset += 24
            else:
                index, fetch_offset, size = _PARTITION_V4.unpack_from(frame, offset)
                partitions.append(FetchPartition(index, -1, fetch_offset, -1, -1, size))
                offset += 16
        if flexible:
            offset = skip_tags(frame, offset)
        topics.append((key, partitions))
    return topics, offset


def _read_forgotten(
    frame: memoryview, offset: int, version: int
) -> tuple[list[tuple[str | bytes, list[int]]], int]:
    flexible = version >= FLEXIBLE_FROM
    count, offset = read_count(frame, offset, flexible=flexible)
    forgotten: list[tuple[str | bytes, list[int]]] = []
    for _ in range(count):
        key, offset = read_topic_key(frame, offset, by_id=version >= TOPIC_IDS_FROM, flexible=flexible)
        partition_count, offset = read_count(frame, offset, flexible=flexible)
        indexes = list(struct.unpack_from(f">{partition_count}i", frame, offset))
        offset += 4 * partition_count
        if flexible:
            offset = skip_tags(frame, offset)
        forgotten.append((key, indexes))
    return forgotten, offset


def _replica_from_tags(frame: memoryview, offset: int) -> tuple[int, int]:
    """From v15 a follower says who it is in a tagged field; consumers leave it out."""
    count, offset = read_uvarint(frame, offset)
    if count > MAX_UNKNOWN_TAGS:
        raise Malformed(f"{count} tagged fields of a Fetch")
    for _ in range(count):
        tag, offset = read_uvarint(frame, offset)
        size, offset = read_uvarint(frame, offset)
        if tag == REPLICA_STATE_TAG:
            replica_id, replica_epoch = REPLICA_STATE.unpack_from(frame, offset)
            return replica_id, replica_epoch
        offset += size
    return -1, -1


def write_response(
    topics: Sequence[tuple[str | bytes, Sequence[FetchResult]]],
    version: int,
    *,
    error_code: int = 0,
    session_id: int = 0,
    throttle_time_ms: int = 0,
    endpoints: Sequence[NodeEndpoint] = (),
) -> tuple[list[Any], int]:
    """The body as a list of byte strings and file slices in sending order, and its size in bytes.

    A slice is anything with `size_bytes`; the connection sends it from its file.
    """
    flexible = version >= FLEXIBLE_FROM
    parts: list[Any] = []
    total = 0
    out = bytearray()
    if version >= 7:
        out += RESPONSE_HEAD.pack(throttle_time_ms, error_code, session_id)
    else:
        out += I32.pack(throttle_time_ms)
    out += uvarint(len(topics) + 1) if flexible else I32.pack(len(topics))
    for key, partitions in topics:
        write_topic_key(out, key, flexible=flexible)
        out += uvarint(len(partitions) + 1) if flexible else I32.pack(len(partitions))
        for (
            index,
            error,
            high_watermark,
            stable_offset,
            start_offset,
            records,
            aborted,
            replica,
            diverging,
            leader,
        ) in partitions:
            size = 0 if records is None else records.size_bytes
            if flexible:
                out += RESULT.pack(index, error, high_watermark, stable_offset, start_offset)
                if aborted is None and replica == _NO_REPLICA:
                    out += _NO_ABORTED_NO_REPLICA
                else:
                    _write_aborted(out, aborted, flexible=True)
                    out += I32.pack(replica)
                out += uvarint(size + 1)
            else:
                if version >= 5:
                    out += RESULT.pack(index, error, high_watermark, stable_offset, start_offset)
                else:
                    out += RESULT_V4.pack(index, error, high_watermark, stable_offset)
                _write_aborted(out, aborted, flexible=False)
                if version >= 11:
                    out += I32.pack(replica)
                out += I32.pack(size)
            if size:
                total += len(out) + size
                parts.append(out)
                parts.append(records)
                out = bytearray()
            if flexible:
                if leader is not None:
                    out += current_leader_field(CURRENT_LEADER_TAG, leader)
                else:
                    out += b"\x00" if diverging is None else _diverging_epoch(diverging)
        if flexible:
            out += b"\x00"
    if flexible:
        out += node_endpoints_field(endpoints if version >= ENDPOINTS_FROM else ())
    if out:
        total += len(out)
        parts.append(out)
    return parts, total


def _diverging_epoch(epoch_and_end_offset: tuple[int, int]) -> bytes:
    """The partition's tagged fields with this one: their count, its tag and size, and the struct with no tags of its own."""
    size = DIVERGING_EPOCH.size + 1
    return bytes((1, DIVERGING_EPOCH_TAG, size)) + DIVERGING_EPOCH.pack(*epoch_and_end_offset) + b"\x00"


def _write_aborted(out: bytearray, aborted: Sequence[tuple[int, int]] | None, *, flexible: bool) -> None:
    if aborted is None:
        out += b"\x00" if flexible else b"\xff\xff\xff\xff"
        return
    out += uvarint(len(aborted) + 1) if flexible else I32.pack(len(aborted))
    for producer_id, first_offset in aborted:
        out += ABORTED.pack(producer_id, first_offset)
        if flexible:
            out += b"\x00"
