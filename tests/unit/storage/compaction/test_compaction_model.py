"""Any sequence of appends, rolls, cleanings, crashes and reopenings against a model that remembers everything."""

import itertools
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.runtime.files import OsDisk
from penstock.storage.compaction.clean import Cleaning
from penstock.storage.compaction.task import CleanedSegment
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from tests.unit.storage.batches import StillClock, close_cleanly
from tests.unit.storage.compaction.cleaning import (
    DELETE_RETENTION_MS,
    Pair,
    batches,
    put,
    records,
    swap_in,
    task_for,
)
from tests.unit.storage.compaction.crashing_disk import CrashingDisk, PowerCut

KEYS = st.sampled_from(["a", "b", "c", "d", "e"])
VALUES = st.one_of(st.none(), st.text("xyz", max_size=3))
OPTIONS = LogOptions(compacted=True, segment_bytes=700, index_interval_bytes=100)


class Written:
    """A record as it was appended, and when a cleaning first saw it as a tombstone to keep."""

    def __init__(self, key: str, value: str | None, timestamp: int) -> None:
        self.key = key.encode()
        self.value = None if value is None else value.encode()
        self.timestamp = timestamp


class CompactedLog(RuleBasedStateMachine):
    @initialize()
    def create(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="compacted-log-"))
        self.clock = StillClock()
        self.written: list[Written] = []  # by offset
        self.first_dirty_offset = 0
        self.sequences: dict[int, int] = {}
        self.log = self.open()

    def open(self, *, clean: bool = False) -> Log:
        recovery_point = len(self.written) if clean else 0
        return Log.open(
            OsDisk(),
            str(self.directory / "t-0"),
            OPTIONS,
            self.clock,
            clean=clean,
            recovery_point=recovery_point,
        )

    @rule(
        appended=st.lists(
            st.tuples(
                st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=3),
                st.integers(min_value=0, max_value=4),
                st.sampled_from([-1, -1, 5, 6]),
                st.booleans(),
            ),
            min_size=2,
            max_size=6,
        )
    )
    def append(self, appended: list[tuple[list[tuple[str, str | None]], int, int, bool]]) -> None:
        for pairs, codec, producer_id, roll in appended:
            sequence = self.sequences.get(producer_id, 0)
            keyed: list[Pair] = list(pairs)
            offset = put(
                self.log, *keyed, codec=codec, timestamp=self.clock.ms, producer_id=producer_id,
                base_sequence=sequence,
            )  # fmt: skip
            assert offset == len(self.written)
            self.sequences[producer_id] = sequence + len(pairs)
            for number, (key, value) in enumerate(pairs):
                self.written.append(Written(key, value, self.clock.ms + number))
            if roll:
                self.log.roll()

    @rule(milliseconds=st.sampled_from([1, 300, DELETE_RETENTION_MS]))
    def wait(self, milliseconds: int) -> None:
        self.clock.ms += milliseconds

    @precondition(lambda self: self.is_dirty())
    @rule(map_slots=st.sampled_from([3, 5, 1000]), from_start=st.booleans())
    def clean(self, map_slots: int, from_start: bool) -> None:
        self.clean_with(OsDisk(), map_slots, from_start)

    def is_dirty(self) -> bool:
        return bool(self.log.segments.active.base_offset > self.first_dirty_offset)

    @precondition(lambda self: self.is_dirty())
    @rule(fail_after=st.integers(min_value=5, max_value=35))
    def clean_and_crash(self, fail_after: int) -> None:
        disk = CrashingDisk(fail_after)
        try:
            self.clean_with(disk, 1000, False)
            disk.fail_after = None  # it was enough; the new segment goes on with this disk
        except PowerCut:
            self.log.close()
            self.log = self.open()

    def clean_with(self, disk: OsDisk, map_slots: int, from_start: bool) -> None:
        def report(message: float | CleanedSegment) -> None:
            if isinstance(message, CleanedSegment):
                swap_in(disk, self.log, message)

        start = 0 if from_start else self.first_dirty_offset
        task = task_for(
            self.log,
            first_dirty_offset=start,
            now_ms=self.clock.ms,
            map_bytes=map_slots * 24,
            buffer_bytes=150,
        )
        if task.end_offset > start:
            result = Cleaning(disk, task, report=report, throttle=lambda size: None).run()
            self.first_dirty_offset = max(self.first_dirty_offset, result.next_dirty_offset)

    @rule(clean=st.booleans(), lose_snapshots=st.booleans())
    def reopen(self, clean: bool, lose_snapshots: bool) -> None:
        """Without snapshots all that is known of producers comes from their batches."""
        if clean:
            close_cleanly(self.log)
        else:
            self.log.close()
            if lose_snapshots:
                for path in (self.directory / "t-0").glob("*.snapshot"):
                    path.unlink()
        self.log = self.open(clean=clean)

    @invariant()
    def what_is_there_is_what_was_written(self) -> None:
        found = records(self.log)
        offsets = [record.offset for record in found]
        assert offsets == sorted(set(offsets))
        for record in found:
            written = self.written[record.offset]
            assert (record.key, record.value, record.timestamp) == (
                written.key,
                written.value,
                written.timestamp,
            )
        assert self.log.end_offset == len(self.written)
        headers = [header for header, _ in batches(self.log)]
        assert all(one.last_offset < two.base_offset for one, two in itertools.pairwise(headers))

    @invariant()
    def the_last_value_of_every_key_is_there_or_was_a_tombstone_long_enough(self) -> None:
        found = {record.offset for record in records(self.log)}
        last = {written.key: offset for offset, written in enumerate(self.written)}
        for offset in last.values():
            written = self.written[offset]
            assert offset in found or (
                written.value is None and self.clock.ms >= written.timestamp + DELETE_RETENTION_MS - 3
            )

    @invariant()
    def nothing_superseded_is_left_where_it_is_clean(self) -> None:
        last_clean = {w.key: offset for offset, w in enumerate(self.written[: self.first_dirty_offset])}
        for record in records(self.log):
            if record.offset < self.first_dirty_offset:
                assert record.offset == last_clean[record.key or b""]

    @invariant()
    def every_offset_leads_to_the_next_batch_that_is_left(self) -> None:
        headers = [header for header, _ in batches(self.log)]
        for offset in range(self.log.start_offset, self.log.end_offset, 3):
            part = self.log.read(offset, 1 << 20)
            following = next((header for header in headers if header.last_offset >= offset), None)
            if following is None:
                assert part.size_bytes == 0
            else:
                assert part.base_offset == following.base_offset

    @invariant()
    def every_producer_may_go_on(self) -> None:
        for producer_id, sequence in self.sequences.items():
            if producer_id >= 0:
                batch = batches(self.log)
                assert batch
                header = batch[0][0]._replace(
                    producer_id=producer_id,
                    producer_epoch=0,
                    base_sequence=sequence,
                    last_offset_delta=0,
                    attributes=0,
                )
                assert self.log.producers.check(header) is None
                assert producer_id in self.log.producers

    def teardown(self) -> None:
        self.log.close()
        shutil.rmtree(self.directory)


CompactedLog.TestCase.settings = settings(max_examples=80, stateful_step_count=20)
test_any_history_of_a_compacted_log = CompactedLog.TestCase
