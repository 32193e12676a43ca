"""Which of a log's oldest segments retention.ms and retention.bytes have used up."""

from penstock.storage.options import LogOptions
from penstock.storage.segment import Segment


def expired_count(segments: list[Segment], options: LogOptions, *, now_ms: int, end_offset: int) -> int:
    """How many segments, from the oldest, may go.

    None reaches past end_offset (the high watermark); an empty one never goes.
    """
    if not options.delete_enabled:
        return 0
    excess = sum(segment.size_bytes for segment in segments) - options.retention_bytes
    count = 0
    for segment in segments:
        following = segments[count + 1].base_offset if count + 1 < len(segments) else end_offset
        if segment.size_bytes == 0 or following > end_offset:
            break
        newest_ms = segment.max_timestamp if segment.max_timestamp >= 0 else segment.created_ms
        too_old = 0 <= options.retention_ms < now_ms - newest_ms
        too_much = options.retention_bytes >= 0 and excess >= segment.size_bytes
        if not (too_old or too_much):
            break
        excess -= segment.size_bytes
        count += 1
    return count
