"""The power goes, or the process dies, at every single change that the life of a log directory makes to its disk."""

from random import Random

import pytest

from penstock.testing.disk import MemoryDisk, PowerCut
from tests.unit.storage.crash_life import Life, check_after_crash, reopened

PAGE_BYTES = 64  # small, so that small batches are torn
SEEDS = 5


def lived_until(changes: int, *, tear: bool) -> Life:
    disk = MemoryDisk(page_bytes=PAGE_BYTES)
    life = Life(disk)
    disk.stop_after(changes, tear=tear)
    with pytest.raises(PowerCut):
        life.run()
    return life


def count_of_changes() -> int:
    disk = MemoryDisk(page_bytes=PAGE_BYTES)
    Life(disk).run()
    return disk.changes


CHANGES = count_of_changes()


def test_the_life_makes_changes_of_every_kind() -> None:
    disk = MemoryDisk()
    disk.trace = []
    Life(disk).run()
    kinds = {operation.kind for operation in disk.trace}
    assert kinds >= {"append", "truncate", "write", "replace", "delete", "create", "sync", "sync_directory"}


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("tear", [False, True])
def test_a_killed_process_loses_nothing_that_was_acknowledged(part: int, tear: bool) -> None:
    for changes in range(part, CHANGES, 4):
        life = lived_until(changes, tear=tear)
        try:
            check_after_crash(life, life.disk.kill(), least_end=life.acknowledged_least)
        except Exception as error:
            raise AssertionError(f"killed at change {changes}, tear={tear}") from error


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("keep", ["nothing", "everything"])
def test_a_power_failure_loses_nothing_that_was_flushed(part: int, keep: str) -> None:
    for changes in range(part, CHANGES, 4):
        life = lived_until(changes, tear=keep == "everything")
        try:
            check_after_crash(life, life.disk.crash(keep=keep), least_end=life.flushed_end)  # type: ignore[arg-type]
        except Exception as error:
            raise AssertionError(f"power failed at change {changes}, kept {keep}") from error


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("ordered", [True, False])
def test_a_power_failure_that_tears_files_loses_nothing_that_was_flushed(part: int, ordered: bool) -> None:
    for changes in range(part, CHANGES, 4):
        life = lived_until(changes, tear=True)
        for seed in range(SEEDS):
            disk = life.disk.crash(keep=Random(seed), ordered=ordered)
            try:
                check_after_crash(life, disk, least_end=life.flushed_end, ordered=ordered)
            except Exception as error:
                raise AssertionError(
                    f"power failed at change {changes}, seed {seed}, ordered={ordered}"
                ) from error


def test_after_a_clean_stop_a_power_failure_changes_nothing() -> None:
    disk = MemoryDisk(page_bytes=PAGE_BYTES)
    life = Life(disk)
    life.run()
    directory, log = reopened(disk.crash())
    assert directory.clean
    assert log.report.lines == []
    assert log.end_offset == life.acknowledged_end
