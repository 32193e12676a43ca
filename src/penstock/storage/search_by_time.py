"""Searches for a timestamp in a segment, in steps: other clients are served in between. Threads read what is not in memory."""

from functools import partial
from itertools import islice

from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import BatchHeader, InvalidRecord
from penstock.records.walk import STEP_RECORDS, Steps, find_timestamp, unfold_in_steps
from penstock.runtime.page_cache import in_steps
from penstock.storage.segment import Segment, TimestampOffset


def search(segment: Segment, timestamp: int, start_offset: int) -> Steps[TimestampOffset | None]:
    """The first record at or above start_offset whose timestamp is not below the asked one."""
    from_offset = yield from in_steps(partial(segment.time_index.lookup, timestamp))
    from_offset = max(from_offset, start_offset)
    position = yield from in_steps(partial(segment.offset_index.lookup, from_offset))
    while position < segment.size_bytes:
        position, header = yield from in_steps(partial(_reaching, segment, position, timestamp, start_offset))
        if header is None:
            yield None
            continue
        batch = yield from in_steps(partial(segment.open_file().read_at, position, header.size_bytes))
        if len(batch) < header.size_bytes:
            raise segment.damaged(position)
        try:
            plain = yield from unfold_in_steps(batch, header)
            found = yield from find_timestamp(plain, header, timestamp, start_offset)
        except InvalidRecord as error:
            raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
        if found is not None:
            return TimestampOffset(*found, header.partition_leader_epoch)
        position += header.size_bytes
    return None


def _reaching(
    segment: Segment, position: int, timestamp: int, start_offset: int
) -> tuple[int, BatchHeader | None]:
    """The first of the next STEP_RECORDS batches that reaches a time and an offset; else where they end."""
    for at, header in islice(segment.headers(position), STEP_RECORDS):
        if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
            return at, header
        position = at + header.size_bytes
    return position, None
