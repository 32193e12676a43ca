"""Moments at which the controller's own work is interrupted, or crosses what others do to the tree."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from penstock.broker.cluster import notifications
from penstock.broker.cluster.channels import Channel
from penstock.broker.metadata import changes
from penstock.metadata import znodes
from penstock.metadata.image import NO_LEADER, PartitionRegistration, Topic
from penstock.metadata.tree import EventKind, OpResult, StoreUnavailable, TreeEvent, TreeOp
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.wire.messages.controlled_shutdown import ControlledShutdownRequest
from penstock.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.delete_topics import DeleteTopicsRequest
from penstock.wire.messages.leader_and_isr import LeaderAndIsrRequest
from penstock.wire.messages.stop_replica import StopReplicaRequest
from penstock.wire.messages.update_metadata import UpdateMetadataRequest
from penstock.wire.schema import Message
from simulation.memory_store import MemorySession
from simulation.seeds.machine import Machine
from tests.unit.broker.simulated_cluster import SimulatedCluster, in_cluster, node_of

MARK = znodes.delete_topic_path("orders")


def tree_of(machine: Machine) -> MemorySession:
    tree = node_of(machine).tree
    assert isinstance(tree, MemorySession)
    return tree


class Multis:
    """What a broker writes; the one of a number fails once, before it is made."""

    def __init__(self, machine: Machine, *, fails: int) -> None:
        session: Any = node_of(machine).tree
        self._multi = session.multi
        self._fails = fails
        self.count = 0
        session.multi = self.multi

    async def multi(self, ops: Sequence[TreeOp]) -> list[OpResult]:
        self.count += 1
        if self.count == self._fails:
            raise StoreUnavailable(ops[0].path, "the store does not answer")
        results: list[OpResult] = await self._multi(ops)
        return results


def creation(partitions: int) -> CreateTopicsRequest:
    topic = CreatableTopic(name="orders", num_partitions=partitions, replication_factor=3)
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


DELETION = DeleteTopicsRequest(topic_names=["orders"], timeout_ms=10_000)


async def timed_out(request: Coroutine[Any, Any, Any]) -> None:
    with pytest.raises(ApiError) as refused:
        await request
    assert refused.value.code == ErrorCode.REQUEST_TIMED_OUT
    assert "check before you try again" in str(refused.value)


def stop_working(machine: Machine) -> None:
    """The controller's tasks, which would complete things before the test has looked."""
    for task in node_of(machine).controlling._tasks:
        task.cancel()


async def elect_another_controller(cluster: SimulatedCluster) -> None:
    epoch = node_of(cluster.controller).image.controller_epoch
    await cluster.on(cluster.controller, tree_of(cluster.controller).delete(znodes.CONTROLLER))
    await cluster.until(
        lambda: cluster.controllers == 1 and node_of(cluster.controller).image.controller_epoch > epoch
    )


async def marks(cluster: SimulatedCluster) -> list[str]:
    return await cluster.on(cluster.controller, tree_of(cluster.controller).children(znodes.DELETE_TOPICS))


def is_led(cluster: SimulatedCluster, partitions: int) -> bool:
    topic = node_of(cluster.controller).image.topic("orders")
    if topic is None or len(topic.partitions) != partitions:
        return False
    return all(leads(cluster, topic, index) for index in range(partitions))


def leads(cluster: SimulatedCluster, topic: Topic, index: int) -> bool:
    """Whether the leader knows."""
    leader = topic.partitions[index].leader
    if leader == NO_LEADER:
        return False
    held = node_of(cluster.machines[leader - 1]).partitions.topic(topic.topic_id)
    return held is not None and held.has(index) and held.partition(index).is_leader


# --- what the controller left halfway


def test_a_topic_that_was_half_made_is_completed_by_the_same_controller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "MAX_OPS", 4)

    async def main(cluster: SimulatedCluster) -> None:
        controller = cluster.controller
        node = node_of(controller)
        epoch = node.image.controller_epoch
        Multis(controller, fails=3)
        await cluster.on(controller, timed_out(node.topics.create(creation(6))))
        await cluster.until(lambda: is_led(cluster, 6))
        assert node.image.controller_epoch == epoch

    in_cluster(main)


