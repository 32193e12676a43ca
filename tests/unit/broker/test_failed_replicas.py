"""What the controller makes of log directories that failed, and what a broker makes of logs that are not where they were."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.cluster.failed_directories import DirectoryReports, FailedDirectories
from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.broker.upkeep.strays import find_strays
from penstock.controller.decision import Decision
from penstock.controller.standing import Standing
from penstock.metadata import znodes
from penstock.metadata.image import NO_LEADER, ClusterImage, PartitionRegistration
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.runtime.pools import Pools
from penstock.storage.options import LogOptions
from penstock.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from simulation.memory_store import MemorySession, MemoryZooKeeper
from tests.unit.controller.clusters import ORDERS_ID, cluster

FAILED, FINE = ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE
OFFLINE = OSError(5, "Input/output error")


class FakeChannel:
    def __init__(self) -> None:
        self.roles: set[TopicPartition] = set()
        self.metadata: set[TopicPartition] = set()

    def tell_roles(self, places: Iterable[TopicPartition]) -> None:
        self.roles.update(places)

    def tell_metadata(self, places: Iterable[TopicPartition]) -> None:
        self.metadata.update(places)


class FakeNode:
    """The controller's, as far as it is asked here: changes are made at once."""

    def __init__(self, image: ClusterImage, loop: asyncio.AbstractEventLoop) -> None:
        self.image = image
        self.loop = loop
        self.pools = Pools(self.loop)
        self.changes = self
        self.channels = {1: FakeChannel(), 2: FakeChannel()}
        self.broker_epoch = 7
        self.broker_id = 1
        self.refusal: ApiError | None = None

    async def make(self, decide: Callable[[], Decision[None]]) -> list[None]:
        if self.refusal is not None:
            raise self.refusal
        decision = decide()
        self.image.apply_all(decision.changes)
        return decision.results

    # --- its channels

    def get(self, broker_id: int) -> FakeChannel | None:
        return self.channels.get(broker_id)

    def __iter__(self) -> Any:
        return iter(self.channels.values())


def answer(*codes: ErrorCode) -> LeaderAndIsrResponse:
    """One code for each partition of `orders`."""
    errors = [
        LeaderAndIsrPartitionError(partition_index=index, error_code=code) for index, code in enumerate(codes)
    ]
    return LeaderAndIsrResponse(topics=[LeaderAndIsrTopicError(topic_id=ORDERS_ID, partition_errors=errors)])


def in_controller(
    work: Callable[[Any, FailedDirectories, MemorySession], Awaitable[None]],
    *partitions: PartitionRegistration,
) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        node: Any = FakeNode(cluster(*partitions, brokers=(1, 2)), loop)
        store = MemorySession(MemoryZooKeeper(loop))
        await store.reconnect()
        await store.create(znodes.LOG_DIR_EVENTS)
        failed = FailedDirectories(node, store, node, lambda topic: False, set(), Standing)
        await work(node, failed, store)
        await store.close()

    asyncio.run(run())


LED_BY_1 = PartitionRegistration((1, 2), (1, 2), leader=1)
ONLY_1 = PartitionRegistration((1,), (1,), leader=1)


def test_replicas_that_a_broker_cannot_open_are_led_by_others_and_offline_for_all() -> None:
    async def work(node: Any, failed: FailedDirectories, store: MemorySession) -> None:
        await failed.answered(1, answer(FAILED, FINE, FAILED))
        first, second, third = node.image.topics["orders"].partitions
        assert (first.leader, first.isr) == (2, (2,))
        assert second == LED_BY_1
        assert (third.leader, third.isr) == (NO_LEADER, (1,))
        assert [node.image.offline_replicas("orders", index) for index in range(3)] == [[1], [], [1]]
        for channel in node.channels.values():
            assert channel.metadata == {TopicPartition("orders", 0), TopicPartition("orders", 2)}

    in_controller(work, LED_BY_1, LED_BY_1, ONLY_1)


def test_the_same_answer_again_changes_nothing() -> None:
    async def work(node: Any, failed: FailedDirectories, store: MemorySession) -> None:
        await failed.answered(1, answer(FAILED))
        before = list(node.image.topics["orders"].partitions)
        await failed.answered(1, answer(FAILED))
        assert node.image.topics["orders"].partitions == before

    in_controller(work, LED_BY_1)


