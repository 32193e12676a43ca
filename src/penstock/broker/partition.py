"""A partition on the broker that leads it: the log, the high watermark, and who waits for it to grow."""

from penstock.broker.waiting import FetchWait
from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import TRANSACTIONAL_BIT, BatchHeader, InvalidRecord, read_header
from penstock.records.build import stamp_append_time
from penstock.records.marker import build_marker
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
    __slots__ = (
        "_clock",
        "high_watermark",
        "index",
        "is_gone",
        "leader_epoch",
        "log",
        "stable_waits",
        "topic",
        "waits",
    )

    def __init__(self, topic: str, index: int, log: Log, clock: Clock, *, leader_epoch: int) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        self.leader_epoch = leader_epoch
        self.high_watermark = log.end_offset
        self.waits: set[FetchWait] = set()
        self.stable_waits: set[FetchWait] = set()  # of read_committed readers
        self.is_gone = False
        self._clock = clock

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def last_stable_offset(self) -> int:
        """Up to here a read_committed reader may read: to where the first open transaction begins. Without one it is the
        high watermark.
        """
        undecided = self.log.producers.first_undecided_offset
        if undecided is None:
            return self.high_watermark
        # Its first batches may have been deleted.
        return min(max(undecided, self.log.start_offset), self.high_watermark)

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a transactional batch of this producer goes on with a transaction; else the coordinator must be asked
        whether it may begin one here.
        """
        return self.log.producers.has_open_transaction(producer_id, producer_epoch)

    def append(
        self, records: memoryview, *, verified_transaction: bool = False, starts_at_zero: bool = False
    ) -> Appended:
        """Check and append one client's batch. ApiError refuses it; OSError is the disk's, not the client's.

        `verified_transaction`: the coordinator has just confirmed the transaction that the batch may begin here.
        `starts_at_zero`: of a producer with transaction version 2, whose first sequence in a partition is always 0.
        """
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
        if header.producer_id >= 0:
            duplicate = log.producers.check(header, verified_transaction, starts_at_zero)
            if duplicate is not None:
                if self.high_watermark < log.end_offset:
                    # The first try stored the batch, then failed at a file beside the log.
                    self._advance(header.size_bytes)
                base_offset, timestamp = duplicate
                return base_offset, timestamp if log_append_time else -1
        elif header.attributes & TRANSACTIONAL_BIT:
            raise ApiError(ErrorCode.INVALID_TXN_STATE, "a transactional batch without a producer id")
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
        """Append a batch that the broker itself built (a coordinator's records), also as part of a producer's transaction:
        then without a sequence, and ApiError when the producer is fenced.
        """
        header = read_header(batch)
        if header.producer_id >= 0:
            self.check_producer_epoch(header.producer_id, header.producer_epoch)
        base_offset = self.log.append(memoryview(batch), header, self.leader_epoch)
        self._advance(header.size_bytes)
        return base_offset

    def check_producer_epoch(self, producer_id: int, producer_epoch: int) -> None:
        """INVALID_PRODUCER_EPOCH when the log has seen a newer epoch of this producer."""
        self.log.producers.check_epoch(producer_id=producer_id, producer_epoch=producer_epoch)

    def append_marker(
        self,
        *,
        producer_id: int,
        producer_epoch: int,
        committed: bool,
        coordinator_epoch: int,
        transaction_version: int = 1,
    ) -> int:
        """End a producer's transaction here, also where none is open; returns the marker's offset. ApiError when the
        marker is of a producer or a coordinator that has been superseded.
        """
        log = self.log
        log.producers.check_marker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
        )
        batch = build_marker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            committed=committed,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=self._clock.now_ms(),
        )
        stable_before = self.last_stable_offset
        offset = log.append(memoryview(batch), read_header(batch), self.leader_epoch)
        self._advance(len(batch), stable_before)
        return offset

    def _advance(self, size_bytes: int, stable_before: int | None = None) -> None:
        """Batches were appended; by a marker, which may make more than itself stable, with the last stable offset before."""
        self.high_watermark = self.log.end_offset
        if self.waits:
            for wait in tuple(self.waits):
                wait.appended(size_bytes)
        if self.stable_waits:
            self._advance_stable(size_bytes, stable_before)

    def _advance_stable(self, size_bytes: int, stable_before: int | None) -> None:
        log = self.log
        if stable_before is not None:
            stable = self.last_stable_offset
            size_bytes = log.segments.size_between(from_offset=stable_before, to_offset=stable)
        elif log.producers.first_undecided_offset is not None:
            return  # what was appended is behind an open transaction, or begins one
        if size_bytes:
            for wait in tuple(self.stable_waits):
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

    def aborted_in(self, found: Slice, offset: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the transactions that a read_committed reader must leave out of a slice that was
        read from an offset on.
        """
        return self.log.aborted_in(found, offset, end_offset=self.last_stable_offset)

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
        for wait in (*self.waits, *self.stable_waits):
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
