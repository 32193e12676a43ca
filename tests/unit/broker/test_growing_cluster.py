"""A broker that is added to a running cluster, and brokers that stand in racks."""

from penstock.metadata.image import PartitionRegistration
from penstock.model.errors import ErrorCode
from penstock.records.build import build_batch
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from penstock.wire.messages.produce import ProduceResponse
from simulation.seeds.machine import Machine
from simulation.seeds.producers import PRODUCE_VERSION, produce_request
from tests.unit.broker.simulated_cluster import SimulatedCluster, node_of, partition_at

OPTIONS = {"zookeeper.connect": "memory", "log.cleaner.enable": "false"}
NEW = 4


def machine_of(cluster: SimulatedCluster, broker_id: int, **options: str) -> Machine:
    return Machine(cluster.cluster.network, broker_id, cluster.cluster.store, {**OPTIONS, **options})


def placed(machine: Machine, topic: str) -> list[PartitionRegistration]:
    """As this broker knows them."""
    return node_of(machine).image.topics[topic].partitions


async def add_broker(cluster: SimulatedCluster) -> Machine:
    added = machine_of(cluster, NEW)
    cluster.machines.append(added)
    added.start()
    await cluster.until(lambda: added.node is not None)
    await cluster.until(lambda: all(NEW in node_of(each).image.brokers for each in cluster.machines[:3]))
    return added


async def produce(cluster: SimulatedCluster, topic: str, values: list[bytes]) -> None:
    now_ms = cluster.director.clock.now_ms()
    batch = build_batch([(None, value, (), now_ms) for value in values])
    address, _ = await cluster.client.leader((topic, 0))
    answer = await cluster.client.ask(
        address, produce_request((topic, 0), bytes(batch)), ProduceResponse, PRODUCE_VERSION
    )
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def test_a_new_topic_uses_a_broker_that_was_added() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("before", partitions=4)
        added = await add_broker(cluster)
        await cluster.until(lambda: cluster.cluster.is_settled)
        assert all(NEW not in each.replicas for each in placed(added, "before"))
        await cluster.create("after", partitions=4)
        there = placed(cluster.controller, "after")
        assert sum(NEW in each.replicas for each in there) == 3  # of twelve replicas on four brokers
        assert sum(each.leader == NEW for each in there) == 1
        held = [index for index, each in enumerate(there) if NEW in each.replicas]
        assert [each.index for each in node_of(added).partitions if each.topic == "after"] == held

    SimulatedCluster().run(main)


def test_partitions_can_be_moved_to_a_broker_that_was_added() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        await produce(cluster, "orders", [b"a", b"b", b"c"])
        added = await add_broker(cluster)
        left = cluster.leader("orders")
        stay = [each.broker_id for each in cluster.machines if each not in (left, added)]
        wanted = ReassignablePartition(partition_index=0, replicas=[NEW, *stay])
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name="orders", partitions=[wanted])]
        )
        answer = await cluster.client.ask(
            cluster.controller.address, request, AlterPartitionReassignmentsResponse, 0
        )
        assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
        await cluster.until(lambda: placed(added, "orders")[0].replicas == (NEW, *stay))
        await cluster.until(lambda: partition_at(added, "orders").is_leader)
        await cluster.until(lambda: all(each.topic != "orders" for each in node_of(left).partitions))
        cluster.client.forget_leader(("orders", 0))
        await produce(cluster, "orders", [b"d"])
        await cluster.until(lambda: cluster.cluster.is_settled)
        copies = cluster.cluster.copies()["orders", 0]
        assert set(copies) == {NEW, *stay}
        assert len(set(copies.values())) == 1
        assert partition_at(added, "orders").high_watermark == 4

    SimulatedCluster().run(main)


def cluster_in_racks(racks: dict[int, str]) -> SimulatedCluster:
    cluster = SimulatedCluster(len(racks))
    cluster.machines[:] = [machine_of(cluster, id, **{"broker.rack": rack}) for id, rack in racks.items()]
    return cluster


def test_no_rack_has_all_replicas_of_a_partition() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}

    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders", replicas=2, partitions=8)
        for partition in placed(cluster.controller, "orders"):
            assert {racks[id] for id in partition.replicas} == {"a", "b"}
        # As clients are told, who look for the closest replica.
        told = await cluster.client.refresh("orders")
        assert {broker.node_id: broker.rack for broker in told.brokers} == racks

    cluster_in_racks(racks).run(main)


def test_partitions_that_are_added_to_a_topic_are_on_several_racks_too() -> None:
    racks = {1: "a", 2: "b", 3: "b"}

    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders", replicas=2, partitions=1)
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="orders", count=7)], timeout_ms=4_000
        )
        answer = await cluster.client.ask(cluster.controller.address, request, CreatePartitionsResponse, 2)
        assert answer.results[0].error_code == ErrorCode.NONE
        found = [{racks[id] for id in each.replicas} for each in placed(cluster.controller, "orders")]
        assert found == [{"a", "b"}] * 7

    cluster_in_racks(racks).run(main)
