"""A partition as clients know it: what they append and read. The replica below it has the log and the role."""

from penstock.broker.partitions.replica import Replica
from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import TRANSACTIONAL_BIT, BatchHeader, InvalidRecord, read_header
from penstock.records.build import stamp_append_time
from penstock.records.marker import build_marker
from penstock.records.recompress import recompress
from penstock.records.validate import validate
from penstock.storage.chores import Removal
from penstock.storage.options import LOG_APPEND_TIME, LogOptions
from penstock.storage.replay import recall_batches
from penstock.storage.segments import Slice

READ_COMMITTED = 1


Appended = tuple[int, int]
"""base offset, log append time (-1 where the topic keeps the producer's)"""


class Partition(Replica):
    __slots__ = ()

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a transactional batch of this producer goes on with a transaction; else the coordinator must be asked
        whether it may begin one here.
        """
        return self.log.producers.has_open_transaction(producer_id, producer_epoch)

    # --- appending

    def append(
        self,
        records: memoryview,
        *,
        verified_transaction: bool = False,
        starts_at_zero: bool = False,
        to_all: bool = False,
    ) -> Appended:
        """Check and append one client's batch. ApiError refuses it; OSError is the disk's, not the client's.

        `to_all`: of a producer that wants it on all in-sync replicas.
        `verified_transaction`: the coordinator has just confirmed the transaction that the batch may begin here.
        `starts_at_zero`: of a producer with transaction version 2, whose first sequence in a partition is always 0.
        """
        if not self.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if to_all and self.leadership is not None:
            self.check_insync_replicas()
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
            try:
                duplicate = log.producers.check(header, verified_transaction, starts_at_zero)
            except ApiError as error:
                if error.code is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER or not recall_batches(
                    log.segments, log.producers, header.producer_id
                ):
                    raise
                duplicate = log.producers.check(header, verified_transaction, starts_at_zero)
            if duplicate is not None:
                if self.high_watermark < log.end_offset and self.leadership is None:
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
        then without a sequence, and ApiError when the producer is fenced or too few replicas are in sync.
        """
        self.check_leader()
        self.check_insync_replicas()
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
        self.check_leader()
        self.check_insync_replicas()
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
        if self.leadership is not None:
            self._unreplicated_markers.append((offset, stable_before))
        self._advance(len(batch), stable_before)
        return offset

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