def test_a_topic_that_grew_by_half_is_completed_by_the_same_controller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "MAX_OPS", 4)

    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        controller = cluster.controller
        node = node_of(controller)
        epoch = node.image.controller_epoch
        Multis(controller, fails=2)
        wanted = CreatePartitionsTopic(name="orders", count=6)
        request = CreatePartitionsRequest(topics=[wanted], timeout_ms=10_000)
        await cluster.on(controller, timed_out(node.topics.grow(request)))
        await cluster.until(lambda: is_led(cluster, 6))
        assert node.image.controller_epoch == epoch

    in_cluster(main)


def test_a_topic_that_was_half_deleted_is_deleted_by_the_same_controller_and_leaves_its_name_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders", partitions=6)
        controller = cluster.controller
        node = node_of(controller)
        with monkeypatch.context() as small:
            small.setattr(changes, "MAX_OPS", 4)
            Multis(controller, fails=3)
            await cluster.on(controller, timed_out(node.topics.delete(DELETION)))
            await cluster.until(lambda: node.image.topic("orders") is None)
        assert await marks(cluster) == []
        cluster.history.leaders.clear()  # it knows topics by their names
        await cluster.create("orders", partitions=2)
        await elect_another_controller(cluster)
        await cluster.until(lambda: node_of(cluster.controller).controlling._is_complete)
        assert is_led(cluster, 2)

    in_cluster(main)


@pytest.mark.parametrize("max_ops", [4, 2000])
def test_a_topic_that_was_half_deleted_can_be_deleted_again(
    monkeypatch: pytest.MonkeyPatch, max_ops: int
) -> None:
    """Also if that comes before the controller has looked, and whether the rest fits into one write or not."""

    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders", partitions=6)
        controller = cluster.controller
        node = node_of(controller)
        stop_working(controller)
        monkeypatch.setattr(changes, "MAX_OPS", 4)
        Multis(controller, fails=2)
        await cluster.on(controller, timed_out(node.topics.delete(DELETION)))
        assert await marks(cluster) == ["orders"]
        monkeypatch.setattr(changes, "MAX_OPS", max_ops)
        (result,) = await cluster.on(controller, node.topics.delete(DELETION))
        assert result.error_code == ErrorCode.NONE
        assert await marks(cluster) == []

    in_cluster(main)


# --- marks that others make


def test_a_topic_that_an_older_tool_marks_is_deleted_at_once() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        controller = cluster.controller
        await cluster.on(controller, tree_of(controller).create(MARK))
        await cluster.until(
            lambda: all(node_of(each).image.topic("orders") is None for each in cluster.machines)
        )
        assert await marks(cluster) == []

    in_cluster(main)


def test_a_mark_goes_with_the_topic_that_is_deleted_and_spares_the_one_that_is_made() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        controller = cluster.controller
        node = node_of(controller)
        stop_working(controller)
        await cluster.on(controller, tree_of(controller).create(MARK))
        await cluster.on(controller, node.topics.delete(DELETION))
        assert await marks(cluster) == []
        cluster.history.leaders.clear()
        await cluster.on(controller, tree_of(controller).create(MARK))
        (made,) = await cluster.on(controller, node.topics.create(creation(1)))
        assert made.error_code == ErrorCode.NONE
        assert await marks(cluster) == []

    in_cluster(main)


# --- brokers that stop


def test_a_broker_that_came_back_while_its_stop_was_decided_is_not_stopping() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        controller = cluster.controller
        node = node_of(controller)
        stopping = next(each for each in cluster.machines if each is not controller).broker_id
        session: Any = node.tree
        multi = session.multi
        registered = node.image.brokers[stopping]

        async def come_back(ops: Sequence[TreeOp]) -> Any:
            node.image.brokers[stopping] = registered._replace(epoch=registered.epoch + 1)
            return await multi(ops)

        session.multi = come_back
        request = ControlledShutdownRequest(broker_id=stopping, broker_epoch=registered.epoch)
        await cluster.on(controller, node.controlling.requests.controlled_shutdown(request))
        assert node.controlling.shutting_down == set()
        session.multi = multi
        node.image.brokers[stopping] = registered
        await cluster.on(controller, node.controlling.requests.controlled_shutdown(request))
        assert node.controlling.shutting_down == {stopping}

    in_cluster(main)


