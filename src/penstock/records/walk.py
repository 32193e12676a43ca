"""Reading the records of a batch one by one, in Python: for internal topics and lookups by time.

A record: length, attributes (1 byte), timestamp delta, offset delta, key length, key, value length, value,
header count, then per header: key length, key, value length, value. Every number but the attributes is a
zigzag varint; length -1 is null. Not for the path of a produce or fetch request.

A batch of a few hundred bytes may hold a million records. Who walks a client's batch on the event loop does so in `Steps`.
"""

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from penstock.records import compression
from penstock.records.batch import (
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME,
    MAGIC,
    BatchHeader,
    Buffer,
    InvalidRecord,
    iterate_headers,
    read_header,
)

Headers = tuple[tuple[str, bytes | None], ...]
Result = TypeVar("Result")
Steps = Generator[Callable[[], Any] | None, Any, Result]
"""A walk that stops after each STEP_RECORDS, so that others can have their turn, and returns its result in the end. Where it
stops with a function, that is to be called first, best by a thread, and its result is sent back."""
AT_ONCE_BYTES: Final = 64 * 1024
"""A batch that unfolds to more is not opened at once: the slowest codec takes a few milliseconds for these."""
STEP_RECORDS: Final = 1024
"""Records, or headers of records, that are walked in one step: about a millisecond."""


class NotAtOnce(Exception):
    """What must be done with a batch before it is stored takes longer than the event loop may be held: do it in steps."""


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def iterate_records(batch: Buffer, header: BatchHeader | None = None) -> Iterator[Record]:
    """The records of the one batch that the buffer starts with; InvalidRecord on anything malformed.

    The CRC is not checked here: who stored the batch checked it.
    """
    header, payload = _open(batch, header)
    append_time = header.max_timestamp if header.timestamp_type == LOG_APPEND_TIME else None
    position = 0
    try:
        for _ in range(header.records_count):
            record, position = _read_record(payload, position, header)
            yield record if append_time is None else record._replace(timestamp=append_time)
    except IndexError:
        raise InvalidRecord("a record passes the end of its batch") from None
    if position != len(payload):
        raise InvalidRecord(f"{len(payload) - position} bytes after the last record of a batch")


def read_pairs(
    payload: compression.Plain, count: int, *, at_a_time: int = STEP_RECORDS
) -> Iterator[list[tuple[bytes | None, bytes | None]]]:
    """The keys and values of a batch's unfolded records, so many at a time; InvalidRecord on anything malformed up to there.

    For coordinators that load: a third of the time of `iterate_records`, which was most of theirs. The lengths are read in
    place, since nearly all have one byte or two, and what is behind the value is passed over.
    """
    if isinstance(payload, bytearray) and len(payload) <= AT_ONCE_BYTES:
        payload = bytes(payload)
    pairs: list[tuple[bytes | None, bytes | None]] = []
    key: compression.Plain | None
    value: compression.Plain | None
    position = 0
    try:
        for _ in range(count):
            if len(pairs) == at_a_time:
                yield pairs
                pairs = []
            length = payload[position]
            position += 1
            if length & 0x81:  # of more than one byte, or negative
                if length & 1 or payload[position] > 0x7F:
                    length, position = read_varint(payload, position - 1)
                else:
                    length = (length & 0x7F | payload[position] << 7) >> 1
                    position += 1
            else:
                length >>= 1
            end = position + length
            if length < 0 or end > len(payload):
                raise InvalidRecord("the length of a record is wrong")
            position += 1  # attributes: none are defined
            while payload[position] > 0x7F:  # of the timestamp delta
                position += 1
            position += 1
            while payload[position] > 0x7F:  # of the offset delta
                position += 1
            position += 1
            length = payload[position]
            if length & 0x81:
                key, position = _read_bytes(payload, position, end)
            else:
                position += 1 + (length >> 1)
                key = payload[position - (length >> 1) : position]
            length = payload[position]
            if length & 0x81:
                value, position = _read_bytes(payload, position, end)
            else:
                position += 1 + (length >> 1)
                value = payload[position - (length >> 1) : position]
            if position >= end:
                raise InvalidRecord("a field passes the end of its record")
            if isinstance(key, bytearray):
                key = bytes(key)
            if isinstance(value, bytearray):
                value = bytes(value)
            pairs.append((key, value))
            position = end
    except IndexError:
        raise InvalidRecord("a record passes the end of its batch") from None
    if position != len(payload):
        raise InvalidRecord(f"{len(payload) - position} bytes after the last record of a batch")
    yield pairs


