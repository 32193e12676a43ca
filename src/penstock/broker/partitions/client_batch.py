"""A client's batch before it is appended: checked, recognised if it was sent before, and brought into the topic's form."""

from collections.abc import Callable
from typing import Final, NamedTuple, cast

from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import TRANSACTIONAL_BIT, BatchHeader, InvalidRecord, read_header
from penstock.records.build import stamp_append_time
from penstock.records.recompress import recompress
from penstock.records.validate import validate
from penstock.storage.log import Log
from penstock.storage.options import LOG_APPEND_TIME, LogOptions
from penstock.storage.replay import recall_batches

NO_APPEND_TIME: Final = -1
"""Where the topic keeps the producer's timestamps."""


class Repeated(NamedTuple):
    """The log has this batch already."""

    base_offset: int
    append_time_ms: int
    size_bytes: int


class Accepted(NamedTuple):
    records: memoryview
    header: BatchHeader
    append_time_ms: int


# The same without a Python-level __new__, as nearly every batch makes one.
_accept = cast(Callable[[type[Accepted], tuple[memoryview, BatchHeader, int]], Accepted], tuple.__new__)


def check(
    log: Log, records: memoryview, *, now_ms: int, verified_transaction: bool, starts_at_zero: bool
) -> Accepted | Repeated:
    """ApiError refuses it. The flags are those of `Partition.append`."""
    options = log.options
    log_append_time = options.message_timestamp_type == LOG_APPEND_TIME
    header = validate(
        records,
        max_message_bytes=options.max_message_bytes,
        now_ms=now_ms,
        compacted=options.compacted,
        log_append_time=log_append_time,
        timestamp_before_max_ms=options.timestamp_before_max_ms,
        timestamp_after_max_ms=options.timestamp_after_max_ms,
    )
    if header.producer_id >= 0:
        try:
            duplicate = log.producers.check(header, verified_transaction, starts_at_zero)
        except ApiError as error:
            if error.code is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER or not recall_batches(
                log.segments, log.producers, header.producer_id
            ):
                raise
            duplicate = log.producers.check(header, verified_transaction, starts_at_zero)
        if duplicate is not None:
            base_offset, timestamp = duplicate
            return Repeated(base_offset, timestamp if log_append_time else NO_APPEND_TIME, header.size_bytes)
    elif header.attributes & TRANSACTIONAL_BIT:
        raise ApiError(ErrorCode.INVALID_TXN_STATE, "a transactional batch without a producer id")
    codec = options.compression_codec
    if codec is not None and codec != header.codec:
        records = _recompressed(records, header, options)
        header = read_header(records)
    if not log_append_time:
        return _accept(Accepted, (records, header, NO_APPEND_TIME))
    return Accepted(records, stamp_append_time(records, now_ms), now_ms)


def _recompressed(records: memoryview, header: BatchHeader, options: LogOptions) -> memoryview:
    """The batch in the codec that compression.type asks for. It may be larger than it came, and then too large."""
    assert options.compression_codec is not None
    try:
        made = recompress(records, header, options.compression_codec, level=options.compression_level)
    except InvalidRecord as error:
        raise ApiError(ErrorCode.INVALID_RECORD, str(error)) from error
    if len(made) > options.max_message_bytes:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size is {len(made)} bytes in the topic's compression.type, which exceeds the maximum "
            f"configured value of {options.max_message_bytes}.",
        )
    return made
