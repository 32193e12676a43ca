"""A client that asks the wrong broker is told the right one (KIP-951)."""

from penstock.model.errors import ErrorCode
from penstock.records.build import build_batch
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from penstock.wire.messages.produce import ProduceResponse
from simulation.seeds.producers import produce_request
from tests.unit.broker.simulated_cluster import SimulatedCluster, in_cluster, node_of, others, partition_at


def test_who_writes_to_or_reads_from_another_broker_than_the_leader_is_told_which_one_leads() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders", replicas=2)
        holding = [
            each
            for each in cluster.machines
            if (topic := node_of(each).partitions.topic("orders")) and topic.has(0)
        ]
        (leader,) = [each for each in holding if partition_at(each, "orders").is_leader]
        epoch = partition_at(leader, "orders").leader_epoch
        batch = bytes(build_batch([(None, b"v", (), cluster.director.clock.now_ms())]))
        topic = node_of(leader).image.topic("orders")
        assert topic is not None
        read = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            topics=[
                FetchTopic(
                    topic_id=topic.topic_id,
                    partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)],
                )
            ],
        )
        for machine in others(cluster, leader):  # one that follows, and one that has nothing of it
            written = await cluster.client.ask(
                machine.address, produce_request(("orders", 0), batch), ProduceResponse, 12
            )
            fetched = await cluster.client.ask(machine.address, read, FetchResponse, 16)
            for refused in (written.responses[0].partition_responses[0], fetched.responses[0].partitions[0]):
                assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
                told = refused.current_leader
                assert (told.leader_id, told.leader_epoch) == (leader.broker_id, epoch)
            for response in (written, fetched):
                (endpoint,) = response.node_endpoints
                assert (endpoint.node_id, (endpoint.host, endpoint.port)) == (
                    leader.broker_id,
                    leader.address,
                )

    in_cluster(main)