def finish(steps: Steps[Result]) -> Result:
    """Walk to the end without a stop: for whoever holds up nobody."""
    work = None
    try:
        while True:
            work = steps.send(None if work is None else work())
    except StopIteration as done:
        result: Result = done.value
        return result


def unfold_in_steps(batch: Buffer, header: BatchHeader) -> Steps[compression.Plain]:
    """The plain records of a whole batch: at once where they are few, else by a thread."""
    payload = memoryview(batch)[HEADER_SIZE : header.size_bytes]
    if len(payload) <= AT_ONCE_BYTES and header.records_count <= STEP_RECORDS:
        try:
            return compression.unfold(header.codec, payload, max_bytes=AT_ONCE_BYTES)
        except compression.UnfoldsTooLarge:
            pass
    plain: compression.Plain = yield partial(compression.unfold, header.codec, payload)
    return plain


def find_timestamp(
    plain: compression.Plain, header: BatchHeader, timestamp: int, start_offset: int
) -> Steps[tuple[int, int] | None]:
    """(timestamp, offset) of the first record of a batch from an offset on whose timestamp is not below the asked one."""
    append_time = header.max_timestamp if header.timestamp_type == LOG_APPEND_TIME else None
    position = 0
    try:
        for number in range(header.records_count):
            if number % STEP_RECORDS == STEP_RECORDS - 1:
                yield None
            length, position = read_varint(plain, position)
            if length < 0:
                raise InvalidRecord("the length of a record is wrong")
            end = position + length
            delta, position = read_varint(plain, position + 1)
            found = header.base_timestamp + delta if append_time is None else append_time
            if found >= timestamp:
                delta, _ = read_varint(plain, position)
                if header.base_offset + delta >= start_offset:
                    return found, header.base_offset + delta
            position = end
    except IndexError:
        raise InvalidRecord("a record passes the end of its batch") from None
    return None


def iterate_batches_records(buffer: Buffer) -> Iterator[tuple[BatchHeader, Iterator[Record]]]:
    """Each whole batch of a buffer with its records, the way a log is replayed."""
    view = memoryview(buffer)
    for position, header in iterate_headers(view):
        yield header, iterate_records(view[position : position + header.size_bytes], header)


def _open(batch: Buffer, header: BatchHeader | None) -> tuple[BatchHeader, bytes]:
    """The header and the unfolded records of a batch."""
    if len(batch) < HEADER_SIZE:
        raise InvalidRecord("shorter than a batch header")
    if header is None:
        header = read_header(batch)
    end = header.batch_length + LENGTH_OVERHEAD
    if header.magic != MAGIC or end < HEADER_SIZE or end > len(batch):
        raise InvalidRecord("not a whole record batch of format 2")
    return header, compression.decompress(header.codec, memoryview(batch)[HEADER_SIZE:end])


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """(value, next position) of a zigzag varint; IndexError past the end, InvalidRecord beyond 64 bits."""
    byte = buffer[position]
    position += 1
    raw = byte & 0x7F
    shift = 7
    while byte & 0x80:
        if shift > 63:
            raise InvalidRecord("a varint of more than ten bytes")
        byte = buffer[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        shift += 7
    return (raw >> 1) ^ -(raw & 1), position


def _read_record(payload: compression.Plain, position: int, header: BatchHeader) -> tuple[Record, int]:
    length, position = read_varint(payload, position)
    end = position + length
    if length < 0 or end > len(payload):
        raise InvalidRecord("the length of a record is wrong")
    position += 1  # attributes: none are defined
    timestamp_delta, position = read_varint(payload, position)
    offset_delta, position = read_varint(payload, position)
    key, position = _read_bytes(payload, position, end)
    value, position = _read_bytes(payload, position, end)
    count, position = read_varint(payload, position)
    # The smallest header takes two bytes, so a count that cannot fit is refused before any loop.
    if count < 0 or count * 2 > end - position:
        raise InvalidRecord(f"a record claims {count} headers")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, position = _read_bytes(payload, position, end)
        if name is None:
            raise InvalidRecord("a record header without a key")
        try:
            text = name.decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidRecord("a record header whose key is not UTF-8") from None
        header_value, position = _read_bytes(payload, position, end)
        headers.append((text, header_value))
    if position != end:
        raise InvalidRecord("the length of a record is wrong")
    record = Record(
        header.base_offset + offset_delta, header.base_timestamp + timestamp_delta, key, value, tuple(headers)
    )
    return record, end


def _read_bytes(payload: compression.Plain, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(payload, position)
    if length < 0:
        if length != -1:
            raise InvalidRecord(f"a field of length {length}")
        return None, position
    if position + length > end:
        raise InvalidRecord("a field passes the end of its record")
    return bytes(payload[position : position + length]), position + length
