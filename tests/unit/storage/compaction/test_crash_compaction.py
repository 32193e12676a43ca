"""The power goes at every change of two whole compactions, with appends, rolls and flushes between their steps.

After each: of every key the last record that was on the device is there under its offset, or a later one; nothing is there that
was not appended; no offset that was on the device is lost; and another compaction goes on from there.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

import pytest

from penstock.records.batch import BatchHeader
from penstock.storage.compaction.clean import Cleaning
from penstock.storage.compaction.task import CleanedSegment
from penstock.storage.log import Log
from penstock.storage.log_directory import LogDirectory
from penstock.storage.options import LogOptions
from penstock.testing.disk import MemoryDisk, PowerCut
from tests.unit.storage.batches import StillClock
from tests.unit.storage.compaction.cleaning import (
    batches,
    clean,
    put,
    put_marker,
    shown_in,
    swap_in,
    task_for,
)
from tests.unit.storage.crash_life import ORDERS, PATH, TOPIC_ID, check_indexes, check_log

PAGE_BYTES = 64
SMALL = LogOptions(segment_bytes=400, index_interval_bytes=100, file_delete_delay_ms=0, compacted=True)
LARGE = LogOptions(segment_bytes=1200, index_interval_bytes=100, file_delete_delay_ms=0, compacted=True)
"""Once it is in force, several neighbours become one."""
KEYS = "abcde"
ABORTED = 77
"""The producer of a transaction that was aborted."""

Shown = tuple[int, str | None, str | None]
Stored = list[tuple[BatchHeader, bytes]]


class Promise(NamedTuple):
    """What was so when the power went."""

    appended: tuple[Shown, ...]
    acknowledged_end: int  # survives the process
    flushed_end: int  # survives the machine


class WatchedDisk(MemoryDisk):
    """Tells `watch` before each change. `forgets_names`: it says that a directory is synced and does nothing."""

    def __init__(self) -> None:
        super().__init__(page_bytes=PAGE_BYTES)
        self.watch: Callable[[], None] = lambda: None
        self.forgets_names = False
        self._in_change = False

    def change(self, *args: object, **named: object) -> None:
        if not self._in_change:
            self._in_change = True
            self.watch()
            self._in_change = False
        super().change(*args, **named)  # type: ignore[arg-type]

    def sync_directory(self, path: str) -> None:
        if not self.forgets_names:
            super().sync_directory(path)


class Life:
    """Of one compacted log, with what was promised about it so far."""

    def __init__(self, disk: WatchedDisk, *, flushes_active: bool) -> None:
        self.disk = disk
        self._flushes_active = flushes_active
        self.is_appending = False
        self.appended: list[Shown] = []
        self.acknowledged_end = 0
        self.flushed_end = 0
        self._puts = 0
        self._sequence = 0
        self.directory = LogDirectory(disk, PATH, StillClock())
        self.directory.claim(broker_id=1, cluster_id="crash-test")
        self.log = self.directory.open_log(ORDERS, SMALL, topic_id=TOPIC_ID)

    @property
    def promise(self) -> Promise:
        return Promise(tuple(self.appended), self.acknowledged_end, self.flushed_end)

    def put(self, times: int) -> None:
        for _ in range(times):
            number = self._puts
            self._puts += 1
            pairs: list[tuple[str | None, str | None]] = []
            for each in range(1 + number % 3):
                key = KEYS[(number * 3 + each * 2) % len(KEYS)]
                pairs.append((key, None if (number + each) % 7 == 6 else f"{number}.{each}"))
            self._append(pairs, producer_id=7 if number % 2 else -1)

    def put_aborted(self) -> None:
        """What compaction drops, with the marker after it and the row in the transaction index."""
        put(self.log, ("a", "never"), ("x", "never"), producer_id=ABORTED, transactional=True)
        put_marker(self.log, ABORTED, commit=False)
        self.acknowledged_end = self.log.end_offset

    def _append(self, pairs: list[tuple[str | None, str | None]], *, producer_id: int) -> None:
        base = self.log.end_offset
        # Before it is there: a cut append may be there or not.
        self.appended += [(base + at, key, value) for at, (key, value) in enumerate(pairs)]
        self.is_appending = True
        put(self.log, *pairs, producer_id=producer_id, base_sequence=self._sequence)
        self.is_appending = False
        if producer_id >= 0:
            self._sequence += len(pairs)
        self.acknowledged_end = self.log.end_offset

    def flush(self) -> None:
        """As the broker does: closed segments by the clock, the active one only when it is told to."""
        flush = self.log.prepare_flush(include_active=self._flushes_active)
        if flush is not None:
            flush.run()
            if not self.disk.forgets_names:
                self.flushed_end = max(self.flushed_end, flush.end_offset)
            self.log.flushed(flush)
            self.directory.checkpoint([self.log], {ORDERS: self.log.end_offset})

    def compact(self, first_dirty_offset: int) -> int:
        """With appends between the steps of each swap."""

        def report(message: float | CleanedSegment) -> None:
            if isinstance(message, CleanedSegment):
                swap_in(self.disk, self.log, message, lambda: self.put(1))
                self.flush()

        bases = [segment.base_offset for segment in self.log.segments]
        on_device = max(base for base in bases if base <= self.log.recovery_point)
        task = task_for(self.log, first_dirty_offset=first_dirty_offset, end_offset=on_device)
        assert len(task.segments) > 1
        return Cleaning(self.disk, task, report=report, throttle=lambda size: None).run().next_dirty_offset

    def begin(self) -> None:
        self.put(7)
        self.put_aborted()
        self.put(3)
        self.log.roll()
        self.put(1)
        self.flush()

    def compact_twice(self) -> None:
        next_dirty = self.compact(0)
        self.log.options = LARGE
        self.put(3)
        self.log.roll()
        self.flush()
        self.compact(next_dirty)
        self.directory.close([self.log], {ORDERS: self.log.end_offset})


class Crash(NamedTuple):
    how: str
    disk: MemoryDisk
    promise: Promise
    of_machine: bool


def crashes(life: Life, disk: MemoryDisk, seeds: Iterator[int], *, ordered: bool) -> Iterator[Crash]:
    at = f"change {disk.changes}"
    promise = life.promise
    yield Crash(f"{at}, killed", disk.kill(), promise, False)
    yield Crash(f"{at}, nothing kept", disk.crash(), promise, True)
    seed = next(seeds)
    kept = disk.crash(keep=Random(seed), ordered=ordered)
    yield Crash(f"{at}, seed {seed}, ordered={ordered}", kept, promise, True)


def contents(disk: MemoryDisk) -> tuple[object, ...]:
    """To look at equal disks once only."""
    directories = [PATH, f"{PATH}/{ORDERS}"]
    return tuple(
        sorted((f"{path}/{name}", disk.read(f"{path}/{name}")) for name, _ in disk.list_files(path))
        for path in directories
        if disk.exists(path)
    )


def reopened(disk: MemoryDisk, options: LogOptions = LARGE) -> Log:
    directory = LogDirectory(disk, PATH, StillClock())
    return directory.open_log(ORDERS, options, topic_id=TOPIC_ID)


def check(log: Log, promise: Promise, *, least_end: int) -> None:
    """least_end: up to here everything must be there; behind it, what is there."""
    assert log.end_offset >= least_end, f"{least_end - log.end_offset} offsets are lost"
    stored = batches(log)
    found = [one for one in shown_in(stored) if one[2] != "never"]
    known = set(promise.appended)
    assert all(one in known for one in found), "not a part of what was appended"
    offsets = [offset for offset, _, _ in found]
    assert offsets == sorted(set(offsets)), "not in order"
    last = {key: offset for offset, key, _ in promise.appended if offset < least_end}
    there = {key: offset for offset, key, _ in found}
    for key, offset in last.items():
        assert there.get(key, -1) >= offset, f"the last record of {key}, at {offset}, is gone"
    if all(there.get(key, -1) >= offset for offset, key, _ in promise.appended if offset < log.end_offset):
        check_log(log, dense=False)
    else:
        # Of a compacted log nobody can tell that a segment in its middle lost what was never synced.
        check_indexes(log)
    check_aborted(log, stored)
    check_every_offset(log, stored)


def check_aborted(log: Log, stored: Stored) -> None:
    """Whatever is left of an aborted transaction, a reader is told to leave it out, or the marker is lost too."""
    left = [header for header, _ in stored if header.producer_id == ABORTED]
    if any(header.is_control for header in left):
        told = log.aborted_transactions(0, log.end_offset)
        for header in left:
            if not header.is_control and header.records_count:
                assert any(first <= header.base_offset for producer, first in told if producer == ABORTED)


def check_every_offset(log: Log, stored: Stored) -> None:
    """A reader at any offset gets the batch with it, or the next one that is there."""
    there = [(header.base_offset, header.last_offset) for header, _ in stored]
    for offset in range(log.start_offset, log.end_offset):
        following = [base for base, last in there if last >= offset]
        found = log.read(offset, 1)
        if following:
            assert found.base_offset == following[0]
        else:
            assert found.size_bytes == 0


def check_crash(crash: Crash, random: Random) -> None:
    promise = crash.promise
    least_end = promise.flushed_end if crash.of_machine else promise.acknowledged_end
    # The power goes a second time, while the log is being recovered.
    again = crash.disk.kill()
    again.stop_after(random.randrange(12), tear=True)
    try:
        reopened(again)
    except PowerCut:
        pass
    # A process that was killed leaves the machine its unsynced bytes: those may be lost by a power failure now.
    disks = (
        (crash.disk.kill(), least_end),
        (again.kill(), least_end),
        (again.crash(keep=random, ordered=True), promise.flushed_end),
    )
    disk, least = random.choice(disks)
    log = reopened(disk)
    check(log, promise, least_end=least)
    end_offset = log.end_offset
    if len(log.segments) > 1:
        clean(disk, log, map_bytes=1 << 14)
    names = [name for name, _ in disk.list_files(log.directory)]
    assert not [name for name in names if name.endswith((".swap", ".cleaned", ".deleted"))]
    check(log, promise, least_end=least)
    assert log.end_offset == end_offset


@pytest.mark.parametrize(
    ("way", "flushes_active"),
    [("in-order", True), ("out-of-order", True), ("out-of-order", False), ("names-forgotten", True)],
)
def test_the_last_record_of_every_key_survives_a_power_failure_at_any_change(
    way: str, flushes_active: bool
) -> None:
    disk = WatchedDisk()
    life = Life(disk, flushes_active=flushes_active)
    seen: set[int] = set()
    seeds = iter(range(10**9))
    found: list[Crash] = []

    def watch() -> None:
        if life.is_appending:
            return  # other tests look at these
        for crash in crashes(life, disk, seeds, ordered=way != "out-of-order"):
            key = hash((repr(contents(crash.disk)), crash.of_machine, crash.promise))
            if key not in seen:
                seen.add(key)
                found.append(crash)

    life.begin()
    disk.watch = watch
    disk.forgets_names = way == "names-forgotten"
    life.compact_twice()
    assert len(life.log.segments) > 2
    for number, crash in enumerate(found):
        try:
            check_crash(crash, Random(number))
        except Exception as error:
            raise AssertionError(f"{way}, {crash.how} ({number} of {len(found)})") from error
