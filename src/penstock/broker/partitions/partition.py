"""A partition: its log, what this broker is for it (the leader, a follower), and who waits for it to grow.

What is committed and stable, and who is told, is decided by `penstock.replication.replica`. Here the log is written, and the
`Progress` that follows is made known to those who wait.
"""

from collections.abc import Callable

from penstock.broker.metrics.traffic import TopicTraffic
from penstock.broker.partitions.client_batch import Accepted, check
from penstock.broker.partitions.waits import Commit, Readers, Tell
from penstock.metadata import image
from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import BatchHeader, read_header
from penstock.records.marker import build_marker
from penstock.replication.follower import divergence
from penstock.replication.leader import Leadership
from penstock.replication.replica import Progress, Replica
from penstock.runtime.clock import Clock
from penstock.runtime.page_cache import memory_only
from penstock.storage.chores import Chores, Removal
from penstock.storage.log import Log
from penstock.storage.options import NEVER
from penstock.storage.segments import Slice

READ_COMMITTED = 1


class Partition:
    __slots__ = (
        "__weakref__", "_clock", "_flush_soon", "_led_from", "index", "is_gone", "log", "readers", "replica", "topic", "traffic",
    )  # fmt: skip

    def __init__(
        self,
        topic: str,
        index: int,
        log: Log,
        clock: Clock,
        *,
        leader_epoch: int,
        high_watermark: int | None = None,
        flush_soon: "Callable[[Partition], object]" = lambda partition: None,
        traffic: TopicTraffic | None = None,
    ) -> None:
        """Leads alone from the beginning; with a high watermark (as it was written down) it has no role yet. `flush_soon` is
        called when flush.messages wants what was appended on the device.
        """
        self.topic = topic
        self.index = index
        self.log = log
        self.replica = Replica(log, leader_epoch=leader_epoch, high_watermark=high_watermark)
        self.readers = Readers()
        self.is_gone = False
        self.traffic = traffic or TopicTraffic()
        """Of its topic."""
        self._led_from = (log.end_offset, log.written_bytes)
        """Where the log ended when we began to lead it."""
        self._clock = clock
        self._flush_soon = flush_soon

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    def replace_log(self, log: Log) -> None:
        """By a copy that holds the same, in another directory."""
        self._count_came_in()
        self.log = log
        self.replica.log = log
        self._led_from = (log.end_offset, log.written_bytes)

    # --- what it is now

    @property
    def is_leader(self) -> bool:
        return self.replica.is_leader

    @property
    def came_in(self) -> tuple[int, int]:
        """Records and bytes since we lead it; nothing while another does. What came before is in the topic's `traffic`."""
        if not self.replica.is_leader:
            return 0, 0
        end_offset, written_bytes = self._led_from
        return self.log.end_offset - end_offset, self.log.written_bytes - written_bytes

    def _count_came_in(self) -> None:
        """Before a leadership ends."""
        messages, size_bytes = self.came_in
        self.traffic.messages_in += messages
        self.traffic.bytes_in += size_bytes
        self._led_from = (self.log.end_offset, self.log.written_bytes)

    @property
    def leadership(self) -> Leadership | None:
        """Of a leader with followers."""
        return self.replica.leadership

    @property
    def leader_epoch(self) -> int:
        return self.replica.leader_epoch

    @property
    def high_watermark(self) -> int:
        return self.replica.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return self.replica.last_stable_offset

    @property
    def is_committed(self) -> bool:
        return self.replica.is_committed

    @property
    def must_flush(self) -> bool:
        return self.replica.must_flush

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Else the coordinator must be asked whether a batch of this producer may begin one here."""
        return self.log.producers.has_open_transaction(producer_id, producer_epoch)

    # --- checking

    def check_leader(self, current_leader_epoch: int = -1) -> None:
        """ApiError when we do not lead, or when the client knows an older or a newer leadership than ours."""
        self.replica.check_leader(current_leader_epoch)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """A client that knows an older or a newer leadership than ours must refresh its metadata first."""
        self.replica.check_epoch(current_leader_epoch)

    def check_insync_replicas(self) -> None:
        """NOT_ENOUGH_REPLICAS when too few would have a record that is to be on all of the in-sync replicas."""
        replica = self.replica
        if replica.has_too_few_in_sync:
            raise ApiError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {sorted(replica.isr)} is insufficient to satisfy the min.isr "
                f"requirement of {replica.min_insync_replicas} for partition {self}",
            )

    # --- roles

    def lead(self, placed: image.PartitionRegistration, own_id: int) -> None:
        """Begin a leadership, or continue with it when only the replicas or the in-sync set changed."""
        if not self.replica.leads_in(placed.leader_epoch):
            # Noted before the first batch: a follower that has nothing of this epoch can be told where it begins.
            self.log.leader_epochs.assign(placed.leader_epoch, self.log.end_offset)
        if not self.replica.is_leader:
            self._led_from = (self.log.end_offset, self.log.written_bytes)
        stable_before = self._stable_before()
        self._make_known(self.replica.lead(placed, own_id, now_ms=self._now_ms()), stable_before)
        if self.replica.must_flush:
            self._flush_soon(self)

    def follow(self, placed: image.PartitionRegistration) -> None:
        """Another broker leads, or nobody does."""
        self._count_came_in()
        self._make_known(self.replica.follow(placed))

    def have_no_leader(self) -> None:
        """In the same epoch: we lead no more, and do not know of another who does."""
        self._count_came_in()
        self._make_known(self.replica.have_no_leader())

    def leave(self) -> None:
        """The partition is no longer ours: whoever waits is told so."""
        self._count_came_in()
        self.is_gone = True
        self._make_known(self.replica.leave())

    def settle_isr(self, isr: frozenset[int], partition_epoch: int) -> None:
        """The controller has taken a change of the in-sync set, ours or one of its own."""
        stable_before = self._stable_before()
        self._make_known(self.replica.settle_isr(isr, partition_epoch), stable_before)

    def withdraw_isr(self) -> None:
        """The controller has refused the set that was proposed: its members hold the high watermark back no more."""
        stable_before = self._stable_before()
        self._make_known(self.replica.withdraw_isr(), stable_before)

    # --- appending

    def append(
        self,
        records: memoryview,
        *,
        is_checked: bool = False,
        checked_before: int = 0,
        verified_transaction: bool = False,
        starts_at_zero: bool = False,
        to_all: bool = False,
    ) -> tuple[int, int]:
        """Check and append one client's batch: its base offset and its append time, -1 where the topic keeps the producer's.
        ApiError refuses it; OSError is the disk's, not the client's. NotAtOnce says that its check takes long: `Openings.check`
        does it in steps, and makes the batch that is then to be appended.

        `is_checked`: that was done.
        `checked_before`: records of the same request that were checked in the same step.
        `to_all`: of a producer that wants it on all in-sync replicas.
        `verified_transaction`: the coordinator has just confirmed the transaction that the batch may begin here.
        `starts_at_zero`: of a producer with transaction version 2, whose first sequence in a partition is always 0.
        """
        replica = self.replica
        if not replica.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if to_all and replica.leadership is not None:
            self.check_insync_replicas()
        batch = check(
            self.log,
            records,
            now_ms=self._clock.now_ms(),
            is_checked=is_checked,
            checked_before=checked_before,
            verified_transaction=verified_transaction,
            starts_at_zero=starts_at_zero,
        )
        if isinstance(batch, Accepted):
            return self._store(batch.records, batch.header), batch.append_time_ms
        if not self.is_committed and self.leadership is None:
            # The first try stored the batch, then failed at a file beside the log.
            self._grown(batch.size_bytes, None)
        return batch.base_offset, batch.append_time_ms

    def append_own(self, batch: bytearray) -> int:
        """Append a batch that the broker itself built (a coordinator's records), also as part of a producer's transaction:
        then without a sequence, and ApiError when the producer is fenced or too few replicas are in sync.
        """
        self.check_leader()
        self.check_insync_replicas()
        header = read_header(batch)
        if header.producer_id >= 0:
            self.log.producers.check_epoch(
                producer_id=header.producer_id, producer_epoch=header.producer_epoch
            )
        return self._store(memoryview(batch), header)

    def append_marker(
        self, *, producer_id: int, producer_epoch: int, committed: bool, coordinator_epoch: int, transaction_version: int = 1
    ) -> int:  # fmt: skip
        """End a producer's transaction here, also where none is open; the marker's offset. ApiError when it is superseded."""
        self.check_leader()
        self.check_insync_replicas()
        log = self.log
        log.producers.check_marker(
            producer_id=producer_id, producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch, transaction_version=transaction_version,
        )  # fmt: skip
        batch = build_marker(
            producer_id=producer_id, producer_epoch=producer_epoch, committed=committed,
            coordinator_epoch=coordinator_epoch, timestamp_ms=self._clock.now_ms(),
        )  # fmt: skip
        stable_before = self.last_stable_offset
        offset = log.append(memoryview(batch), read_header(batch), self.leader_epoch)
        self._grown(len(batch), stable_before, marker=(offset, stable_before))
        return offset

    def _store(self, batch: memoryview, header: BatchHeader) -> int:
        stable_before = self.replica.last_stable_offset if self.readers.of_stable else None
        base_offset = self.log.append(batch, header, self.replica.leader_epoch)
        self._grown(len(batch), stable_before)
        return base_offset

    def _grown(
        self, size_bytes: int, stable_before: int | None, marker: tuple[int, int] | None = None
    ) -> None:
        """The log has grown; with a marker: its offset, and the last stable offset before it."""
        replica, readers = self.replica, self.readers
        if readers.followers:
            readers.appended(size_bytes)
        progress = replica.appended(marker=marker)
        # With the wish for flushes gone, those who wait for one are told by the next append.
        if replica.leadership is not None or self.log.options.flush_messages != NEVER or progress.told:
            self._make_known(progress, stable_before)
            if replica.must_flush:
                self._flush_soon(self)
            return
        if readers.of_committed:
            readers.committed_bytes(size_bytes)
        self._make_stable_known(stable_before)

    def flushed(self) -> None:
        """More of the log is on the device."""
        stable_before = self._stable_before()
        self._make_known(self.replica.flushed(), stable_before)

    def flush_failed(self) -> None:
        self._make_known(self.replica.flush_failed())

    # --- making known

    def _stable_before(self) -> int | None:
        """To be asked before something may make more stable."""
        return self.replica.last_stable_offset if self.readers.of_stable else None

    def _make_known(self, progress: Progress, stable_before: int | None = None) -> None:
        for awaited, error in progress.told:
            assert isinstance(awaited, Commit)
            awaited.finish(error)
        if progress.is_new_role:
            self.wake()
        elif progress.committed_to > progress.committed_from:
            self.readers.committed(self.log, progress.committed_from, progress.committed_to)
            self._make_stable_known(stable_before)

    def _make_stable_known(self, before: int | None) -> None:
        if before is not None:
            self.readers.decided(self.log, before, self.replica.last_stable_offset)

    def wake(self) -> None:
        """Something other than an append changed: let the waiting fetches look."""
        self.readers.wake()

    def when_committed(self, offset: int, tell: Tell) -> Commit | None:
        """Calls `tell` once all before an offset is committed: now (then None is returned), or later, unless cancelled."""
        return Commit(offset, tell).begin(self.replica.await_commit)

    def when_deleted(self, offset: int, tell: Tell) -> Commit | None:
        """As `when_committed`, once no in-sync replica has anything before an offset."""
        return Commit(offset, tell).begin(self.replica.await_deletion)

    # --- reading

    def read(self, offset: int, max_bytes: int, *, isolation_level: int, at_least_one: bool) -> Slice | None:
        """What a consumer may see from that offset on: None when it is at the end. NotInMemory when that cannot be said yet."""
        end_offset = self.last_stable_offset if isolation_level == READ_COMMITTED else self.high_watermark
        if offset == end_offset:
            return None
        with memory_only:
            found = self.log.read(offset, max_bytes, end_offset=end_offset, at_least_one=at_least_one)
        return found if found.size_bytes else None

    def aborted_in(self, found: Slice, offset: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the transactions that a read_committed reader must leave out of a slice that was
        read from an offset on. NotInMemory as for `read`.
        """
        with memory_only:
            return self.log.aborted_in(found, offset, end_offset=self.last_stable_offset)

    def delete_records(self, before_offset: int) -> Removal | None:
        """Move the log's start; -1 means up to the high watermark. The files that are now to be removed."""
        target = self.high_watermark if before_offset == -1 else before_offset
        if not 0 <= target <= self.high_watermark:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        removal = self.log.advance_start_offset(target)
        self.wake()
        return removal

    # --- a leader and its followers

    def without_laggards(self, max_lag_ms: int) -> frozenset[int] | None:
        """The in-sync set without those who have not caught up for so long, when that is to be proposed."""
        return self.replica.without_laggards(now_ms=self._now_ms(), max_lag_ms=max_lag_ms)

    def follower_fetched(
        self, replica_id: int, offset: int, *, broker_epoch: int = -1, start_offset: int = 0
    ) -> frozenset[int] | None:
        """A follower has all before an offset. The in-sync set with it, when it is to be proposed."""
        stable_before = self._stable_before()
        progress, proposed = self.replica.follower_fetched(
            replica_id, offset, start_offset=start_offset, broker_epoch=broker_epoch, now_ms=self._now_ms()
        )
        self._make_known(progress, stable_before)
        return proposed

    def divergence(self, *, last_fetched_epoch: int, fetch_offset: int) -> tuple[int, int] | None:
        return divergence(
            self.log.epoch_end_offset, last_fetched_epoch=last_fetched_epoch, fetch_offset=fetch_offset
        )

    def read_as_replica(self, offset: int, max_bytes: int, *, at_least_one: bool) -> Slice | None:
        """As `read`, to the end of the log."""
        if offset == self.log.end_offset:
            return None
        with memory_only:
            found = self.log.read(offset, max_bytes, at_least_one=at_least_one)
        return found if found.size_bytes else None

    # --- a follower

    def take_fetched(
        self,
        records: memoryview | None,
        *,
        high_watermark: int,
        log_start_offset: int,
        last_stable_offset: int,
    ) -> Removal | None:
        """A follower's step with its leader's answer. What is before the leader's start is removed here too."""
        log = self.log
        if records is not None:
            size = len(records)
            log.append_as_follower(records)
            self.traffic.replication_bytes_in += size
            self.readers.appended(size)
        progress = self.replica.told_by_leader(
            high_watermark=high_watermark, last_stable_offset=last_stable_offset
        )
        if progress.committed_to > progress.committed_from:
            self.wake()
        if log_start_offset > log.start_offset:
            return log.advance_start_offset(min(log_start_offset, progress.committed_to))
        return None

    def truncating(self, leader_epoch: int, leader_end_offset: int) -> Chores:
        """Cut what the leader does not have. Until this is through nothing may be appended, nor the leader told of our end."""
        log = self.log
        yield from log.truncating_to(
            self.replica.truncation_offset(
                log.epoch_end_offset, leader_epoch=leader_epoch, leader_end_offset=leader_end_offset
            )
        )
        if log.is_deleted:
            return  # another may have its name by now, and so its files
        # Also when nothing was cut: an epoch in which we wrote nothing must not be claimed again.
        log.leader_epochs.truncate_from_end(log.end_offset)
        self.replica.truncated()

    def starting_anew(self, offset: int) -> Chores:
        """All that we have is before the leader's log: begin where that begins. As `truncating`."""
        yield from self.log.starting_anew_at(offset)
        self.replica.truncated()

    def _now_ms(self) -> int:
        """Not of the wall clock: a clock that is set must not throw followers out."""
        return int(self._clock.monotonic() * 1000)
