"""The metadata store is wiped, or knows less than the brokers: no log of a topic that nobody deleted is ever removed."""

from collections.abc import Mapping

import pytest

from penstock.broker.metadata import changes
from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.metadata.load import prepare_tree
from penstock.metadata.tree import StoreUnavailable
from penstock.model.errors import ApiError
from penstock.model.ids import TopicPartition
from penstock.storage.log_directory import LogDirectory
from penstock.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from penstock.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    PenstockRestored,
)
from simulation.memory_tree import MemoryTree
from simulation.seeds.machine import DATA, Machine
from simulation.seeds.store import Session
from tests.unit.broker.simulated_cluster import SimulatedCluster, in_cluster, node_of, others, partition_at
from tests.unit.broker.test_controller_moments import Multis, elect_another_controller
from tests.unit.storage.batches import append


def logs_of(machine: Machine, topic: str, partition: int = 0) -> set[str]:
    """What the machine's disk has of a partition: `log`, `stray`, or what else is behind the dash of its directory."""
    found = set()
    for name in machine.disk.list_directories(DATA):
        if name.startswith(f"{topic}-{partition}"):
            found.add(name.rpartition("-")[2] if "." in name else "log")
    return found


async def restart_all(cluster: SimulatedCluster) -> None:
    for machine in cluster.machines:
        machine.kill()
    await start_all(cluster)


async def start_all(cluster: SimulatedCluster) -> None:
    for machine in cluster.machines:
        machine.start()
    await cluster.until(lambda: cluster.cluster.is_whole and cluster.controllers == 1)
    await cluster.until(lambda: cluster.cluster.is_settled)


def is_registered(cluster: SimulatedCluster, machine: Machine) -> bool:
    return cluster.cluster.store.broker_epoch(machine.broker_id) is not None


async def wipe(cluster: SimulatedCluster) -> MemoryTree:
    """The store's directory is removed while nobody runs; what it held."""
    for machine in cluster.machines:
        machine.kill()
    await cluster.until(lambda: not any(is_registered(cluster, machine) for machine in cluster.machines))
    zookeeper = cluster.cluster.store.zookeeper
    lost = zookeeper.tree
    cluster.cluster.store.stop()
    zookeeper.tree = MemoryTree()
    cluster.cluster.store.start()
    return lost


def keeps_all(*, of: int) -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders", replicas=of)
        append(partition_at(cluster.leader("orders"), "orders").log, 5)
        await wipe(cluster)
        await start_all(cluster)
        await cluster.create("other", replicas=of)
        await restart_all(cluster)
        await cluster.until(
            lambda: not any("log" in logs_of(machine, "orders") for machine in cluster.machines)
        )
        for machine in cluster.machines:
            assert logs_of(machine, "orders") == {"stray"}

    in_cluster(main, of=of)


def test_a_wiped_store_costs_no_log() -> None:
    keeps_all(of=3)


