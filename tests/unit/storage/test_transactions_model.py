"""Any history of transactions against a model: a read_committed reader sees what is committed or plain, in order."""

import itertools
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.broker.partitions.partition import Partition
from penstock.model.errors import ApiError
from penstock.records.build import build_batch
from penstock.storage.compaction.clean import Cleaning
from penstock.storage.compaction.task import CleanedSegment
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from penstock.storage.producer_state import ProducerState
from penstock.storage.replay import replay_batch
from penstock.testing.disk import MemoryDisk
from tests.unit.storage.batches import StillClock, close_cleanly
from tests.unit.storage.committed_reader import read_committed
from tests.unit.storage.compaction.cleaning import batches, swap_in, task_for

DIRECTORY = "/data/t-0"
OPTIONS = LogOptions(compacted=True, segment_bytes=700, index_interval_bytes=100, delete_retention_ms=1000)
PRODUCERS = st.sampled_from([5, 6, 7])
PLAIN = 0
PLAIN_IDEMPOTENT = 9  # a producer id that never begins a transaction
WRITERS = [PLAIN, PLAIN_IDEMPOTENT, 5, 6, 7]


class Written:
    """One batch as it was appended; a marker has no records."""

    def __init__(self, offset: int, producer_id: int, values: list[bytes], committed: bool | None) -> None:
        self.offset = offset
        self.producer_id = producer_id  # 0 and below, and 9: without a transaction
        self.values = values
        self.committed = committed  # of a marker

    @property
    def end_offset(self) -> int:
        return self.offset + max(len(self.values), 1)


