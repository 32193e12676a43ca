"""A controller that hears of the next one, and a tree that an older Kafka has written."""

from collections.abc import Awaitable, Callable

import pytest

from penstock.broker.cluster.channels import Channel
from penstock.metadata import znodes
from penstock.metadata.tree import BadVersion, Create
from penstock.model.ids import NO_ID
from penstock.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from penstock.wire.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from penstock.wire.messages.update_metadata import UpdateMetadataRequest
from simulation.seeds.machine import Machine
from tests.unit.broker.simulated_cluster import SimulatedCluster, node_of, partition_at

Word = Callable[[SimulatedCluster, Machine, int, int], Awaitable[Callable[[], bool]]]


async def roles(cluster: SimulatedCluster, old: Machine, new_id: int, epoch: int) -> Callable[[], bool]:
    node, partition = node_of(old), partition_at(old, "orders")
    state = LeaderAndIsrPartitionState(
        partition_index=0,
        leader=new_id,
        leader_epoch=partition.leader_epoch + 1,
        partition_epoch=partition.replica.partition_epoch + 1,
        isr=[1, 2, 3],
        replicas=[1, 2, 3],
    )
    topic = LeaderAndIsrTopicState(
        topic_name="orders", topic_id=node.image.topic_id("orders"), partition_states=[state]
    )
    request = LeaderAndIsrRequest(
        controller_id=new_id, controller_epoch=epoch, broker_epoch=node.broker_epoch, topic_states=[topic]
    )
    await cluster.on(old, node.roles.lead_or_follow(request))
    return lambda: partition.replica.leader_id == new_id


async def metadata(cluster: SimulatedCluster, old: Machine, new_id: int, epoch: int) -> Callable[[], bool]:
    node = node_of(old)
    request = UpdateMetadataRequest(
        controller_id=new_id, controller_epoch=epoch, broker_epoch=node.broker_epoch, live_brokers=[]
    )
    await cluster.on(old, node.roles.update(request))
    return lambda: node.image.brokers == {}


async def stops(cluster: SimulatedCluster, old: Machine, new_id: int, epoch: int) -> Callable[[], bool]:
    node, partition = node_of(old), partition_at(old, "orders")
    state = StopReplicaPartitionState(partition_index=0, leader_epoch=partition.leader_epoch)
    request = StopReplicaRequest(
        controller_id=new_id,
        controller_epoch=epoch,
        broker_epoch=node.broker_epoch,
        topic_states=[StopReplicaTopicState(topic_name="orders", partition_states=[state])],
    )
    await cluster.on(old, node.roles.stop_replicas(request))
    return lambda: not partition.is_leader


@pytest.mark.parametrize("word", [roles, metadata, stops])
def test_a_controller_that_hears_its_successor_resigns_before_it_obeys(word: Word) -> None:
    """An operator deleted /controller, and its own server of the store has not told it yet."""

    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        old = cluster.controller
        node = node_of(old)
        new_id = next(each.broker_id for each in cluster.machines if each is not old)
        epoch = node.image.controller_epoch + 1
        channels: list[Channel] = list(node.controlling.channels)
        assert channels
        is_obeyed = await word(cluster, old, new_id, epoch)
        assert not node.is_controller
        assert not node.changes.is_allowed
        assert (node.image.controller_id, node.image.controller_epoch) == (new_id, epoch)
        assert is_obeyed()
        # What it would tell now would pass for the successor's word.
        assert list(node.controlling.channels) == []
        await cluster.until(lambda: all(channel._task.done() for channel in channels))

    SimulatedCluster(3).run(main)


def test_a_controller_that_heard_of_its_successor_does_not_go_back_to_what_it_read() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        node = node_of(cluster.controller)
        epoch = node.image.controller_epoch

        async def read_late() -> None:
            node.image.set_controller(7, epoch=epoch + 1)
            with pytest.raises(BadVersion, match="another broker has become the controller"):
                await node.controlling.reload()
            node.controlling.resign()
            node.image.set_controller(7, epoch=epoch)
            with pytest.raises(BadVersion, match="no longer the controller"):
                await node.controlling.reload()

        await cluster.on(cluster.controller, read_late())
        assert list(node.controlling.channels) == []

    SimulatedCluster(3).run(main)


def holds(machine: Machine, name: str) -> bool:
    held = node_of(machine).partitions.topic(name)
    return held is not None and held.has(0)


def test_two_topics_of_an_old_kafka_are_told_apart() -> None:
    """Their nodes have no ids: the controller gives them some, before it tells anybody of them."""

    async def main(cluster: SimulatedCluster) -> None:
        tree = node_of(cluster.controller).tree
        written = b'{"version":2,"partitions":{"0":[1,2,3]},"adding_replicas":{},"removing_replicas":{}}'
        names = ("orders", "payments")
        await cluster.on(
            cluster.controller,
            tree.multi([Create(znodes.topic_path(name), written) for name in names]),
        )
        restarted = next(each for each in cluster.machines if each is not cluster.controller)
        restarted.kill()
        restarted.start()  # and reads the tree before the topics have ids
        await cluster.until(lambda: cluster.cluster.is_whole)
        await cluster.on(cluster.controller, tree.delete(znodes.CONTROLLER))
        await cluster.until(
            lambda: all(
                node_of(each).image.topic(name) is not None and holds(each, name)
                for each in cluster.machines
                for name in names
            )
        )
        await cluster.until(lambda: cluster.cluster.is_settled)
        ids = {name: node_of(restarted).image.topic_id(name) for name in names}
        assert NO_ID not in ids.values()
        assert ids["orders"] != ids["payments"]
        for machine in cluster.machines:
            for name, topic_id in ids.items():
                held = node_of(machine).partitions.topic(topic_id)
                assert held is not None
                assert held.name == name

    SimulatedCluster(3).run(main)
