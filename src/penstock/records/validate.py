"""The checks on one partition's part of a produce request, before anything is stored.

Per batch, never per record. The CRC proves that the bytes arrived as the client made them, and the lengths of uncompressed
records must add up to the batch. What is inside is believed, unless the batch must be opened anyway: see `opening.py`.
"""

import struct
from typing import Final

from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    MAGIC_AT,
    BatchHeader,
    Buffer,
    read_header,
)
from penstock.records.check import UNBOUNDED_MS, invalid
from penstock.records.compression import ZSTD
from penstock.records.crc import crc32c
from penstock.records.walk import STEP_RECORDS, NotAtOnce, Steps

MAX_RECORDS: Final = 1_000_000
"""Of one batch: what librdkafka allows at most. The Java client splits a batch that is refused for it, and sends its parts."""
LEAST_RECORD_BYTES: Final = 7
CHAINED_AT_ONCE: Final = 10_000
"""Records of unlike sizes whose lengths are followed at once: as many as a batch of librdkafka has by default."""
SUMMED_AT_ONCE_BYTES: Final = 4 * 1024 * 1024
"""A larger batch has its CRC computed by a thread: a gigabyte takes a tenth of a second and more."""
_SHORT_RUN_COST = 4  # of the comparison of a run, in records that are followed singly
_COPY_BYTES_PER_RECORD = 2048
_FIRST_RUN = 64  # records compared at once; eight times as many after each success


def validate(
    records: memoryview,
    *,
    max_message_bytes: int,
    now_ms: int,
    log_append_time: bool = False,
    timestamp_after_max_ms: int = UNBOUNDED_MS,
    in_thread: bool = False,
) -> BatchHeader:
    """The header of the one batch that `records` must be; ApiError with Kafka's code when it is anything else. Its records are
    still to be checked: by `check_chain`, or by who opens it. NotAtOnce, unless `in_thread`, when that takes long.
    """
    try:
        header = read_header(records)
    except struct.error:
        raise _malformed(records) from None
    (base_offset, batch_length, _, magic, crc, attributes, last_offset_delta, _, max_timestamp,
     producer_id, _, base_sequence, count) = header  # fmt: skip
    size = len(records)
    if magic != MAGIC or batch_length + LENGTH_OVERHEAD != size:
        raise _malformed(records)
    if base_offset != 0:
        raise invalid(f"the base offset of a produced batch must be 0, not {base_offset}")
    if size > max_message_bytes:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size is {size} bytes which exceeds the maximum configured value of "
            f"{max_message_bytes}.",
        )
    if size > SUMMED_AT_ONCE_BYTES and not in_thread:
        raise NotAtOnce
    if crc32c(records[ATTRIBUTES_AT:]) != crc:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, "Record is corrupt: the CRC does not match its content.")
    if count <= 0 or count != last_offset_delta + 1:
        raise invalid(f"{count} records do not agree with a last offset delta of {last_offset_delta}")
    if count > MAX_RECORDS:
        if not attributes & CODEC_MASK and count * LEAST_RECORD_BYTES > size:
            raise _do_not_add_up()
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch has {count} records which exceeds the maximum of {MAX_RECORDS}.",
        )
    if attributes & CONTROL_BIT:
        raise invalid("Clients are not allowed to write control records.")
    if producer_id >= 0 and base_sequence < 0:
        raise invalid(f"invalid sequence number {base_sequence} in a batch with producer id {producer_id}")
    codec = attributes & CODEC_MASK
    if codec > ZSTD:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"unknown compression type {codec}")
    if attributes & LOG_APPEND_TIME_BIT:
        raise ApiError(
            ErrorCode.INVALID_TIMESTAMP, "Producer should not set timestamp type to LogAppendTime."
        )
    if not log_append_time and max_timestamp - now_ms > timestamp_after_max_ms:
        raise ApiError(ErrorCode.INVALID_TIMESTAMP, f"Timestamp {max_timestamp} is out of range.")
    return header


