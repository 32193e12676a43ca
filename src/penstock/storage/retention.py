"""Deletes the oldest segments of a log: below the start offset, past retention.bytes, or past retention.ms.

Kafka's rules. The age of a segment is that of its largest timestamp, so one record from the future keeps its segment;
a segment whose records have no timestamps has the age of its opening. One that compaction has emptied has no age of its
own: it goes with the next that has records, so it holds up nobody and does not move the start of the log by itself. By
size a segment goes only when what stays is still at least retention.bytes. The active segment goes too when all of it
has expired; an empty one never does, so a log keeps at least one segment. Without `delete` in cleanup.policy only the
start offset counts.
"""

from typing import TYPE_CHECKING

from penstock.model.errors import ApiError, ErrorCode
from penstock.storage.chores import Removal
from penstock.storage.options import LogOptions
from penstock.storage.segment import Segment
from penstock.storage.segments import Segments

if TYPE_CHECKING:
    from penstock.storage.log import Log

MAX_SEGMENTS = 16
"""Dropped in one step, so that a log with thousands of old segments does not hold up the others; ask again."""


def advance_start_offset(log: "Log", offset: int) -> Removal | None:
    """DeleteRecords: nothing below an offset is served any more. Segments that are wholly below it go."""
    if offset > log.end_offset:
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is past the end {log.end_offset}")
    if offset <= log.start_offset:
        return None
    log.start_offset = offset
    log.leader_epochs.truncate_from_start(offset)
    return _drop_first(log, log.segments.count_below(offset))


def apply_retention(log: "Log", *, now_ms: int, end_offset: int) -> Removal | None:
    """Drops what has expired below end_offset (the high watermark), a few segments at a time; None when there is no more."""
    if log.is_being_cut:
        return None
    count = expired_count(
        log.segments,
        log.options,
        now_ms=now_ms,
        start_offset=log.start_offset,
        log_end=log.end_offset,
        high_watermark=end_offset,
    )
    if count == 0:
        return None
    if count == len(log.segments):
        log.roll()
    first_kept = log.segments[count].base_offset
    if first_kept > log.start_offset:
        log.start_offset = first_kept
        log.leader_epochs.truncate_from_start(first_kept)
    return _drop_first(log, count)


def _drop_first(log: "Log", count: int) -> Removal | None:
    if count == 0:
        return None
    row = list(log.segments)
    log.segments.replace(row[count:])
    return log.removal_of(row[:count])


def expired_count(
    segments: Segments,
    options: LogOptions,
    *,
    now_ms: int,
    start_offset: int,
    log_end: int,
    high_watermark: int,
    limit: int = MAX_SEGMENTS,
) -> int:
    """How many segments, from the oldest, may go now; at most `limit`. None reaches past the high watermark."""
    count = segments.count_below(start_offset)
    if not options.delete_enabled:
        return min(count, limit)
    last = len(segments) - 1
    excess = -1
    if options.retention_bytes >= 0:
        excess = sum(segment.size_bytes for segment in segments) - options.retention_bytes
        for number in range(count):
            excess -= segments[number].size_bytes
    while count <= last and count < limit:
        segment = segments[count]
        if count == last:
            if segment.size_bytes == 0:
                break
            upper_bound = log_end
        else:
            upper_bound = segments[count + 1].base_offset
        if upper_bound > high_watermark:
            break
        if not (segment.size_bytes <= excess or _is_too_old(segments, count, options.retention_ms, now_ms)):
            break
        excess -= segment.size_bytes
        count += 1
    return min(count, limit)


def _is_too_old(segments: Segments, number: int, retention_ms: int, now_ms: int) -> bool:
    if retention_ms < 0:
        return False
    holder = _next_with_records(segments, number)
    if holder is None:
        return False
    newest_ms = holder.max_timestamp
    return now_ms - (newest_ms if newest_ms >= 0 else holder.created_ms) > retention_ms


def _next_with_records(segments: Segments, number: int) -> Segment | None:
    """created_ms of an empty segment says nothing: after a restart it is the time of that."""
    while number < len(segments):
        if segments[number].size_bytes:
            return segments[number]
        number += 1
    return None