def test_a_broker_that_arrives_is_not_stopping_any_more() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        node = node_of(cluster.controller)
        machine = next(each for each in cluster.machines if each is not cluster.controller)
        machine.kill()
        await cluster.until(lambda: machine.broker_id not in node.image.brokers)
        node.controlling.shutting_down.add(machine.broker_id)
        machine.start()
        await cluster.until(lambda: machine.broker_id in node.image.brokers)
        assert node.controlling.shutting_down == set()

    in_cluster(main)


def test_new_partitions_are_not_led_by_a_broker_that_stops() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        controller = cluster.controller
        node = node_of(controller)
        stopping = next(each for each in cluster.machines if each is not controller).broker_id
        node.controlling.shutting_down.add(stopping)
        await cluster.on(controller, node.topics.create(creation(6)))
        wanted = CreatePartitionsTopic(name="orders", count=12)
        await cluster.on(controller, node.topics.grow(CreatePartitionsRequest(topics=[wanted])))
        partitions = node.image.topics["orders"].partitions
        assert len(partitions) == 12
        assert all(stopping in placed.replicas and placed.leader != stopping for placed in partitions)

    in_cluster(main)


# --- what brokers are told


def test_a_topic_that_is_made_again_is_not_stopped_for_its_predecessor() -> None:
    """StopReplica has names only: what it was to say of a topic that is deleted meanwhile is not said any more."""

    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        controller = cluster.controller
        node = node_of(controller)
        machine = next(each for each in cluster.machines if each is not controller)
        channel = node.controlling.channels.get(machine.broker_id)
        assert channel is not None
        send: Any = channel._send
        is_open = asyncio.Event()
        told: list[str] = []

        async def send_late(request: Message, response: Any) -> Any:
            if isinstance(request, StopReplicaRequest):
                told.extend(topic.topic_name for topic in request.topic_states)
                await is_open.wait()
            return await send(request, response)

        async def cross() -> None:
            channel._send = send_late  # type: ignore[method-assign]
            channel.tell_to_stop({TopicPartition("payments", 0): 1})
            while not told:
                await asyncio.sleep(0.01)
            channel.tell_to_stop({TopicPartition("orders", 0): 5})  # as if it was moved away
            await node.topics.delete(DELETION)
            cluster.history.leaders.clear()
            await node.topics.create(creation(1))
            is_open.set()
            await channel.settled()

        await cluster.on(controller, cross())
        assert told == ["payments"]
        made = node.image.topic_id("orders")
        assert node_of(machine).partitions.topic(made) is not None

    in_cluster(main)


def test_a_broker_of_apache_kafka_is_told_to_delete_before_it_hears_of_the_next_topic_of_that_name() -> None:
    """It deletes by StopReplica alone, which has no ids: said later it would hit the new topic."""

    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        controller = cluster.controller
        node = node_of(controller)
        machine = next(each for each in cluster.machines if each is not controller)
        channel = node.controlling.channels.get(machine.broker_id)
        assert channel is not None
        assert not channel.is_kafka
        channel.is_kafka = True
        send: Any = channel._send
        is_open = asyncio.Event()
        told: list[tuple[str, str]] = []

        async def note(request: Message, response: Any) -> Any:
            if isinstance(request, StopReplicaRequest):
                for topic in request.topic_states:
                    told.append(("stop", topic.topic_name))
                    assert all(each.delete_partition for each in topic.partition_states)
                await is_open.wait()
            if isinstance(request, LeaderAndIsrRequest):
                told.extend(("lead or follow", topic.topic_name) for topic in request.topic_states)
            return await send(request, response)

        async def cross() -> None:
            channel._send = note  # type: ignore[method-assign]
            await node.topics.delete(DELETION)
            cluster.history.leaders.clear()
            await node.topics.create(creation(1))
            is_open.set()
            await channel.settled()

        await cluster.on(controller, cross())
        assert told == [("stop", "orders"), ("lead or follow", "orders")]
        made = node.image.topic_id("orders")
        assert node_of(machine).partitions.topic(made) is not None

    in_cluster(main)


