"""A client's batch before it is appended: checked, recognised if it was sent before, and brought into the topic's form."""

from collections.abc import Callable
from typing import Final, NamedTuple, cast

from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import CODEC_MASK, TRANSACTIONAL_BIT, BatchHeader, read_header
from penstock.records.build import stamp_append_time
from penstock.records.check import UNBOUNDED_MS, Wanted
from penstock.records.opening import open_at_once
from penstock.records.validate import CHAINED_AT_ONCE, check_chain, validate
from penstock.records.walk import NotAtOnce
from penstock.storage.log import Log
from penstock.storage.options import LOG_APPEND_TIME, LogOptions
from penstock.storage.replay import recall_batches

OPENED_AT_ONCE: Final = 2048
"""Records of one request that are checked one by one while the loop stands still: a few milliseconds. Of those whose lengths
alone are followed there may be CHAINED_AT_ONCE."""
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


def must_open(options: LogOptions, codec: int) -> bool:
    """Whether a batch must be opened before it is stored: its records are to be checked, or to be folded by another codec."""
    wanted_codec = options.compression_codec
    return options.opens_batches or (wanted_codec is not None and wanted_codec != codec)


def wanted(options: LogOptions, now_ms: int) -> Wanted:
    """What the topic wants of the records in a batch that must be opened, and of the batch that is stored for it."""
    before_max_ms = options.timestamp_before_max_ms
    return Wanted(
        options.max_message_bytes,
        keys=options.compacted,
        oldest_ms=-UNBOUNDED_MS if before_max_ms == UNBOUNDED_MS else now_ms - before_max_ms,
        newest_ms=now_ms + options.timestamp_after_max_ms,
        append_time=options.message_timestamp_type == LOG_APPEND_TIME,
        codec=options.compression_codec,
        level=options.compression_level,
    )


def validated(
    options: LogOptions, records: memoryview, *, now_ms: int, in_thread: bool = False
) -> BatchHeader:
    """The header of a batch that is whole and one a client may send; its records are not looked at."""
    return validate(
        records,
        max_message_bytes=options.max_message_bytes,
        now_ms=now_ms,
        log_append_time=options.message_timestamp_type == LOG_APPEND_TIME,
        timestamp_after_max_ms=options.timestamp_after_max_ms,
        in_thread=in_thread,
    )


def check(
    log: Log,
    records: memoryview,
    *,
    now_ms: int,
    is_checked: bool = False,
    checked_before: int = 0,
    verified_transaction: bool,
    starts_at_zero: bool,
) -> Accepted | Repeated:
    """ApiError refuses it. The flags are those of `Partition.append`."""
    options = log.options
    log_append_time = options.message_timestamp_type == LOG_APPEND_TIME
    if is_checked:
        header = read_header(records)
    else:
        header = validate(
            records,
            max_message_bytes=options.max_message_bytes,
            now_ms=now_ms,
            log_append_time=log_append_time,
            timestamp_after_max_ms=options.timestamp_after_max_ms,
            in_thread=False,
        )
        codec = header.attributes & CODEC_MASK
        if options.opens_batches or (options.compression_codec is not None and must_open(options, codec)):
            if checked_before > OPENED_AT_ONCE or options.schema_validation is not None:
                raise NotAtOnce  # the schema registry may have to be asked
            records = open_at_once(records, header, wanted(options, now_ms))
            header = read_header(records)
        elif codec == 0:
            if checked_before > CHAINED_AT_ONCE:
                raise NotAtOnce
            check_chain(records, header.records_count)
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
    if not log_append_time:
        return _accept(Accepted, (records, header, NO_APPEND_TIME))
    return Accepted(records, stamp_append_time(records, now_ms), now_ms)
