"""The partitions of a broker on a real disk: opened, deleted, and what a failing disk leaves of them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from traceback import walk_tb
from typing import Any

import pytest

from penstock.broker.metadata.changes import Changes
from penstock.broker.node import Node
from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.broker.upkeep.flushes import Flushes
from penstock.broker.upkeep.maintenance import Maintenance
from penstock.controller.decision import Decision
from penstock.metadata.image import Change, ClusterImage, PartitionRegistration, Topic, TopicCreated
from penstock.model.errors import ApiError, ErrorCode
from penstock.records.build import build_batch
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.runtime.pools import Pools
from penstock.storage.log import Log
from penstock.storage.log_directory import LogDirectory
from penstock.storage.options import LogOptions

PLACED = PartitionRegistration(replicas=(1,), isr=(1,), leader=1)
FULL = OSError(28, "No space left on device")


def topic(name: str, count: int, *, number: int = 1) -> Topic:
    return Topic(name, topic_id=bytes([number]) * 16, partitions=[PLACED] * count)


def records(**options: Any) -> memoryview:
    return memoryview(build_batch([(b"key", b"value", (), 1_700_000_000_000)], **options))


@pytest.fixture
def partitions(tmp_path: Path) -> Iterator[HeldPartitions]:
    held = HeldPartitions(OsDisk(), [str(tmp_path / "a"), str(tmp_path / "b")], SystemClock(), broker_id=1)
    yield held
    held.release()


def open_all(partitions: HeldPartitions, wanted: Topic) -> int:
    return sum(1 for _ in partitions.open_topic(wanted, LogOptions()))


def test_a_topic_is_opened_one_partition_at_a_time(partitions: HeldPartitions) -> None:
    opening = partitions.open_topic(topic("orders", 3), LogOptions())
    assert next(opening) == 0
    assert partitions.get("orders", 0).high_watermark == 0
    with pytest.raises(ApiError):
        partitions.get("orders", 1)
    assert list(opening) == [1, 2]
    assert open_all(partitions, topic("orders", 5)) == 2


def test_a_partition_that_cannot_be_opened_does_not_keep_the_others(
    partitions: HeldPartitions, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = LogDirectory.open_log

    def fail_once(self: LogDirectory, topic_partition: Any, *args: Any, **options: Any) -> Log:
        if topic_partition.partition == 1:
            raise OSError(24, "Too many open files")
        return real(self, topic_partition, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(LogDirectory, "open_log", fail_once)
        with pytest.raises(OSError, match="Too many"):
            open_all(partitions, topic("orders", 3))
    assert [partition.index for partition in partitions] == [0, 2]
    open_all(partitions, topic("orders", 3))
    assert [partition.index for partition in partitions] == [0, 1, 2]


def test_a_topic_goes_even_when_its_files_cannot(
    partitions: HeldPartitions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_all(partitions, topic("orders", 2))
    partitions.get("orders", 0).append(records())

    def fail(self: OsDisk, source: str, target: str) -> None:
        raise FULL

    with monkeypatch.context() as patch:
        patch.setattr(OsDisk, "replace", fail)
        partitions.delete_topic("orders")
    assert partitions.topic("orders") is None
    open_all(partitions, topic("orders", 2, number=2))
    assert partitions.get("orders", 0).high_watermark == 0
    assert len(list(tmp_path.glob("?/orders-0"))) == 1


def test_the_files_of_a_topic_are_removed_in_one_piece_of_work(
    partitions: HeldPartitions, tmp_path: Path
) -> None:
    removals: list[Any] = []
    partitions.run_later = removals.append
    open_all(partitions, topic("orders", 20))
    partitions.delete_topic("orders")
    assert len(removals) == 2  # one per directory
    for removal in removals:
        removal.run()
    assert not list(tmp_path.glob("?/orders*"))


def test_a_transactional_batch_is_refused_also_without_a_transactional_id(partitions: HeldPartitions) -> None:
    open_all(partitions, topic("orders", 1))
    partition = partitions.get("orders", 0)
    with pytest.raises(ApiError) as refusal:
        partition.append(records(transactional=True, producer_id=1, producer_epoch=0, base_sequence=0))
    assert refusal.value.code == ErrorCode.INVALID_TXN_STATE
    assert (partition.high_watermark, len(partition.log.producers)) == (0, 0)


class EmptyTree:
    async def multi(self, ops: object) -> list[None]:
        return []


def test_the_image_follows_the_tree_also_when_the_disk_fails() -> None:
    """What is written in the tree is so; to forget half of it would make the two disagree until a restart."""
    cluster = ClusterImage()
    acted: list[str] = []

    async def prepare(change: Change) -> None:
        if isinstance(change, TopicCreated) and change.name == "first":
            raise FULL

    def act(change: Change) -> None:
        assert isinstance(change, TopicCreated)
        acted.append(change.name)

    decision: Decision[None] = Decision([], [], [])
    for number, name in enumerate(("first", "second"), 1):
        decision.changes.append(TopicCreated(name, bytes([number]) * 16, (PLACED,)))
    tree: Any = EmptyTree()
    with pytest.raises(OSError, match="No space"):
        asyncio.run(Changes(cluster, tree, prepare, act).make(lambda: decision))
    assert list(cluster.topics) == acted == ["first", "second"]


class FakeNode:
    def __init__(self, partitions: HeldPartitions) -> None:
        self.partitions = partitions
        self.clock = SystemClock()
        self.loop = asyncio.get_running_loop()
        self.pools = Pools(self.loop)
        self.faults: list[str] = []
        node: Any = self
        self.flushes = Flushes(node)

    def report_disk_fault(self, what: str, error: OSError, partition: object = None) -> None:
        self.faults.append(str(error))


def test_a_log_that_cannot_be_flushed_does_not_keep_the_others(partitions: HeldPartitions) -> None:
    for _ in partitions.open_topic(topic("orders", 3), LogOptions(flush_ms=0)):
        pass
    for partition in partitions:
        partition.append(records())

    def fail() -> None:
        raise OSError(5, "Input/output error")

    active: Any = partitions.get("orders", 1).log.segments.active
    active.file = type("Broken", (), {"sync": staticmethod(fail), "size": 0})()

    async def scenario() -> list[str]:
        node: Any = FakeNode(partitions)
        await Maintenance(node)._flush_due(node.clock.now_ms())
        return list(node.faults)

    assert asyncio.run(scenario()) == ["[Errno 5] Input/output error"]
    assert [partition.log.recovery_point for partition in partitions] == [1, 0, 1]


def test_work_on_a_partition_whose_topic_was_just_deleted_is_no_fault_of_the_disk(
    partitions: HeldPartitions,
) -> None:
    open_all(partitions, topic("orders", 1))
    open_all(partitions, topic("others", 2, number=2))
    partition = partitions.get("orders", 0)
    partition.append(records())
    partitions.delete_topic("orders")

    async def scenario() -> None:
        node: Any = FakeNode(partitions)
        node.report_disk_fault = lambda *arguments: Node.report_disk_fault(node, *arguments)
        await node.flushes.flush(partition)

    asyncio.run(scenario())
    assert len(partitions.log_directories.online) == 2


def depth(error: BaseException) -> int:
    return len(list(walk_tb(error.__traceback__)))


@pytest.mark.parametrize(("name", "index"), [("absent", 0), ("here", 7), ("here", 1), ("here", 2)])
def test_a_refusal_keeps_nothing_of_those_before_it(
    partitions: HeldPartitions, name: str, index: int
) -> None:
    open_all(partitions, topic("here", 1))
    held = partitions.topic("here")
    assert held is not None
    held.held_elsewhere = 2
    held.take_offline(2)
    depths = []
    for _ in range(3):
        with pytest.raises(ApiError) as refused:
            partitions.get(name, index)
        depths.append(depth(refused.value))
    assert len(set(depths)) == 1, "a client that asks again and again would fill the memory"


def test_a_partition_that_is_not_led_here_refuses_without_growing(partitions: HeldPartitions) -> None:
    open_all(partitions, topic("here", 1))
    partition = partitions.get("here", 0)
    partition.leave()
    depths = []
    for _ in range(3):
        with pytest.raises(ApiError) as refused:
            partition.append(records())
        assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        depths.append(depth(refused.value))
    assert len(set(depths)) == 1
