"""Batches that must be opened: the topic is compacted, bounds how old records may be, or stores another codec (compression.type).

Opening is to unfold the payload, to check its records, and to fold them again where that is wanted. The records stay as they are.
As in Kafka the header's largest timestamp is made right, and a batch that has the wanted codec already is stored as it came,
whatever its level.

What is small is opened at once. A batch that is not (`NotAtOnce`) is opened in parts: `unfold_batch` and `fold` in a thread, the
check in steps.
"""

from penstock.model.errors import ApiError, ErrorCode
from penstock.records import compression
from penstock.records.batch import (
    ATTRIBUTES_AT,
    BATCH_LENGTH_AT,
    CODEC_MASK,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAX_TIMESTAMP_AT,
    BatchHeader,
    InvalidRecord,
)
from penstock.records.build import sign
from penstock.records.check import Wanted, check_records, invalid
from penstock.records.compression import MAX_DECOMPRESSED_BYTES, Plain, UnfoldsTooLarge
from penstock.records.walk import AT_ONCE_BYTES, STEP_RECORDS, NotAtOnce


def open_at_once(batch: memoryview, header: BatchHeader, wanted: Wanted) -> memoryview:
    """The batch that is to be stored: this one, unless something in it changes. ApiError when it is refused, NotAtOnce when it is
    not small.
    """
    if header.records_count > STEP_RECORDS:
        raise NotAtOnce
    try:
        plain = unfold_batch(batch, header, max_bytes=AT_ONCE_BYTES)
    except UnfoldsTooLarge:
        raise NotAtOnce from None
    steps = check_records(plain, header, wanted)
    try:
        next(steps)
    except StopIteration as done:
        return fold(batch, header, plain, wanted, max_timestamp=done.value)
    raise NotAtOnce


def unfold_batch(batch: memoryview, header: BatchHeader, *, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> Plain:
    """The records without their codec; UnfoldsTooLarge beyond a bound."""
    payload = batch[HEADER_SIZE : header.size_bytes]
    if len(payload) > max_bytes:
        raise UnfoldsTooLarge(max_bytes)
    try:
        return compression.unfold(header.codec, payload, max_bytes=max_bytes)
    except UnfoldsTooLarge:
        raise
    except InvalidRecord as error:
        raise invalid(str(error)) from error


def fold(
    batch: memoryview, header: BatchHeader, plain: Plain, wanted: Wanted, *, max_timestamp: int
) -> memoryview:
    """The batch that is to be stored, with these records. It may be larger than it came, and then too large."""
    codec = wanted.codec
    changes_time = max_timestamp != header.max_timestamp and not wanted.append_time
    if codec is None or codec == header.codec:
        if not changes_time:
            return batch
    else:
        if codec == compression.NONE:  # which copies: not before it is known to fit
            _check_size(HEADER_SIZE + len(plain), wanted)
            payload = plain
        else:
            payload = compression.compress(codec, plain, level=wanted.level)
            _check_size(HEADER_SIZE + len(payload), wanted)
        batch = _with_payload(batch, payload, codec)
    if changes_time:
        batch[MAX_TIMESTAMP_AT : MAX_TIMESTAMP_AT + 8] = max_timestamp.to_bytes(8, "big", signed=True)
    sign(batch)
    return batch


def _check_size(size: int, wanted: Wanted) -> None:
    if size > wanted.max_message_bytes:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size is {size} bytes in the topic's compression.type, which exceeds the maximum "
            f"configured value of {wanted.max_message_bytes}.",
        )


def _with_payload(batch: memoryview, payload: Plain, codec: int) -> memoryview:
    made = bytearray(HEADER_SIZE + len(payload))
    made[:HEADER_SIZE] = batch[:HEADER_SIZE]
    made[BATCH_LENGTH_AT : BATCH_LENGTH_AT + 4] = (len(made) - LENGTH_OVERHEAD).to_bytes(4, "big")
    made[ATTRIBUTES_AT + 1] = made[ATTRIBUTES_AT + 1] & ~CODEC_MASK | codec
    made[HEADER_SIZE:] = payload
    return memoryview(made)