def test_a_replica_that_works_again_leads_where_nobody_else_could() -> None:
    async def work(node: Any, failed: FailedDirectories, store: MemorySession) -> None:
        await failed.answered(1, answer(FAILED))
        await failed.answered(1, answer(FINE))
        assert node.image.offline_replicas("orders", 0) == []
        assert node.image.topics["orders"].partitions[0].leader == 1

    in_controller(work, ONLY_1)


def test_what_could_not_be_written_is_acted_upon_at_the_next_answer() -> None:
    async def work(node: Any, failed: FailedDirectories, store: MemorySession) -> None:
        node.refusal = ApiError(ErrorCode.REQUEST_TIMED_OUT)
        with pytest.raises(ApiError):
            await failed.answered(1, answer(FAILED))
        node.refusal = None
        await failed.answered(1, answer(FAILED))
        assert node.image.topics["orders"].partitions[0].leader == 2

    in_controller(work, LED_BY_1)


def test_a_broker_that_is_gone_has_no_failed_directories() -> None:
    async def work(node: Any, failed: FailedDirectories, store: MemorySession) -> None:
        await failed.answered(1, answer(FAILED))
        failed.forget(1)
        assert node.image.failed_replicas == {}

    in_controller(work, LED_BY_1)


def test_a_report_has_its_broker_asked_about_all_its_partitions_and_is_deleted() -> None:
    async def work(node: Any, failed: FailedDirectories, store: MemorySession) -> None:
        await store.create(f"{znodes.LOG_DIR_EVENTS}/log_dir_event_0000000000", b"nonsense")
        failed.begin()
        reports = DirectoryReports(node, store)
        reports.report()
        reports.report()
        async with asyncio.timeout(60):
            while not node.channels[1].roles or await store.children(znodes.LOG_DIR_EVENTS):
                await asyncio.sleep(0.001)
        failed.end()
        assert node.channels[1].roles == {TopicPartition("orders", 0), TopicPartition("orders", 1)}
        assert not node.channels[2].roles

    in_controller(work, LED_BY_1, ONLY_1)


def test_the_report_is_kafkas() -> None:
    assert znodes.encode_log_dir_event(3) == b'{"version":1,"broker":3,"event":1}'
    assert znodes.decode_log_dir_event("/x", b'{"version":1,"broker":3,"event":1}') == 3
    with pytest.raises(znodes.BadNode):
        znodes.decode_log_dir_event("/x", b"{}")


# --- on a broker


@pytest.fixture
def partitions(tmp_path: Path) -> HeldPartitions:
    """Of a broker in a cluster, with two log directories and two logs."""
    held = HeldPartitions(
        OsDisk(), [str(tmp_path / "a"), str(tmp_path / "b")], SystemClock(), broker_id=1, is_clustered=True
    )
    for index in range(2):
        held.ensure(ORDERS_ID, TopicPartition("orders", index), LogOptions(), is_new=True)
    return held


def test_a_log_that_is_nowhere_is_taken_to_be_in_the_failed_directory(
    partitions: HeldPartitions, tmp_path: Path
) -> None:
    partitions.fail(str(tmp_path / "b"), OFFLINE)
    with pytest.raises(ApiError) as refused:
        partitions.ensure(ORDERS_ID, TopicPartition("orders", 7), LogOptions(), is_new=False)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    made = partitions.ensure(ORDERS_ID, TopicPartition("orders", 8), LogOptions(), is_new=True)
    assert Path(made.log.directory).parent == tmp_path / "a"


def strays(partitions: HeldPartitions, image: ClusterImage) -> list[str]:
    return [str(place) for place in find_strays(image, 1, partitions.log_directories)]


def test_a_log_is_a_stray_where_the_cluster_places_it_elsewhere_or_does_not_know_it(
    partitions: HeldPartitions,
) -> None:
    moved = PartitionRegistration((2,), (2,), leader=2)
    partitions.ensure(bytes([2] * 16), TopicPartition("deleted", 0), LogOptions(), is_new=True)
    assert sorted(strays(partitions, cluster(LED_BY_1, moved))) == ["deleted-0", "orders-1"]
    assert strays(partitions, cluster(LED_BY_1, LED_BY_1)) == ["deleted-0"]
    assert len(strays(partitions, cluster())) == 3


def test_logs_in_a_failed_directory_are_no_strays(partitions: HeldPartitions, tmp_path: Path) -> None:
    home = Path(partitions.get("orders", 1).log.directory).parent
    partitions.fail(str(home), OFFLINE)
    assert strays(partitions, cluster(LED_BY_1)) == []
