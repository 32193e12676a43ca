"""The answer to a Fetch, versions 4 to 17, read so that the records stay where they were received.

throttle_time_ms i32, error_code i16 and session_id i32 (v7+), [topic: name (to v12) or id, [partition: index i32, error i16,
high_watermark i64, last_stable_offset i64, log_start_offset i64 (v5+), aborted transactions [producer_id i64, first_offset i64],
preferred_read_replica i32 (v11+), records bytes]]. Flexible from v12.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from penstock.wire.errors import Malformed
from penstock.wire.fetch import FLEXIBLE_FROM, TOPIC_IDS_FROM
from penstock.wire.fields import I32, read_count, read_topic_key, skip_tags
from penstock.wire.primitives import read_uvarint

_RESULT_V4: Final = struct.Struct(">ihqq")
_RESULT: Final = struct.Struct(">ihqqq")
_ERROR: Final = struct.Struct(">hi")
_ABORTED: Final = struct.Struct(">qq")


class PartitionAnswer(NamedTuple):
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]]
    """(producer id, first offset)"""
    records: memoryview


def read_fetch_answer(frame: memoryview, offset: int, version: int) -> tuple[int, list[PartitionAnswer]]:
    """(error code of the whole, partitions); Malformed where it is none."""
    try:
        return _read(frame, offset, version)
    except (struct.error, IndexError):
        raise Malformed("the fetch answer ends before its fields") from None
    except UnicodeDecodeError:
        raise Malformed("a name in the fetch answer is not UTF-8") from None


def _read(frame: memoryview, offset: int, version: int) -> tuple[int, list[PartitionAnswer]]:
    flexible = version >= FLEXIBLE_FROM
    offset += 4
    error_code = 0
    if version >= 7:
        error_code, _ = _ERROR.unpack_from(frame, offset)
        offset += 6
    topic_count, offset = read_count(frame, offset, flexible=flexible)
    found: list[PartitionAnswer] = []
    for _ in range(topic_count):
        _, offset = read_topic_key(frame, offset, by_id=version >= TOPIC_IDS_FROM, flexible=flexible)
        partition_count, offset = read_count(frame, offset, flexible=flexible)
        for _ in range(partition_count):
            partition, offset = _read_partition(frame, offset, version)
            found.append(partition)
        if flexible:
            offset = skip_tags(frame, offset)
    return error_code, found


def _read_partition(frame: memoryview, offset: int, version: int) -> tuple[PartitionAnswer, int]:
    flexible = version >= FLEXIBLE_FROM
    log_start_offset = -1
    if version >= 5:
        index, error, high_watermark, stable, log_start_offset = _RESULT.unpack_from(frame, offset)
        offset += _RESULT.size
    else:
        index, error, high_watermark, stable = _RESULT_V4.unpack_from(frame, offset)
        offset += _RESULT_V4.size
    aborted_count, offset = read_count(frame, offset, flexible=flexible)
    aborted = []
    for _ in range(aborted_count):
        aborted.append(_ABORTED.unpack_from(frame, offset))
        offset += _ABORTED.size
        if flexible:
            offset = skip_tags(frame, offset)
    if version >= 11:
        offset += 4
    if flexible:
        size, offset = read_uvarint(frame, offset)
        size -= 1
    else:
        (size,) = I32.unpack_from(frame, offset)
        offset += 4
    size = max(size, 0)
    if size > len(frame) - offset:
        raise Malformed("the records run past the end of the fetch answer")
    records = frame[offset : offset + size]
    offset += size
    if flexible:
        offset = skip_tags(frame, offset)
    return PartitionAnswer(index, error, high_watermark, stable, log_start_offset, aborted, records), offset
