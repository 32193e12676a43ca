"""The power goes at every change while a compacted segment takes the place of the ones it was made from."""

from random import Random

import pytest

from penstock.storage import names
from penstock.storage.compaction.swap import Swap
from penstock.storage.compaction.task import CleanedSegment
from penstock.storage.log import Log
from penstock.storage.log_directory import LogDirectory
from penstock.storage.options import LogOptions
from penstock.storage.segment import Segment
from penstock.testing.disk import MemoryDisk, PowerCut
from tests.unit.storage.batches import StillClock
from tests.unit.storage.crash_life import ORDERS, PATH, TOPIC_ID, Life, batches_of, check_log

COMPACTED = LogOptions(segment_bytes=420, index_interval_bytes=100, file_delete_delay_ms=0, compacted=True)
PAGE_BYTES = 64
SEEDS = 4


def write_cleaned(disk: MemoryDisk, log: Log, replaced: list[Segment]) -> CleanedSegment:
    """What the worker would leave behind: every other batch, on the device."""
    base_offset = replaced[0].base_offset
    cleaned = Segment(disk, log.directory, base_offset, created_ms=0, file_suffix=names.CLEANED_SUFFIX)
    cleaned.file = disk.open(cleaned.path(names.LOG_SUFFIX), create=True)
    found = [(segment, *at) for segment in replaced for at in segment.headers()]
    for segment, position, header in found[1::2]:
        cleaned.append(
            memoryview(segment.open_file().read_at(position, header.size_bytes)),
            last_offset=header.last_offset,
            max_timestamp=header.max_timestamp,
            index_interval_bytes=100,
        )
    cleaned.finish()
    cleaned.file.sync()
    for index in (cleaned.offset_index, cleaned.time_index):
        disk.open(index.path, create=True).sync()
    return CleanedSegment(
        base_offset,
        [segment.base_offset for segment in replaced],
        cleaned.size_bytes,
        cleaned.offset_index.size_bytes,
        cleaned.time_index.size_bytes,
    )


class Compaction:
    def __init__(self, disk: MemoryDisk) -> None:
        self.disk = disk
        self.life = Life(disk)
        self.life.open(COMPACTED)
        self.life.append(20, epoch=0)
        self.life.flush()
        self.life.checkpoint()
        self.before = batches_of(self.life.log)
        log = self.life.log
        self.replaced = list(log.segments)[:3]
        self.end_offset = log.segments[3].base_offset
        assert len(log.segments) > 4

    def run(self) -> None:
        log = self.life.log
        swap = Swap(self.disk, log, write_cleaned(self.disk, log, self.replaced))
        assert swap.begin()
        swap.sync()
        removal = swap.take_over()
        assert removal is not None
        swap.sync()
        swap.finish()
        swap.sync()
        removal.run()

    def check(self, disk: MemoryDisk) -> None:
        for _ in range(2):
            directory = LogDirectory(disk, PATH, StillClock())
            log = directory.open_log(ORDERS, COMPACTED, topic_id=TOPIC_ID)
            check_log(log, dense=False)
            found = batches_of(log)
            below = [entry for entry in found if entry[0].base_offset < self.end_offset]
            old = [entry for entry in self.before if entry[0].base_offset < self.end_offset]
            assert below in (old, old[1::2])
            assert found[len(below) :] == self.before[len(old) :]
            assert log.end_offset == self.life.log.end_offset
            disk = disk.kill()


def count_of_changes() -> tuple[int, int]:
    disk = MemoryDisk(page_bytes=PAGE_BYTES)
    compaction = Compaction(disk)
    before = disk.changes
    compaction.run()
    compaction.check(disk.crash(keep="everything"))
    return before, disk.changes


BEFORE, AFTER = count_of_changes()


@pytest.mark.parametrize("ordered", [True, False])
def test_a_swap_cut_anywhere_leaves_the_old_segments_or_the_new_one(ordered: bool) -> None:
    for changes in range(AFTER - BEFORE + 1):
        disk = MemoryDisk(page_bytes=PAGE_BYTES)
        compaction = Compaction(disk)
        disk.stop_after(changes, tear=True)
        try:
            compaction.run()
        except PowerCut:
            pass
        crashed = {
            "killed": disk.kill(),
            "nothing": disk.crash(),
            "everything": disk.crash(keep="everything"),
            **{f"seed {seed}": disk.crash(keep=Random(seed), ordered=ordered) for seed in range(SEEDS)},
        }
        for how, after in crashed.items():
            try:
                compaction.check(after)
            except Exception as error:
                raise AssertionError(f"cut at change {changes}, {how}, ordered={ordered}") from error