@pytest.mark.parametrize("missed", [False, True])
def test_a_topic_that_another_broker_wrote_into_the_tree_gets_leaders(missed: bool) -> None:
    """Brokers of Apache Kafka do that for topics that are made at first use: its controllers watch for them."""

    async def main(cluster: SimulatedCluster) -> None:
        controller = cluster.controller
        ids = tuple(machine.broker_id for machine in cluster.machines)
        placed = [PartitionRegistration(ids, (), NO_LEADER), PartitionRegistration(ids[::-1], (), NO_LEADER)]
        data = znodes.encode_topic(b"7" * 16, placed)
        if missed:
            on_topics: Any = node_of(controller).controlling._on_topics
            for stop in node_of(controller).controlling._watches:
                stop()
            await cluster.on(controller, tree_of(controller).create(znodes.topic_path("first-use"), data))
            on_topics(TreeEvent(EventKind.CHANGED, znodes.TOPICS))
        else:
            await cluster.on(controller, tree_of(controller).create(znodes.topic_path("first-use"), data))
        await cluster.until(
            lambda: all("first-use" in node_of(each).image.topics for each in cluster.machines)
        )
        await cluster.until(
            lambda: (
                [each.leader for each in node_of(controller).image.topics["first-use"].partitions]
                == [ids[0], ids[-1]]
            )
        )
        await cluster.until(cluster.cluster.is_in_sync)

    in_cluster(main)


def test_a_broker_hears_who_is_there_before_it_hears_whom_to_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of Apache Kafka's does not follow a leader that it has not heard of, and nobody tells it again."""
    heard: dict[int, set[int]] = {}
    unknown: list[tuple[int, int]] = []
    send: Any = Channel._send

    async def note(channel: Channel, request: Message, response: Any) -> Any:
        key = id(channel)
        if isinstance(request, UpdateMetadataRequest):
            heard[key] = {broker.id for broker in request.live_brokers}
        if isinstance(request, LeaderAndIsrRequest):
            leaders = {state.leader for topic in request.topic_states for state in topic.partition_states}
            there = leaders & channel._image.brokers.keys()
            unknown.extend((channel.broker_id, leader) for leader in there - heard.get(key, set()))
        return await send(channel, request, response)

    monkeypatch.setattr(Channel, "_send", note)

    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders", partitions=3)
        for machine in cluster.machines:
            machine.kill()
            await cluster.until(lambda: cluster.controllers == 1)
            gone = node_of(cluster.controller).image.brokers
            await cluster.until(lambda machine=machine, gone=gone: machine.broker_id not in gone)  # type: ignore[misc]
            machine.start()
            await cluster.until(cluster.cluster.is_in_sync)
        assert heard
        assert unknown == []

    in_cluster(main)


def test_a_mistake_while_old_notifications_are_removed_does_not_end_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(notifications, "LOOK_SECONDS", 2.0)
    looks: list[int] = []

    def fail(*args: Any, **kwargs: Any) -> Any:
        looks.append(1)
        raise ValueError("a mistake")

    monkeypatch.setattr(notifications, "expired_notifications", fail)

    async def main(cluster: SimulatedCluster) -> None:
        await cluster.until(lambda: len(looks) >= 2)
        cluster.schedule.mistakes.clear()  # that it is told is right

    in_cluster(main)


def test_waiting_for_a_broker_that_does_not_answer_leaves_nothing_behind() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        controller = cluster.controller
        node = node_of(controller)
        channels = node.controlling.channels
        silent, other = [channels.get(each.broker_id) for each in cluster.machines if each is not controller]
        assert silent is not None
        assert other is not None

        async def never(*_: Any) -> Any:
            await asyncio.Event().wait()

        async def wait() -> None:
            silent._send = never  # type: ignore[method-assign]
            for _ in range(5):
                silent.tell_metadata()
                other.tell_metadata()
                await channels.settle(0.5)
            assert not silent._settled
            assert not other._settled

        await cluster.on(controller, wait())

    in_cluster(main)
