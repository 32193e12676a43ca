"""Truncations that go on when nobody waits for them any more."""

import asyncio
from errno import EMFILE
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.partitions.partition import Partition
from penstock.broker.replication.cuts import Cuts
from penstock.broker.upkeep.log_directories import is_of_the_disk
from penstock.metadata import image
from penstock.runtime.files import OsDisk
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from tests.unit.storage.batches import StillClock, make_batch


class FailingPool:
    """Its work ends when `go_on` is set, with a fault of the disk."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def run(self, chore: Any) -> None:
        await self.go_on.wait()
        raise OSError(5, "Input/output error")


class FakePartition:
    topic = "orders"
    index = 3
    log = SimpleNamespace(swap=None, end_offset=0)


def test_a_fault_of_the_disk_is_reported_although_the_waiter_was_cancelled() -> None:
    async def go() -> None:
        reported: list[tuple[OSError, Any]] = []
        pool = FailingPool()
        partition: Any = FakePartition()
        node: Any = SimpleNamespace(
            loop=asyncio.get_running_loop(),
            pools=SimpleNamespace(syncs=pool),
            report_disk_fault=lambda what, error, partition: reported.append((error, partition)),
        )
        cuts = Cuts(node)
        chores: Any = (chore for chore in [None])
        waiting = asyncio.ensure_future(cuts.run(partition, chores))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        pool.go_on.set()
        await cuts.drain()
        await asyncio.sleep(0)
        ((error, where),) = reported
        assert error.errno == 5
        assert where is partition

    asyncio.run(go())


class PoolWithoutFiles:
    """Works until the log was cut, then there are no more files to be opened."""

    def __init__(self, log: Log) -> None:
        self._log = log

    async def run(self, chore: Any) -> None:
        if self._log.end_offset < 6:
            raise OSError(EMFILE, "Too many open files")
        chore()


def test_a_cut_that_ends_half_way_is_a_fault_of_the_log(tmp_path: Path) -> None:
    """Whatever it was: what the log knows of its producers is not what it holds."""

    async def go() -> None:
        partition = followed(tmp_path)
        node: Any = SimpleNamespace(
            loop=asyncio.get_running_loop(), pools=SimpleNamespace(syncs=PoolWithoutFiles(partition.log))
        )
        with pytest.raises(OSError) as fault:
            await Cuts(node).run(partition, partition.truncating(4, 3))
        assert is_of_the_disk(fault.value)

    asyncio.run(go())


def followed(tmp_path: Path) -> Partition:
    """Of epochs 4 and 5, three records each."""
    clock = StillClock()
    log = Log.open(OsDisk(), str(tmp_path / "orders-3"), LogOptions(), clock)
    for offset, epoch in ((0, 4), (3, 5)):
        log.append_as_follower(memoryview(make_batch(3, base_offset=offset, leader_epoch=epoch)[0]))
    partition = Partition("orders", 3, log, clock, leader_epoch=-1, high_watermark=0)
    partition.follow(image.PartitionRegistration((1, 2), (1, 2), leader=2, leader_epoch=6))
    return partition


def test_a_log_that_is_deleted_while_it_is_cut_leaves_that_of_its_successor_alone(tmp_path: Path) -> None:
    partition = followed(tmp_path)
    old = partition.log
    chores = iter(partition.truncating(4, 3))
    while old.end_offset == 6:
        next(chores)()
    partition.leave()
    old.delete(bytes(16))
    new = Log.open(OsDisk(), str(tmp_path / "orders-3"), LogOptions(), StillClock())
    new.append(make_batch(1)[0], make_batch(1)[1], 0)
    for chore in chores:
        chore()
    new.leader_epochs.load()
    assert new.leader_epochs.entries == [(0, 0)]
