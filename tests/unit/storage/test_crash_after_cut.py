"""A log is cut below its recovery point, and the power fails before a checkpoint says so.

What is appended in place of the cut is not on the device, although the last checkpoint says that everything up to there is.
"""

from collections.abc import Callable, Iterator
from random import Random

import pytest

from penstock.model.ids import TopicPartition
from penstock.storage.checkpoints import RECOVERY_POINT_CHECKPOINT, read_offsets
from penstock.storage.chores import run_here
from penstock.storage.log import Log
from penstock.storage.log_directory import LogDirectory
from penstock.storage.options import LogOptions
from penstock.testing.disk import MemoryDisk, PowerCut
from tests.unit.storage.batches import StillClock, append, base_offsets
from tests.unit.storage.crash_life import ORDERS, PATH, Life, check_after_crash

PAGE_BYTES = 64  # small, so that small batches are torn
SEEDS = 3


def cut_many_segments(life: Life) -> None:
    """Four on the device, cut in the first; then three again, none of which is known to be on the device."""
    life.open()
    life.append(16, epoch=0)
    life.flush()
    life.checkpoint()
    life.truncate(life.versions[-1][2][0])
    while len(life.log.segments) < 3:
        life.append(1, epoch=1)
    assert life.log.segments.active.base_offset < life.versions[0][-1][0]


def cut_the_last_segment(life: Life) -> None:
    """After a clean stop, which leaves a snapshot of the producers at the end."""
    life.open()
    life.append(4, epoch=0)
    life.close()
    life.open()
    end_offset = life.log.end_offset
    life.truncate(1)
    life.append(1, epoch=1)
    life.log.roll()
    assert life.log.end_offset < end_offset
    life.append(3, epoch=1)
    assert life.log.end_offset > end_offset


def cut_while_others_work(life: Life) -> None:
    """Between the chores of a cut the log is flushed, checkpointed and shortened, as far as it lets itself be."""
    life.open()
    life.append(16, epoch=0)
    life.flush()
    life.checkpoint()
    for chore in life.truncating(life.versions[-1][2][0]):
        life.flush()
        life.checkpoint()
        assert life.log.apply_retention(now_ms=10**15, end_offset=life.log.end_offset) is None
        chore()
        life.checkpoint()
    life.append(6, epoch=1)
    life.log.roll()
    life.append(1, epoch=1)


LIVES = pytest.mark.parametrize("live", [cut_many_segments, cut_the_last_segment, cut_while_others_work])


def on_device(disk: MemoryDisk) -> dict[TopicPartition, int]:
    return read_offsets(disk.crash(), f"{PATH}/{RECOVERY_POINT_CHECKPOINT}")


def count_of_changes(live: Callable[[Life], None]) -> int:
    disk = MemoryDisk(page_bytes=PAGE_BYTES)
    live(Life(disk))
    return disk.changes


@LIVES
def test_a_segment_that_was_cut_and_written_anew_is_checked_also_when_there_are_later_ones(
    live: Callable[[Life], None],
) -> None:
    disk = MemoryDisk()
    life = Life(disk)
    live(life)
    disk.sync_file(
        life.log.segments.active.path(".log")
    )  # as it may happen at any time; the others are not so lucky
    disk.sync_directory(life.log.directory)
    check_after_crash(life, disk.crash(), least_end=life.flushed_end)


@LIVES
@pytest.mark.parametrize("ordered", [True, False])
def test_a_power_failure_at_any_moment_after_a_cut_leaves_a_log_without_a_hole(
    live: Callable[[Life], None], ordered: bool
) -> None:
    for changes in range(count_of_changes(live)):
        disk = MemoryDisk(page_bytes=PAGE_BYTES)
        life = Life(disk)
        disk.stop_after(changes, tear=True)
        with pytest.raises(PowerCut):
            live(life)
        for seed in range(SEEDS):
            crashed = disk.crash(keep=Random(seed), ordered=ordered)
            try:
                check_after_crash(life, crashed, least_end=life.flushed_end, ordered=ordered)
            except Exception as error:
                raise AssertionError(f"power failed at change {changes}, seed {seed}") from error


