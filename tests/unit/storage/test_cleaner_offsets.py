"""Where a log counts as clean, when its tail is cut, it is lost in a crash, deleted, or made anew under its name."""

import pytest

from penstock.model.ids import TopicPartition
from penstock.storage.checkpoints import CLEANER_CHECKPOINT, read_offsets
from penstock.storage.chores import run_here
from penstock.storage.log import Log
from penstock.storage.log_directory import LogDirectory
from penstock.storage.options import LogOptions
from penstock.testing.disk import MemoryDisk
from tests.unit.storage.batches import StillClock, append

PATH = "/data"
ORDERS = TopicPartition("orders", 0)
OTHER = TopicPartition("other", 0)
COMPACTED = LogOptions(compacted=True, file_delete_delay_ms=0)


def opened(disk: MemoryDisk, *, topic_id: bytes = bytes(range(16))) -> tuple[LogDirectory, Log]:
    directory = LogDirectory(disk, PATH, StillClock())
    return directory, directory.open_log(ORDERS, COMPACTED, topic_id=topic_id)


def on_device(disk: MemoryDisk) -> dict[TopicPartition, int]:
    return read_offsets(disk.crash(), f"{PATH}/{CLEANER_CHECKPOINT}")


def cleaned_to(disk: MemoryDisk, offset: int) -> tuple[LogDirectory, Log]:
    """A log of ten records, clean up to an offset."""
    directory, log = opened(disk)
    append(log, 5)
    append(log, 5)
    log.flush()
    directory.cleaner_offsets.set(ORDERS, offset)
    directory.cleaner_offsets.set(OTHER, 77)
    directory.cleaner_offsets.write()
    disk.sync_directory(PATH)
    return directory, log


@pytest.mark.parametrize(("clean_to", "left"), [(8, 5), (5, 5), (3, 3)])
def test_what_is_cut_off_a_log_is_not_clean_any_more(clean_to: int, left: int) -> None:
    disk = MemoryDisk()
    directory, log = cleaned_to(disk, clean_to)
    log.truncate_to(5)
    assert directory.cleaner_offsets.get(ORDERS) == left
    assert on_device(disk) == {ORDERS: left, OTHER: 77}


def test_a_log_that_is_emptied_is_not_clean_any_more() -> None:
    disk = MemoryDisk()
    directory, log = cleaned_to(disk, 8)
    run_here(log.starting_anew_at(2))
    assert directory.cleaner_offsets.get(ORDERS) == 2


def test_a_log_that_a_crash_made_shorter_is_clean_up_to_its_end_only() -> None:
    disk = MemoryDisk()
    directory, log = cleaned_to(disk, 10)
    append(log, 5)
    directory.cleaner_offsets.set(ORDERS, 15)
    directory.cleaner_offsets.write()
    disk.sync_directory(PATH)
    after = disk.crash()
    again, log = opened(after)
    assert log.end_offset == 10
    append(log, 9)
    assert again.cleaner_offsets.get(ORDERS) == 10
    assert on_device(after)[ORDERS] == 10


def test_a_deleted_log_leaves_nothing_to_another_of_its_name() -> None:
    disk = MemoryDisk()
    directory, log = cleaned_to(disk, 10)
    directory.delete_logs([log], bytes(16)).run()
    assert read_offsets(disk, f"{PATH}/{CLEANER_CHECKPOINT}") == {OTHER: 77}
    new = directory.open_log(ORDERS, COMPACTED, topic_id=bytes(range(1, 17)))
    append(new, 20)
    assert directory.cleaner_offsets.get(ORDERS) is None


def test_a_file_that_is_no_checkpoint_is_as_good_as_none() -> None:
    disk = MemoryDisk()
    directory, _ = cleaned_to(disk, 10)
    directory.release()
    disk.write(f"{PATH}/{CLEANER_CHECKPOINT}", b"nonsense")
    again, log = opened(disk.kill())
    assert again.cleaner_offsets.get(ORDERS) is None
    assert again.cleaner_offsets.problem
    assert log.end_offset == 10