class TransactionalLog(RuleBasedStateMachine):
    @initialize()
    def create(self) -> None:
        self.disk = MemoryDisk()
        self.disk.make_directory("/data")
        self.disk.sync_directory("/")
        self.clock = StillClock()
        self.written: list[Written] = []
        self.numbers = itertools.count()
        self.epochs: dict[int, int] = {}
        self.sequences: dict[tuple[int, int], int] = {}
        self.first_dirty_offset = 0
        self.open(clean=False, recovery_point=0)

    def open(self, *, clean: bool, recovery_point: int) -> None:
        log = Log.open(self.disk, DIRECTORY, OPTIONS, self.clock, clean=clean, recovery_point=recovery_point)
        self.partition = Partition("t", 0, log, self.clock, leader_epoch=0)

    @property
    def log(self) -> Log:
        return self.partition.log

    # --- what the model knows

    def open_transactions(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for batch in self.written:
            if batch.committed is not None:
                found.pop(batch.producer_id, None)
            elif batch.producer_id in (5, 6, 7):
                found.setdefault(batch.producer_id, batch.offset)
        return found

    def expected(self, from_offset: int) -> list[tuple[int, bytes]]:
        """What is plain or committed, up to the first undecided offset."""
        results: dict[int, bool] = {}
        decided: list[tuple[Written, bool]] = []
        for batch in reversed(self.written):
            if batch.committed is not None:
                results[batch.producer_id] = batch.committed
            elif batch.producer_id in (5, 6, 7):
                decided.append((batch, results.get(batch.producer_id, False)))
            else:
                decided.append((batch, True))
        stable = min([*self.open_transactions().values(), self.log.end_offset])
        return [
            (batch.offset + number, value)
            for batch, is_there in reversed(decided)
            if is_there and batch.offset < stable
            for number, value in enumerate(batch.values)
            if batch.offset + number >= from_offset
        ]

    # --- what happens

    @rule(
        actions=st.lists(
            st.one_of(
                st.tuples(st.just("append"), st.sampled_from(WRITERS), st.integers(1, 3), st.integers(0, 4)),
                st.tuples(st.just("end"), PRODUCERS, st.booleans(), st.booleans()),
                st.tuples(st.just("roll"), st.just(0), st.just(0), st.just(0)),
            ),
            min_size=4,
            max_size=15,
        )
    )
    def write(self, actions: list[tuple[str, int, int, int]]) -> None:
        for kind, producer_id, one, other in actions:
            if kind == "append":
                self.append_one(producer_id, one, other)
            elif kind == "end":
                self.end_one(producer_id, bool(one), bool(other))
            else:
                self.log.roll()

    def append_one(self, producer_id: int, count: int, codec: int) -> None:
        values = [b"%d" % next(self.numbers) for _ in range(count)]
        epoch = self.epochs.get(producer_id, 0)
        sequence = self.sequences.get((producer_id, epoch), 0)
        is_transactional = producer_id in (5, 6, 7)
        batch = build_batch(
            [(value, value, (), self.clock.ms) for value in values],
            codec=codec,
            producer_id=producer_id or -1,
            producer_epoch=epoch if producer_id else -1,
            base_sequence=sequence if producer_id else -1,
            transactional=is_transactional,
        )
        is_open = self.partition.has_open_transaction(producer_id, epoch)
        assert is_open == (is_transactional and producer_id in self.open_transactions())
        offset, _ = self.partition.append(memoryview(batch), verified_transaction=not is_open)
        self.written.append(Written(offset, producer_id, values, None))
        self.sequences[producer_id, epoch] = sequence + count

    def end_one(self, producer_id: int, committed: bool, grows: bool) -> None:
        epoch = self.epochs.get(producer_id, 0)
        if grows:
            epoch += 1
            self.epochs[producer_id] = epoch
        offset = self.partition.append_marker(
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=committed,
            coordinator_epoch=0,
            transaction_version=2 if grows else 1,
        )
        self.written.append(Written(offset, producer_id, [], committed))

    @rule(include_active=st.booleans())
    def flush(self, include_active: bool) -> None:
        flush = self.log.prepare_flush(include_active=include_active)
        if flush is not None:
            flush.run()
            self.log.flushed(flush)

    @rule(milliseconds=st.sampled_from([1, 1000]))
    def wait(self, milliseconds: int) -> None:
        self.clock.ms += milliseconds

    @precondition(lambda self: self.written)
    @rule(part=st.floats(0, 1))
    def truncate(self, part: float) -> None:
        """As a follower does. What a cleaning has read is committed everywhere, so never below that."""
        target = self.written[int(part * (len(self.written) - 1))].offset
        if target >= self.first_dirty_offset and target > self.log.start_offset:
            self.log.truncate_to(target)
            self.partition.replica.high_watermark = self.log.end_offset
            self.forget_the_tail()

    @precondition(lambda self: self.partition.last_stable_offset > self.log.start_offset)
    @rule(part=st.floats(0, 0.4))
    def delete_records(self, part: float) -> None:
        start = self.log.start_offset
        removal = self.partition.delete_records(
            start + int(part * (self.partition.last_stable_offset - start))
        )
        if removal is not None:
            removal.run()

    # --- starting again

    @rule()
    def restart(self) -> None:
        start_offset = self.log.start_offset
        close_cleanly(self.log)
        self.disk.sync_directory("/data")
        self.disk = self.disk.kill()
        self.open(clean=True, recovery_point=self.log.recovery_point)
        self.log.start_offset = start_offset

    @rule(lose_snapshots=st.booleans())
    def kill(self, lose_snapshots: bool) -> None:
        start_offset, recovery_point = self.log.start_offset, self.log.recovery_point
        self.disk = self.disk.kill()
        if lose_snapshots:
            for name, _ in self.disk.list_files(DIRECTORY):
                if name.endswith(".snapshot"):
                    self.disk.delete(f"{DIRECTORY}/{name}")
        self.open(clean=False, recovery_point=recovery_point)
        assert not self.log.report.truncated_bytes
        self.log.start_offset = start_offset

    @rule(seed=st.integers(0, 1000))
    def lose_power(self, seed: int) -> None:
        """Of the active segment. (Holes between segments of a compacted log cannot be told from compaction.)"""
        self.flush(include_active=False)
        self.disk.sync_directory("/data")  # as the checkpoint does that the recovery point is read from
        start_offset, recovery_point = self.log.start_offset, self.log.recovery_point
        self.disk = self.disk.crash(keep=Random(seed))
        self.open(clean=False, recovery_point=recovery_point)
        assert self.log.end_offset >= recovery_point
        self.log.start_offset = min(start_offset, self.log.end_offset)
        self.forget_the_tail()

    @precondition(lambda self: len(self.log.segments) > 1)
    @rule(choice=st.integers(0, 100), cut=st.booleans())
    def damage_an_index_while_it_is_stopped(self, choice: int, cut: bool) -> None:
        close_cleanly(self.log)
        self.disk.sync_directory("/data")
        self.disk = self.disk.kill()
        found = [
            name for name, size in self.disk.list_files(DIRECTORY) if name.endswith(".txnindex") and size
        ]
        if found:
            path = f"{DIRECTORY}/{sorted(found)[choice % len(found)]}"
            data = bytearray(self.disk.read(path))
            if cut:
                del data[-1 - choice % 33 :]
            else:
                data[choice % 2] ^= 1 + choice  # the version
            self.disk.write(path, data)
        start_offset = self.log.start_offset
        self.open(clean=True, recovery_point=self.log.recovery_point)
        assert bool(found) == bool(self.log.report.recovered_segments)
        self.log.start_offset = start_offset

    def forget_the_tail(self) -> None:
        end_offset = self.log.end_offset
        self.written = [batch for batch in self.written if batch.offset < end_offset]
        self.first_dirty_offset = min(self.first_dirty_offset, end_offset)
        # The producers that wrote what is lost are dead; others take their ids with a new epoch.
        for producer_id in (5, 6, 7, PLAIN_IDEMPOTENT):
            self.epochs[producer_id] = self.epochs.get(producer_id, 0) + 1
        for producer_id in self.open_transactions():
            offset = self.partition.append_marker(
                producer_id=producer_id,
                producer_epoch=self.epochs[producer_id],
                committed=False,
                coordinator_epoch=0,
            )
            self.written.append(Written(offset, producer_id, [], False))

    # --- compaction

    @precondition(lambda self: len(self.log.segments) > 1)
    @rule(from_start=st.booleans())
    def clean(self, from_start: bool) -> None:
        """Every key is written once, so that only aborted records go."""
        log = self.log
        limit = min(self.partition.last_stable_offset, log.segments.active.base_offset)
        end_offset = max(
            (segment.base_offset for segment in log.segments if segment.base_offset <= limit), default=0
        )
        start = log.start_offset if from_start else max(self.first_dirty_offset, log.start_offset)
        if end_offset <= start:
            return

        def report(message: float | CleanedSegment) -> None:
            if isinstance(message, CleanedSegment):
                swap_in(self.disk, log, message)

        task = task_for(
            log, first_dirty_offset=start, end_offset=end_offset, now_ms=self.clock.ms, buffer_bytes=200
        )
        result = Cleaning(self.disk, task, report=report, throttle=lambda size: None).run()
        self.first_dirty_offset = max(self.first_dirty_offset, result.next_dirty_offset)

    # --- what is always true

    @invariant()
    def a_reader_sees_exactly_what_is_committed_or_plain(self) -> None:
        start = self.log.start_offset
        for max_bytes in (1 << 20, 150):
            found = read_committed(self.partition, start, max_bytes=max_bytes)
            assert [(record.offset, record.value) for record in found] == self.expected(start)

    @invariant()
    def it_sees_the_rest_of_it_from_any_offset(self) -> None:
        start, end = self.log.start_offset, self.partition.last_stable_offset
        for offset in range(start, end, max((end - start) // 4, 1)):
            found = read_committed(self.partition, offset)
            assert [(record.offset, record.value) for record in found] == self.expected(offset)

    @invariant()
    def nothing_undecided_is_stable(self) -> None:
        first = min(self.open_transactions().values(), default=self.log.end_offset)
        assert self.partition.last_stable_offset == max(first, self.log.start_offset)

    @invariant()
    def the_indexes_are_what_a_replay_gives(self) -> None:
        """Where nothing was compacted or deleted; else more may be said than the batches that are left tell."""
        if self.first_dirty_offset or self.log.start_offset:
            return
        producers = ProducerState()
        found = []
        for header, batch in batches(self.log):
            if header.producer_id >= 0:
                aborted = replay_batch(producers, header, batch, header.base_offset)
                if aborted is not None:
                    found.append(aborted)
        kept = [
            entry
            for segment in self.log.segments
            if segment.transactions is not None
            for entry in segment.transactions.entries()
        ]
        assert kept == found

    @invariant()
    def who_was_fenced_stays_fenced(self) -> None:
        for producer_id, epoch in self.epochs.items():
            if epoch and producer_id in self.log.producers and producer_id in (5, 6, 7):
                known = next(p for p in self.log.producers.known() if p.producer_id == producer_id)
                with pytest.raises(ApiError, match="smaller than the last seen epoch"):
                    self.partition.append_marker(
                        producer_id=producer_id,
                        producer_epoch=known.epoch - 1,
                        committed=True,
                        coordinator_epoch=0,
                    )


TransactionalLog.TestCase.settings = settings(max_examples=60, stateful_step_count=25)
test_any_history_of_a_transactional_log = TransactionalLog.TestCase