def test_a_checkpoint_that_looked_at_the_log_before_it_was_cut_is_put_right() -> None:
    disk = MemoryDisk()
    life = Life(disk)
    life.open()
    life.append(4, epoch=0)
    life.flush()
    end_offset = life.log.end_offset

    chores = life.log.truncating_to(3)
    next(chores)()  # where the log will end

    def looked_at_too_early() -> Iterator[Log]:
        yield life.log
        waiting.append(next(chores))  # in the owner's thread, while another writes the checkpoint

    waiting: list[Callable[[], object]] = []
    life.directory.checkpoint(looked_at_too_early(), {})
    assert on_device(disk) == {ORDERS: end_offset}
    waiting[0]()
    run_here(chores)
    assert on_device(disk) == {ORDERS: 3}


def test_where_the_recovery_point_cannot_be_lowered_nothing_is_cut() -> None:
    disk = MemoryDisk()
    life = Life(disk)
    life.open()
    life.append(4, epoch=0)
    life.flush()
    life.checkpoint()
    before = base_offsets(life.log)
    disk.fail("write", path=f"{PATH}/{RECOVERY_POINT_CHECKPOINT}*", times=1)
    with pytest.raises(OSError, match="error"):
        life.log.truncate_to(3)
    assert base_offsets(life.log) == before
    life.truncate(3)
    life.append(1, epoch=1)
    assert on_device(disk) == {ORDERS: 3}


def test_a_change_of_roles_that_cuts_many_logs_does_not_write_the_checkpoint_for_each() -> None:
    disk = MemoryDisk()
    directory = LogDirectory(disk, PATH, StillClock())
    logs = [directory.open_log(TopicPartition("orders", index), LogOptions()) for index in range(20)]
    for log in logs:
        append(log, 5)
        append(log, 5)
        log.flush()
    directory.checkpoint(logs, {})
    disk.trace = []
    under_way = [log.truncating_to(5) for log in logs]
    for chores in under_way:
        next(chores)()
    lowering = [next(chores) for chores in under_way]
    for lower, chores in zip(lowering, under_way, strict=True):
        lower()
        run_here(chores)
    written = [
        each.path for each in disk.trace if each.kind == "write" and RECOVERY_POINT_CHECKPOINT in each.path
    ]
    assert len(written) == 1
    assert set(on_device(disk).values()) == {5}


def test_a_power_failure_while_a_compacted_log_is_cut_leaves_no_hole() -> None:
    """There a gap between two segments is nothing that could be noticed."""
    options = LogOptions(segment_bytes=250, compacted=True, file_delete_delay_ms=0)
    changes = 0
    is_over = False
    while not is_over:
        disk = MemoryDisk()
        directory = LogDirectory(disk, PATH, StillClock())
        log = directory.open_log(ORDERS, options)
        for _ in range(9):
            append(log)
        log.flush()
        directory.checkpoint([log], {})
        disk.stop_after(changes)
        try:
            log.truncate_to(1)
            is_over = True
        except PowerCut:
            changes += 1
        again = LogDirectory(disk.crash(), PATH, StillClock()).open_log(ORDERS, options)
        assert base_offsets(again) == list(range(again.end_offset))
    assert (changes > 10, again.end_offset) == (True, 1)


def test_producers_that_were_cut_off_do_not_come_back_with_their_snapshot() -> None:
    disk = MemoryDisk()
    directory = LogDirectory(disk, PATH, StillClock())
    log = directory.open_log(ORDERS, LogOptions())
    append(log)
    append(log, 2, producer_id=9)
    directory.close([log], {})
    directory = LogDirectory(disk, PATH, StillClock())
    log = directory.open_log(ORDERS, LogOptions())
    assert 9 in log.producers
    log.truncate_to(1)
    append(log, 5)
    log.segments.active.open_file().sync()
    again = LogDirectory(disk.crash(), PATH, StillClock()).open_log(ORDERS, LogOptions())
    assert again.end_offset == 6
    assert 9 not in again.producers