def test_a_broker_that_removed_what_it_does_not_know_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistake, planted."""

    def remove(
        partitions: HeldPartitions, directory: LogDirectory, logs: Mapping[TopicPartition, object]
    ) -> None:
        for place in logs:
            directory.set_aside(place)

    monkeypatch.setattr(HeldPartitions, "make_strays", remove)
    with pytest.raises(AssertionError):
        keeps_all(of=3)


def test_producers_of_a_wiped_store_get_no_id_that_the_logs_remember() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        append(partition_at(cluster.leader("orders"), "orders").log, 5, producer_id=7)
        await wipe(cluster)
        await start_all(cluster)
        for machine in cluster.machines:
            given = await cluster.on(machine, node_of(machine).producer_ids.next())
            assert given > 7

    in_cluster(main)


def test_a_store_that_is_restored_brings_the_records_back() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        append(partition_at(cluster.leader("orders"), "orders").log, 5)
        # Whoever leads afterwards must have them.
        await cluster.until(
            lambda: all(partition_at(each, "orders").log.end_offset == 5 for each in cluster.machines)
        )
        lost = await wipe(cluster)
        await start_all(cluster)
        await wipe(cluster)
        cluster.cluster.store.zookeeper.tree = lost
        await start_all(cluster)
        assert partition_at(cluster.leader("orders"), "orders").log.end_offset == 5
        for machine in cluster.machines:
            assert logs_of(machine, "orders") == {"log"}

    in_cluster(main)


def test_a_topic_made_again_with_its_id_has_all_that_its_furthest_replica_has() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        leader = cluster.leader("orders")
        append(partition_at(leader, "orders").log, 5, leader_epoch=3)
        await cluster.until(
            lambda: all(partition_at(each, "orders").log.end_offset == 5 for each in cluster.machines)
        )
        for other in others(cluster, leader):
            other.kill()
        append(partition_at(leader, "orders").log, 2, leader_epoch=3)
        topic = node_of(leader).image.topic("orders")
        assert topic is not None
        await wipe(cluster)
        await start_all(cluster)
        await cluster.until(lambda: all(logs_of(each, "orders") == {"stray"} for each in cluster.machines))
        replicas = [leader.broker_id, *(other.broker_id for other in others(cluster, leader))]
        restored = CreatableTopic(
            name="rescued",
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)],
            penstock_restored=[PenstockRestored(topic_id=topic.topic_id, leader_epoch=4)],
        )
        request = CreateTopicsRequest(topics=[restored], timeout_ms=10_000)
        answer = await cluster.client.ask_any(request, CreateTopicsResponse, 7)
        assert (answer.topics[0].error_code, answer.topics[0].topic_id) == (0, topic.topic_id)
        await cluster.until(lambda: cluster.cluster.is_settled)
        for machine in cluster.machines:
            log = partition_at(machine, "rescued").log
            assert (log.end_offset, log.leader_epochs.entries[0]) == (7, (3, 0))
            assert logs_of(machine, "orders") == set()
        assert partition_at(leader, "rescued").leader_epoch >= 4

    in_cluster(main)


def test_new_partitions_do_not_cost_the_strays_of_old_ones() -> None:
    """A topic was restored without its last partition, and then just given another one."""

    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders", partitions=2)
        leader = next(each for each in cluster.machines if partition_at(each, "orders", 1).is_leader)
        append(partition_at(leader, "orders", 1).log, 5, leader_epoch=3)
        await cluster.until(
            lambda: all(partition_at(each, "orders", 1).log.end_offset == 5 for each in cluster.machines)
        )
        topic = node_of(leader).image.topic("orders")
        assert topic is not None
        await wipe(cluster)
        cluster.history.leaders.clear()  # the second partition begins again, in epoch 0
        await start_all(cluster)
        await cluster.until(lambda: all(logs_of(each, "orders", 1) == {"stray"} for each in cluster.machines))
        replicas = [machine.broker_id for machine in cluster.machines]
        restored = CreatableTopic(
            name="orders",
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)],
            penstock_restored=[PenstockRestored(topic_id=topic.topic_id, leader_epoch=4)],
        )
        request = CreateTopicsRequest(topics=[restored], timeout_ms=10_000)
        assert (await cluster.client.ask_any(request, CreateTopicsResponse, 7)).topics[0].error_code == 0
        await cluster.until(lambda: cluster.cluster.is_settled)
        # The broker that led the lost partition leads the new one: the history takes both for one.
        replicas.sort(key=lambda broker_id: broker_id != leader.broker_id)
        placed = CreatePartitionsAssignment(broker_ids=replicas)
        grown = CreatePartitionsTopic(name="orders", count=2, assignments=[placed])
        growth = CreatePartitionsRequest(topics=[grown], timeout_ms=10_000)
        assert (await cluster.client.ask_any(growth, CreatePartitionsResponse, 2)).results[0].error_code == 0
        await cluster.until(lambda: cluster.cluster.is_settled)
        for machine in cluster.machines:
            assert partition_at(machine, "orders", 1).log.end_offset == 0
            assert logs_of(machine, "orders", 1) == {"log", "stray"}

    in_cluster(main)


def test_a_topic_that_was_deleted_goes_also_where_its_broker_was_told_late() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        await cluster.delete("orders")
        await cluster.until(
            lambda: all(not logs_of(machine, "orders") & {"log"} for machine in cluster.machines)
        )
        for machine in cluster.machines:
            assert "stray" not in logs_of(machine, "orders")

    in_cluster(main)


def test_a_lone_broker_completes_a_topic_that_was_half_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MAX_OPS", 4)

    async def main(cluster: SimulatedCluster) -> None:
        (machine,) = cluster.machines
        Multis(machine, fails=3)
        wanted = CreatableTopic(name="orders", num_partitions=6, replication_factor=1)
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=10_000)
        with pytest.raises((ApiError, StoreUnavailable)):
            await cluster.on(machine, node_of(machine).topics.create(request))
        await restart_all(cluster)
        topic = node_of(machine).image.topic("orders")
        assert topic is not None
        assert [placed.leader for placed in topic.partitions] == 6 * [machine.broker_id]
        assert all(placed.partition_epoch >= 0 for placed in topic.partitions)
        for index in range(6):
            assert partition_at(machine, "orders", index).is_leader

    in_cluster(main, of=1)


def test_brokers_that_outlive_a_store_obey_its_next_controller() -> None:
    """They have heard of epochs that a wiped store does not know."""

    async def main(cluster: SimulatedCluster) -> None:
        await elect_another_controller(cluster)
        epoch = node_of(cluster.controller).image.controller_epoch
        cluster.cluster.store.wipe()
        await cluster.until(lambda: not any(is_registered(cluster, machine) for machine in cluster.machines))
        session = Session(cluster.cluster.store.zookeeper, loop=cluster.director.loop)
        await session.reconnect()
        await prepare_tree(session, new_cluster_id="another")
        await cluster.until(lambda: cluster.controllers == 1)
        await cluster.create("orders")
        assert all(node_of(machine).image.controller_epoch > epoch for machine in cluster.machines)

    in_cluster(main)
