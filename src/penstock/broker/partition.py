"""A partition on the broker that leads it: the log, the high watermark, and who waits for it to grow."""

from penstock.broker.waiting import FetchWait
from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import TRANSACTIONAL_BIT, BatchHeader, InvalidRecord, read_header
from penstock.records.build import stamp_append_time
from penstock.records.recompress import recompress
from penstock.records.validate import validate
from penstock.runtime.clock import Clock
from penstock.storage.chores import Removal
from penstock.storage.log import Log
from penstock.storage.options import LOG_APPEND_TIME, LogOptions
from penstock.storage.segments import Slice

READ_COMMITTED = 1


Appended = tuple[int, int]
"""base offset, log append time (-1 where the topic keeps the producer's)"""


class Partition:
    __slots__ = ("_clock", "high_watermark", "index", "is_gone", "leader_epoch", "log", "topic", "waits")

    def __init__(self, topic: str, index: int, log: Log, clock: Clock, *, leader_epoch: int) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        self.leader_epoch = leader_epoch
        self.high_watermark = log.end_offset
        self.waits: set[FetchWait] = set()
        self.is_gone = False
        self._clock = clock

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def last_stable_offset(self) -> int:
        """Up to here a read_committed reader may read. Without open transactions it is the high watermark."""
        return self.high_watermark

    def append(self, records: memoryview) -> Appended:
        """Check and append one client's batch. ApiError refuses it; OSError is the disk's, not the client's."""
        log = self.log
        options = log.options
        now_ms = self._clock.now_ms()
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
        append_time_ms = -1
        if header.attributes & TRANSACTIONAL_BIT:
            # Also without a transactional id in the request: it would begin a transaction that nobody ends.
            raise ApiError(ErrorCode.INVALID_TXN_STATE, "Penstock has no transactions yet")
        if header.producer_id >= 0:
            duplicate = log.producers.check(header)
            if duplicate is not None:
                if self.high_watermark < log.end_offset:
                    # The first try stored the batch, then failed at a file beside the log.
                    self._advance(header.size_bytes)
                base_offset, timestamp = duplicate
                return base_offset, timestamp if log_append_time else -1
        codec = options.compression_codec
        if codec is not None and codec != header.codec:
            records = _recompressed(records, header, options)
            header = read_header(records)
        if log_append_time:
            header = stamp_append_time(records, now_ms)
            append_time_ms = now_ms
        base_offset = log.append(records, header, self.leader_epoch)
        self._advance(header.size_bytes)
        return base_offset, append_time_ms

    def append_own(self, batch: bytearray) -> int:
        """Append a batch that the broker itself built (a coordinator's records)."""
        header = read_header(batch)
        base_offset = self.log.append(memoryview(batch), header, self.leader_epoch)
        self._advance(header.size_bytes)
        return base_offset

    def _advance(self, size_bytes: int) -> None:
        self.high_watermark = self.log.end_offset
        if self.waits:
            for wait in tuple(self.waits):
                wait.appended(size_bytes)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """A client that knows an older or a newer leadership than ours must refresh its metadata first."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def read(self, offset: int, max_bytes: int, *, isolation_level: int, at_least_one: bool) -> Slice | None:
        """What a consumer may see from that offset on: None when it is at the end."""
        end_offset = self.last_stable_offset if isolation_level == READ_COMMITTED else self.high_watermark
        if offset == end_offset:
            return None
        found = self.log.read(offset, max_bytes, end_offset=end_offset, at_least_one=at_least_one)
        return found if found.size_bytes else None

    def delete_records(self, before_offset: int) -> Removal | None:
        """Move the log's start; -1 means up to the high watermark. The files that are now to be removed."""
        target = self.high_watermark if before_offset == -1 else before_offset
        if not 0 <= target <= self.high_watermark:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        removal = self.log.advance_start_offset(target)
        self.wake()
        return removal

    def wake(self) -> None:
        """Something other than an append changed: let the waiting fetches look."""
        for wait in tuple(self.waits):
            wait.wake()

    def leave(self) -> None:
        """The partition is no longer ours: whoever waits is told so."""
        self.is_gone = True
        self.wake()


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