def check_chain(batch: memoryview, count: int) -> None:
    """INVALID_RECORD unless the length fields of an uncompressed batch's records lead, record by record, exactly to its end.
    NotAtOnce when that takes long.
    """
    end = len(batch)
    if count == 1 and end > HEADER_SIZE + 1 and _is_one_record(batch, end):
        return
    # Indexing and striding bytes is several times as fast as a memoryview, which pays for the copy unless
    # records are large.
    data: Buffer = bytes(batch) if end < _COPY_BYTES_PER_RECORD * count else batch
    position, left = _follow(data, HEADER_SIZE, count, CHAINED_AT_ONCE)
    if left and position > 0:
        raise NotAtOnce
    if position != end:
        raise _do_not_add_up()


def _is_one_record(batch: memoryview, end: int) -> bool:
    """Whether the length of the first record, of up to two bytes, leads to the end: what a producer sends that does not wait for
    more records. Where not, `_follow` says what it is.
    """
    length = batch[HEADER_SIZE]
    width = 1
    if length > 0x7F:
        high = batch[HEADER_SIZE + 1]
        if high > 0x7F:
            return False
        length += (high << 7) - 0x80
        width = 2
    return HEADER_SIZE + width + (length >> 1) == end and not length & 1


def check_chain_in_steps(batch: memoryview, count: int) -> Steps[None]:
    data: Buffer = bytes(batch) if len(batch) < _COPY_BYTES_PER_RECORD * count else batch
    position = HEADER_SIZE
    while True:
        position, count = _follow(data, position, count, STEP_RECORDS)
        if count == 0 or position < 0:
            break
        yield None
    if position != len(batch):
        raise _do_not_add_up()


def _follow(data: Buffer, position: int, count: int, effort: int) -> tuple[int, int]:
    """Follow the lengths of so many records: the position behind them, or negative where they lead out of the batch; and how many
    are left when the effort is used up.

    Producers send runs of records of one size, so their length fields lie at a fixed stride. A run is checked
    in C: take every stride-th byte and strip the expected one; what was stripped is the run. Records of mixed
    sizes are walked singly.
    """
    end = len(data)
    previous_stride = 0
    run_limit = _FIRST_RUN
    try:
        while count and effort > 0:
            effort -= 1
            byte = length = data[position]
            width = 1
            while byte > 0x7F:
                if width == 5:
                    return -1, count
                byte = data[position + width]
                # adds the next seven bits and takes off the continuation bit that the last byte brought along
                length += (byte << (7 * width)) - (0x80 << (7 * (width - 1)))
                width += 1
            if length & 1:  # zigzag: an odd number is a negative length
                return -1, count
            stride = width + (length >> 1)
            if stride != previous_stride:
                previous_stride = stride
                run_limit = _FIRST_RUN
                position += stride
                count -= 1
                continue
            effort -= _SHORT_RUN_COST
            run = count if count < run_limit else run_limit
            stop = position + run * stride
            if stop > end:
                run = (end - position) // stride
                stop = position + run * stride
                if run == 0:
                    return -1, count
            for first in range(position, position + width):
                column = bytes(data[first:stop:stride])
                differing = len(column.lstrip(column[:1]))
                if differing:
                    run = len(column) - differing
                    stop = position + run * stride
            position = stop
            count -= run
            run_limit *= 8
    except IndexError:
        return -1, count
    return position, count


def _malformed(records: memoryview) -> ApiError:
    """Why bytes that are not one whole batch of format 2 are refused, in Kafka's order."""
    size = len(records)
    if size == 0:
        return invalid("a produce request must have at least one record batch per partition")
    if size > MAGIC_AT:
        magic = records[MAGIC_AT]
        if magic < MAGIC:
            return ApiError(
                ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
                f"record format {magic} is no longer supported; use format 2",
            )
        if magic > MAGIC:
            return invalid(f"unknown record format {magic}")
        batch_length = int.from_bytes(records[8:12], "big", signed=True)
        if HEADER_SIZE <= batch_length + LENGTH_OVERHEAD < size - MAGIC_AT:
            return invalid("a produce request may have exactly one record batch per partition")
    return ApiError(ErrorCode.CORRUPT_MESSAGE, "the size of the record batch is not what its header says")


def _do_not_add_up() -> ApiError:
    return invalid("the lengths of the records do not add up to the batch")
