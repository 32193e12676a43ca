"""A crash at any step of a swap, and at any step of the recovery after it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.runtime.files import OsDisk
from penstock.storage import names
from penstock.storage.compaction.clean import Cleaning
from penstock.storage.compaction.swap import Swap
from penstock.storage.compaction.task import CleanedSegment
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from tests.unit.storage.batches import StillClock
from tests.unit.storage.compaction.cleaning import put, shown, swap_in, task_for
from tests.unit.storage.compaction.crashing_disk import CrashingDisk, PowerCut

BEFORE = [
    (0, "a", "1"),
    (1, "b", "1"),
    (2, "a", "2"),
    (3, "c", "1"),
    (4, "a", "3"),
    (5, "c", "2"),
    (6, "d", "1"),
]
AFTER = [(1, "b", "1"), (4, "a", "3"), (5, "c", "2"), (6, "d", "1")]


def open_at(directory: Path, disk: OsDisk | None = None) -> Log:
    return Log.open(disk or OsDisk(), str(directory / "t-0"), LogOptions(compacted=True), StillClock())


def fill(log: Log) -> None:
    put(log, ("a", "1"), ("b", "1"))
    log.roll()
    put(log, ("a", "2"), ("c", "1"))
    log.roll()
    put(log, ("a", "3"), ("c", "2"))
    log.roll()
    put(log, ("d", "1"))


def clean_to_files(log: Log) -> CleanedSegment:
    reported: list[float | CleanedSegment] = []
    Cleaning(OsDisk(), task_for(log), report=reported.append, throttle=lambda size: None).run()
    (cleaned,) = (each for each in reported if isinstance(each, CleanedSegment))
    return cleaned


def leftovers(directory: Path) -> list[str]:
    suffixes = (names.CLEANED_SUFFIX, names.SWAP_SUFFIX, names.DELETED_SUFFIX)
    return [name for name in os.listdir(directory / "t-0") if name.endswith(suffixes)]


def swap_with_power_cut(directory: Path, fail_after: int) -> bool:
    """Whether the swap was interrupted."""
    log = open_at(directory)
    fill(log)
    cleaned = clean_to_files(log)
    try:
        swap_in(CrashingDisk(fail_after), log, cleaned)
    except PowerCut:
        return True
    finally:
        log.close()
    return False


def every_crash(directory: Path) -> list[Path]:
    """The directories that a power cut after each single change of a swap leaves."""
    made = []
    for fail_after in range(100):
        case = directory / str(fail_after)
        case.mkdir()
        interrupted = swap_with_power_cut(case, fail_after)
        made.append(case)
        if not interrupted:
            return made
    raise AssertionError("a swap does not end")


def test_after_a_crash_at_any_step_the_log_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    cases = every_crash(tmp_path)
    assert len(cases) > 12
    seen = []
    for case in cases:
        log = open_at(case)
        seen.append(shown(log) == AFTER)
        assert shown(log) in (BEFORE, AFTER), case
        assert log.end_offset == 7
        assert leftovers(case) == []
        log.close()
        assert shown(open_at(case)) == (AFTER if seen[-1] else BEFORE)
    assert seen == sorted(seen)  # from some step on it is the new one
    assert not seen[0]
    assert seen[-1]


def test_a_crash_during_the_recovery_of_a_crash_loses_nothing_either(tmp_path: Path) -> None:
    (tmp_path / "cases").mkdir()
    for case in every_crash(tmp_path / "cases"):
        for fail_after in range(100):
            copy = tmp_path / "copy"
            shutil.copytree(case, copy)
            try:
                open_at(copy, CrashingDisk(fail_after)).close()
                interrupted = False
            except PowerCut:
                interrupted = True
            log = open_at(copy)
            assert shown(log) in (BEFORE, AFTER), (case, fail_after)
            assert leftovers(copy) == []
            log.close()
            shutil.rmtree(copy)
            if not interrupted:
                break


@pytest.mark.parametrize("lost", ["index", "timeindex", "both"])
def test_a_swap_whose_index_renames_were_lost_is_completed_with_rebuilt_indexes(
    tmp_path: Path, lost: str
) -> None:
    log = open_at(tmp_path)
    fill(log)
    swap = Swap(OsDisk(), log, clean_to_files(log))
    assert swap.begin()
    log.close()
    for kind in ("index", "timeindex"):
        if lost in (kind, "both"):
            os.unlink(tmp_path / "t-0" / f"{0:020d}.{kind}.swap")
    assert shown(open_at(tmp_path)) == AFTER


def test_a_log_swapped_by_apache_kafka_half_way_to_swap_stays_the_old_one(tmp_path: Path) -> None:
    """Kafka renames the .log first: then its index is still .cleaned."""
    log = open_at(tmp_path)
    fill(log)
    clean_to_files(log)
    log.close()
    path = tmp_path / "t-0" / f"{0:020d}.log"
    os.rename(f"{path}.cleaned", f"{path}.swap")
    assert shown(open_at(tmp_path)) == BEFORE
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("cut", ["retention", "truncation"])
def test_a_log_that_loses_segments_in_the_middle_of_a_swap_drops_the_swap(tmp_path: Path, cut: str) -> None:
    log = open_at(tmp_path)
    fill(log)
    swap = Swap(OsDisk(), log, clean_to_files(log))
    assert swap.begin()
    if cut == "retention":
        removal = log.advance_start_offset(2)
        assert removal is not None
        removal.run()
    else:
        log.truncate_to(3)
    assert leftovers(tmp_path) == []
    assert swap.take_over() is None
    swap.finish()
    expected = BEFORE[2:] if cut == "retention" else BEFORE[:2]
    assert shown(log) == expected


def test_a_log_truncated_after_the_old_segments_went_keeps_the_truncation(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    fill(log)
    swap = Swap(OsDisk(), log, clean_to_files(log))
    assert swap.begin()
    assert swap.take_over() is not None
    log.truncate_to(6)
    swap.finish()
    assert shown(log) == AFTER[:3]
    log.close()
    assert shown(open_at(tmp_path)) == AFTER[:3]


def test_readers_are_served_between_all_steps(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    fill(log)
    cleaned = clean_to_files(log)
    seen: list[object] = []
    pause: Callable[[], None] = lambda: seen.append(shown(log))  # noqa: E731
    swap_in(OsDisk(), log, cleaned, pause)
    assert seen == [BEFORE, AFTER, AFTER]


def test_the_snapshot_of_producers_at_the_base_stays(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    fill(log)
    put(log, ("e", "1"), producer_id=9)
    log.roll()
    put(log, ("e", "2"), producer_id=9, base_sequence=1)
    log.roll()
    task = task_for(log)
    task = task._replace(segments=task.segments[3:])  # as if the first ones were full
    reported: list[float | CleanedSegment] = []
    Cleaning(OsDisk(), task, report=reported.append, throttle=lambda size: None).run()
    base = task.segments[0].base_offset
    swap_in(OsDisk(), log, next(each for each in reported if isinstance(each, CleanedSegment)))
    assert (tmp_path / "t-0" / f"{base:020d}.snapshot").exists()
    assert not (tmp_path / "t-0" / f"{task.segments[1].base_offset:020d}.snapshot").exists()
