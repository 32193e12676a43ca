"""The broker's side of compaction, with a real log and a real worker process, without a broker around it."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.partitions.partition import Partition
from penstock.broker.upkeep.cleaner import Cleaner
from penstock.config.layers import BrokerConfig
from penstock.model.ids import TopicPartition
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.runtime.pools import Pools
from penstock.storage.checkpoints import CLEANER_CHECKPOINT, read_offsets
from penstock.storage.cleaner_offsets import CleanerOffsets
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from tests.unit.storage.compaction.cleaning import put, shown

DEADLINE_S = 90


class HeldPartitions(list[Partition]):
    def __init__(self, path: Path, *partitions: Partition) -> None:
        super().__init__(partitions)
        self.disk = OsDisk()
        home = SimpleNamespace(path=str(path), cleaner_offsets=CleanerOffsets(self.disk, str(path)))
        self.log_directories = SimpleNamespace(online=[home], home=lambda topic_partition: home)
        self.removals: list[object] = []
        self.run_later = self.removals.append


def partition_at(path: Path, name: str, **options: Any) -> Partition:
    log = Log.open(OsDisk(), str(path / f"{name}-0"), LogOptions(compacted=True, **options), SystemClock())
    put(log, ("a", "1"), ("b", "1"), ("a", "2"))
    log.roll()
    put(log, ("a", "3"))
    log.flush()
    return Partition(name, 0, log, SystemClock(), leader_epoch=0)


def run(
    path: Path,
    scenario: Callable[[Cleaner], Coroutine[Any, Any, None]],
    *partitions: Partition,
    **options: str,
) -> HeldPartitions:
    held = HeldPartitions(path, *partitions)

    async def main() -> None:
        config = {
            "log.cleaner.backoff.ms": "20",
            **{name.replace("_", "."): text for name, text in options.items()},
        }
        node: Any = SimpleNamespace(
            config=BrokerConfig(config),
            clock=SystemClock(),
            loop=asyncio.get_running_loop(),
            pools=Pools(asyncio.get_running_loop()),
            partitions=held,
            log_moves=SimpleNamespace(all=list),
            report_disk_fault=lambda what, error, partition: logging.getLogger("penstock.broker").error(what),
        )
        cleaner = Cleaner(node)
        cleaner.start()
        try:
            await asyncio.wait_for(scenario(cleaner), DEADLINE_S)
        finally:
            await cleaner.stop()

    asyncio.run(main())
    return held


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_a_status_tells_of_the_last_run_and_the_checkpoint_keeps_its_end(tmp_path: Path) -> None:
    partition = partition_at(tmp_path, "orders")

    async def scenario(cleaner: Cleaner) -> None:
        await until(
            lambda: (status := cleaner.status("orders", 0)) and status.runs and status.progress is None
        )
        status = cleaner.status("orders", 0)
        assert status is not None
        assert (status.records_kept, status.records_removed) == (2, 1)
        assert 0 < status.bytes_written < status.bytes_read
        assert (status.dirty_ratio, status.is_cleanable, status.uncleanable_reason) == (0.0, False, None)
        assert status.last_run_ms > 0
        assert cleaner.status("other", 0) is None

    held = run(tmp_path, scenario, partition)
    assert shown(partition.log) == [(1, "b", "1"), (2, "a", "2"), (3, "a", "3")]
    assert read_offsets(OsDisk(), str(tmp_path / CLEANER_CHECKPOINT)) == {("orders", 0): 3}
    assert len(held.removals) == 1


def test_a_log_below_its_ratio_is_looked_at_and_left(tmp_path: Path) -> None:
    partition = partition_at(tmp_path, "orders", min_cleanable_dirty_ratio=1.0)

    async def scenario(cleaner: Cleaner) -> None:
        await until(lambda: cleaner.status("orders", 0))
        status = cleaner.status("orders", 0)
        assert status is not None
        assert (status.dirty_ratio, status.is_cleanable, status.runs) == (1.0, False, 0)

    run(tmp_path, scenario, partition)


def test_a_checkpoint_of_the_last_run_is_gone_on_from(tmp_path: Path) -> None:
    (tmp_path / CLEANER_CHECKPOINT).write_text("0\n1\norders 0 3\n")
    partitions = [partition_at(tmp_path, name) for name in ("orders", "other")]

    async def scenario(cleaner: Cleaner) -> None:
        await until(lambda: (status := cleaner.status("other", 0)) and status.runs)
        status = cleaner.status("orders", 0)
        assert status is not None
        assert status.runs == 0

    run(tmp_path, scenario, *partitions)


def test_several_cleaners_work_side_by_side(tmp_path: Path) -> None:
    partitions = [partition_at(tmp_path, name) for name in ("one", "two")]

    async def scenario(cleaner: Cleaner) -> None:
        running = [cleaner.status(name, 0) for name in ("one", "two")]

        def both_run() -> bool:
            running[:] = [cleaner.status(name, 0) for name in ("one", "two")]
            return all(status is not None and status.progress is not None for status in running)

        await until(both_run)

    # So slow that neither ends.
    run(tmp_path, scenario, *partitions, log_cleaner_threads="2", log_cleaner_io_max_bytes_per_second="1")


def test_without_log_cleaner_enable_nothing_is_done(tmp_path: Path) -> None:
    partition = partition_at(tmp_path, "orders")

    async def scenario(cleaner: Cleaner) -> None:
        assert cleaner._task is None
        assert cleaner.status("orders", 0) is None

    run(tmp_path, scenario, partition, log_cleaner_enable="false")


def test_a_damaged_log_is_given_up_and_said_so_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    partitions = [partition_at(tmp_path, name) for name in ("orders", "other")]
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    logging.getLogger("penstock").propagate = True

    async def scenario(cleaner: Cleaner) -> None:
        await until(lambda: (status := cleaner.status("orders", 0)) and status.uncleanable_reason)
        await until(lambda: (status := cleaner.status("other", 0)) and status.runs)

    run(tmp_path, scenario, *partitions)
    said = [
        record.message
        for record in caplog.records
        if "not compacted until the broker is restarted" in record.message
    ]
    assert len(said) == 1
    assert f"{0:020d}.log at byte 0" in said[0]


def test_what_is_not_on_the_device_is_not_compacted_yet(tmp_path: Path) -> None:
    unflushed, flushed = partition_at(tmp_path, "orders"), partition_at(tmp_path, "other")
    put(unflushed.log, ("b", "2"))
    unflushed.log.roll()
    put(unflushed.log, ("c", "1"))

    async def scenario(cleaner: Cleaner) -> None:
        # Up to offset 3 only: with the record at 4, which a power failure may take, the one at 1 could go.
        await until(lambda: (status := cleaner.status("orders", 0)) and status.runs)
        await until(lambda: (status := cleaner.status("other", 0)) and status.runs)

    run(tmp_path, scenario, unflushed, flushed)
    assert shown(unflushed.log) == [(1, "b", "1"), (2, "a", "2"), (3, "a", "3"), (4, "b", "2"), (5, "c", "1")]
    assert read_offsets(OsDisk(), str(tmp_path / CLEANER_CHECKPOINT))[TopicPartition("orders", 0)] == 3


def test_a_cleaning_is_dropped_when_the_log_is_cut_meanwhile(tmp_path: Path) -> None:
    partition = partition_at(tmp_path, "orders")

    async def scenario(cleaner: Cleaner) -> None:
        await until(
            lambda: (status := cleaner.status("orders", 0)) and status.progress is not None and cleaner._known
        )
        await asyncio.to_thread(partition.log.truncate_to, 2)
        put(partition.log, ("z", "1"))
        partition.log.roll()
        put(partition.log, ("y", "1"))
        await until(lambda: (status := cleaner.status("orders", 0)) and status.progress is None)

    run(tmp_path, scenario, partition, log_cleaner_io_max_bytes_per_second="200")
    found = shown(partition.log)
    assert ("z", "1") in [(key, value) for _, key, value in found]
    assert "2" not in [value for _, _, value in found]
