"""The checks on one partition's part of a produce request, before anything is stored.

Per batch, never per record, with two exceptions that need each record: null keys on a compacted topic, and a
lower bound on timestamps (message.timestamp.before.max.ms, unbounded by default). The CRC proves that the
bytes arrived as the client made them; the header's max timestamp is believed.
"""

import struct

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
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    InvalidRecord,
    read_header,
)
from penstock.records.compression import ZSTD
from penstock.records.crc import crc32c
from penstock.records.walk import iterate_records

UNBOUNDED_MS = 2**63 - 1

_COPY_BYTES_PER_RECORD = 2048
_FIRST_RUN = 64  # records compared at once; eight times as many after each success


def validate(
    records: memoryview,
    *,
    max_message_bytes: int,
    now_ms: int,
    compacted: bool = False,
    log_append_time: bool = False,
    timestamp_before_max_ms: int = UNBOUNDED_MS,
    timestamp_after_max_ms: int = UNBOUNDED_MS,
) -> BatchHeader:
    """The header of the one batch that `records` must be; ApiError with Kafka's code when it is anything
    else.
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
        raise _invalid(f"the base offset of a produced batch must be 0, not {base_offset}")
    if size > max_message_bytes:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size is {size} bytes which exceeds the maximum configured value of "
            f"{max_message_bytes}.",
        )
    if crc32c(records[ATTRIBUTES_AT:]) != crc:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, "Record is corrupt: the CRC does not match its content.")
    if count <= 0 or count != last_offset_delta + 1:
        raise _invalid(f"{count} records do not agree with a last offset delta of {last_offset_delta}")
    if attributes & CONTROL_BIT:
        raise _invalid("Clients are not allowed to write control records.")
    if producer_id >= 0 and base_sequence < 0:
        raise _invalid(f"invalid sequence number {base_sequence} in a batch with producer id {producer_id}")
    codec = attributes & CODEC_MASK
    if codec == 0:
        if not records_chain(records, count):
            raise _invalid("the lengths of the records do not add up to the batch")
    elif codec > ZSTD:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"unknown compression type {codec}")
    if attributes & LOG_APPEND_TIME_BIT:
        raise ApiError(
            ErrorCode.INVALID_TIMESTAMP, "Producer should not set timestamp type to LogAppendTime."
        )
    if not log_append_time:
        if max_timestamp - now_ms > timestamp_after_max_ms:
            raise _timestamp_out_of_range(max_timestamp)
        if timestamp_before_max_ms != UNBOUNDED_MS:
            _check_oldest_timestamp(records, header, now_ms - timestamp_before_max_ms)
    if compacted:
        _check_keys(records, header)
    return header


def records_chain(batch: memoryview, count: int) -> bool:
    """Whether the length fields of an uncompressed batch's records lead, record by record, exactly to its end.

    Producers send runs of records of one size, so their length fields lie at a fixed stride. A run is checked
    in C: take every stride-th byte and strip the expected one; what was stripped is the run. Records of mixed
    sizes are walked singly.
    """
    position = HEADER_SIZE
    end = len(batch)
    # Indexing and striding bytes is several times as fast as a memoryview, which pays for the copy unless
    # records are large.
    data: Buffer = bytes(batch) if end < _COPY_BYTES_PER_RECORD * count else batch
    previous_stride = 0
    run_limit = _FIRST_RUN
    try:
        while count:
            byte = length = data[position]
            width = 1
            while byte > 0x7F:
                if width == 5:
                    return False
                byte = data[position + width]
                # adds the next seven bits and takes off the continuation bit that the last byte brought along
                length += (byte << (7 * width)) - (0x80 << (7 * (width - 1)))
                width += 1
            if length & 1:  # zigzag: an odd number is a negative length
                return False
            stride = width + (length >> 1)
            if stride != previous_stride:
                previous_stride = stride
                run_limit = _FIRST_RUN
                position += stride
                count -= 1
                continue
            run = count if count < run_limit else run_limit
            stop = position + run * stride
            if stop > end:
                run = (end - position) // stride
                stop = position + run * stride
                if run == 0:
                    return False
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
        return False
    return position == end


def _check_oldest_timestamp(records: memoryview, header: BatchHeader, oldest_ms: int) -> None:
    try:
        for record in iterate_records(records, header):
            if record.timestamp != NO_TIMESTAMP and record.timestamp < oldest_ms:
                raise _timestamp_out_of_range(record.timestamp)
    except InvalidRecord as error:
        raise _invalid(str(error)) from error


def _check_keys(records: memoryview, header: BatchHeader) -> None:
    try:
        for record in iterate_records(records, header):
            if record.key is None:
                raise _invalid("Compacted topic cannot accept message without key.")
    except InvalidRecord as error:
        raise _invalid(str(error)) from error


def _malformed(records: memoryview) -> ApiError:
    """Why bytes that are not one whole batch of format 2 are refused, in Kafka's order."""
    size = len(records)
    if size == 0:
        return _invalid("a produce request must have at least one record batch per partition")
    if size > MAGIC_AT:
        magic = records[MAGIC_AT]
        if magic < MAGIC:
            return ApiError(
                ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
                f"record format {magic} is no longer supported; use format 2",
            )
        if magic > MAGIC:
            return _invalid(f"unknown record format {magic}")
        batch_length = int.from_bytes(records[8:12], "big", signed=True)
        if HEADER_SIZE <= batch_length + LENGTH_OVERHEAD < size - MAGIC_AT:
            return _invalid("a produce request may have exactly one record batch per partition")
    return ApiError(ErrorCode.CORRUPT_MESSAGE, "the size of the record batch is not what its header says")


def _invalid(detail: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, detail)


def _timestamp_out_of_range(timestamp: int) -> ApiError:
    return ApiError(ErrorCode.INVALID_TIMESTAMP, f"Timestamp {timestamp} is out of range.")
