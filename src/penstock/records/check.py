"""What a topic wants of the records in a batch: the checks of Kafka's LogValidator, record by record.

Only some batches are opened for it: see `opening.py`. Kafka's codes: INVALID_RECORD for a record that is malformed, or has no
key on a compacted topic; INVALID_TIMESTAMP for one that is out of range. Where the offset deltas do not count 0, 1, 2 …, Kafka
writes a new batch, and did refuse it for a time. We refuse it with INVALID_RECORD: consumers would get offsets that the log does
not have.
"""

from typing import Final, NamedTuple

from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import NO_TIMESTAMP, BatchHeader, InvalidRecord
from penstock.records.compression import Plain
from penstock.records.walk import STEP_RECORDS, Steps, read_varint

UNBOUNDED_MS: Final = 2**63 - 1
_MAX_TIMESTAMP: Final = 2**63 - 1


class Wanted(NamedTuple):
    """Of the records in a batch, and of the batch that is stored for it."""

    max_message_bytes: int
    keys: bool = False
    """cleanup.policy=compact"""
    oldest_ms: int = -UNBOUNDED_MS
    newest_ms: int = UNBOUNDED_MS
    append_time: bool = False
    """The records' own timestamps do not count."""
    codec: int | None = None
    """None: the one that the batch has."""
    level: int | None = None


def invalid(detail: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, detail)


def check_records(plain: Plain, header: BatchHeader, wanted: Wanted) -> Steps[int]:
    """The largest timestamp of the unfolded records; ApiError for the first one that is not as wanted."""
    try:
        return (yield from _check(plain, header, wanted))
    except IndexError:
        raise invalid("a record passes the end of its batch") from None
    except InvalidRecord as error:
        raise invalid(str(error)) from error


def _check(plain: Plain, header: BatchHeader, wanted: Wanted) -> Steps[int]:
    size = len(plain)
    position = 0
    left = STEP_RECORDS
    base_timestamp = header.base_timestamp
    oldest_ms, newest_ms, wants_keys = wanted.oldest_ms, wanted.newest_ms, wanted.keys
    if wanted.append_time:
        oldest_ms, newest_ms = -UNBOUNDED_MS, UNBOUNDED_MS
    largest = NO_TIMESTAMP
    # The varints are read in place: nearly all have one byte or two, and calls were most of the time.
    for expected in range(header.records_count):
        if left <= 0:
            yield None
            left = STEP_RECORDS
        left -= 1
        length = plain[position]
        position += 1
        if length & 0x81:  # of more than one byte, or negative
            if length & 1 or plain[position] > 0x7F:
                length, position = read_varint(plain, position - 1)
            else:
                length = (length & 0x7F | plain[position] << 7) >> 1
                position += 1
        else:
            length >>= 1
        end = position + length
        if length < 0 or end > size:
            raise invalid("the length of a record is wrong")
        raw = plain[position + 1]  # behind the attributes, of which none are defined
        if raw > 0x7F:
            delta, position = read_varint(plain, position + 1)
            timestamp = base_timestamp + delta
        else:
            timestamp = base_timestamp + ((raw >> 1) ^ -(raw & 1))
            position += 2
        if timestamp > largest:
            largest = timestamp
        if not oldest_ms <= timestamp <= newest_ms and timestamp != NO_TIMESTAMP:
            raise timestamp_out_of_range(timestamp, expected, wanted)
        raw = plain[position]
        position += 1
        if raw > 0x7F:
            delta, position = read_varint(plain, position - 1)
        else:
            delta = (raw >> 1) ^ -(raw & 1)
        if delta != expected:
            raise invalid(
                f"a record does not have incremental offsets: expected offset {expected}, but it has {delta}"
            )
        raw = plain[position]
        position += 1
        if raw & 0x81:
            if raw == 1:  # null
                if wants_keys:
                    raise invalid("Compacted topic cannot accept message without key.")
            else:
                length, position = _length(plain, position - 1)
                position += length
        else:
            position += raw >> 1
        if position >= end:
            raise invalid("a field passes the end of its record")
        raw = plain[position]
        position += 1
        if raw & 0x81:
            if raw != 1:
                length, position = _length(plain, position - 1)
                position += length
        else:
            position += raw >> 1
        if position >= end:
            raise invalid("a field passes the end of its record")
        if plain[position] == 0:
            position += 1
        else:
            position, left = yield from _check_headers(plain, position, end, left)
        if position != end:
            raise invalid("the length of a record is wrong")
    if position != size:
        raise invalid(f"{size - position} bytes after the last record of a batch")
    if largest > _MAX_TIMESTAMP:
        raise timestamp_out_of_range(largest, header.last_offset_delta, wanted)
    return largest


def _check_headers(plain: Plain, position: int, end: int, left: int) -> Steps[tuple[int, int]]:
    """The position behind the headers of a record, and what is left of the step."""
    count, position = read_varint(plain, position)
    # The smallest header takes two bytes, so a count that cannot fit is refused before any loop.
    if count < 0 or count * 2 > end - position:
        raise invalid(f"a record claims {count} headers")
    for _ in range(count):
        if left <= 0:
            yield None
            left = STEP_RECORDS
        left -= 1
        position = _behind_header(plain, position, end)
    return position, left


def _behind_header(plain: Plain, position: int, end: int) -> int:
    length, position = read_varint(plain, position)
    if length < 0:
        raise invalid("a record header without a key")
    if position + length > end:
        raise invalid("a field passes the end of its record")
    length, position = _length(plain, position + length)
    if position + length > end:
        raise invalid("a field passes the end of its record")
    return position + length


def _length(plain: Plain, position: int) -> tuple[int, int]:
    """(length, next position) of a field; 0 for null."""
    length, position = read_varint(plain, position)
    if length < -1:
        raise invalid(f"a field of length {length}")
    return max(length, 0), position


def timestamp_out_of_range(timestamp: int, offset: int, wanted: Wanted) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_TIMESTAMP,
        f"Timestamp {timestamp} of message with offset {offset} is out of range. The timestamp should be within "
        f"[{wanted.oldest_ms}, {wanted.newest_ms}]",
    )
