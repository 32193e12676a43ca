"""Who waits for a commit, while epochs come and go and the disk takes its time."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.partitions.partition import Partition
from penstock.metadata import image
from penstock.model.errors import ErrorCode
from penstock.net.connection import Deferred
from penstock.runtime.files import OsDisk
from penstock.storage.chores import Flush, run_here
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from tests.unit.broker.test_flush_messages import FakeNode, error_code, until
from tests.unit.storage.batches import StillClock, make_batch


def placed(*, leader: int = 1, isr: tuple[int, ...] = (1, 2), epoch: int) -> image.PartitionRegistration:
    return image.PartitionRegistration((1, 2), isr, leader=leader, leader_epoch=epoch, partition_epoch=epoch)


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    async def make() -> Partition:
        return FakeNode(tmp_path).partitions.get("orders", 0)

    made = asyncio.run(make())
    made.lead(placed(epoch=1), own_id=1)
    return made


def append(partition: Partition) -> None:
    batch, _ = make_batch()
    partition.append(memoryview(bytearray(batch)), to_all=True)


def test_a_commit_may_come_in_a_later_epoch_of_the_same_leader(partition: Partition) -> None:
    """The other replica stops: nobody else has led, so a producer without idempotence need not send its records twice."""
    append(partition)
    told: list[ErrorCode] = []
    partition.when_committed(1, told.append)
    partition.lead(placed(epoch=2, isr=(1, 2)), own_id=1)
    assert told == []
    partition.lead(placed(epoch=3, isr=(1,)), own_id=1)
    assert told == [ErrorCode.NONE]


def test_a_commit_does_not_come_once_another_has_led(partition: Partition) -> None:
    append(partition)
    told: list[ErrorCode] = []
    partition.when_committed(1, told.append)
    partition.follow(placed(epoch=2, leader=2))
    partition.lead(placed(epoch=3, isr=(1,)), own_id=1)
    assert told == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_who_waits_for_a_flush_that_nobody_wants_any_more_is_told(tmp_path: Path) -> None:
    clock = StillClock()
    log = Log.open(OsDisk(), str(tmp_path / "orders-0"), LogOptions(flush_messages=1), clock)
    alone = Partition("orders", 0, log, clock, leader_epoch=0)
    append(alone)
    told: list[ErrorCode] = []
    alone.when_committed(1, told.append)
    assert told == []
    log.options = LogOptions()
    append(alone)
    assert told == [ErrorCode.NONE]


def test_those_who_gave_up_do_not_pile_up(partition: Partition) -> None:
    append(partition)
    for _ in range(100):
        commit = partition.when_committed(1, lambda error: None)
        assert commit is not None
        commit.cancel()
    assert len(partition.replica._commits) <= 1


def test_records_that_another_leader_cut_off_during_a_flush_are_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()
    real = Flush.run

    def slow(self: Flush) -> None:
        assert let_go.wait(60)
        real(self)

    monkeypatch.setattr(Flush, "run", slow)

    async def scenario() -> None:
        node: Any = FakeNode(tmp_path)
        partition = node.partitions.get("orders", 0)
        partition.lead(placed(epoch=1), own_id=1)
        partition.append(memoryview(bytearray(make_batch()[0])))
        deferred = node.produce()
        assert isinstance(deferred, Deferred)
        partition.follow(placed(epoch=2, leader=2))
        await asyncio.to_thread(run_here, partition.truncating(-1, 0))
        others = make_batch(2, leader_epoch=2)[0]
        partition.take_fetched(others, high_watermark=2, log_start_offset=0, last_stable_offset=2)
        partition.lead(placed(epoch=3, isr=(1,)), own_id=1)
        assert partition.high_watermark == 2
        let_go.set()
        await until(lambda: deferred.is_ready)
        assert error_code(deferred.parts) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        node.partitions.release()

    asyncio.run(scenario())
