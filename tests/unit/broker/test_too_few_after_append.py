"""Records that were appended while enough replicas were in sync, and committed when too few were left."""

from asyncio import create_task

from penstock.model.errors import ErrorCode
from penstock.records.build import build_batch
from penstock.wire.messages.produce import ProduceResponse
from simulation.seeds.admins import Admin
from simulation.seeds.producers import PRODUCE_VERSION, produce_request
from tests.unit.broker.simulated_cluster import SimulatedCluster, partition_at

PATIENCE_SECONDS = 60.0  # longer than the brokers' sessions


def test_a_record_that_too_few_replicas_have_when_it_is_committed_is_not_acknowledged_and_stays() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        admin = Admin(cluster.client, cluster.history, replicas=3)
        await admin.create("orders", partitions=1, min_insync_replicas=2)
        await cluster.until(lambda: cluster.cluster.is_settled)
        leader = cluster.leader("orders")
        partition, now_ms = partition_at(leader, "orders"), cluster.director.clock.now_ms()
        followers = [each for each in cluster.machines if each is not leader]
        for follower in followers:
            follower.kill()
        request = produce_request(("orders", 0), bytes(build_batch([(None, b"a", (), now_ms)])))
        request.timeout_ms = int(PATIENCE_SECONDS * 1000)
        answer = create_task(
            cluster.client.ask(
                leader.address, request, ProduceResponse, PRODUCE_VERSION, answer_seconds=PATIENCE_SECONDS
            )
        )
        await cluster.until(lambda: partition.log.end_offset == 1)
        assert (len(partition.replica.isr), partition.high_watermark, answer.done()) == (3, 0, False)
        told = (await answer).responses[0].partition_responses[0].error_code
        assert ErrorCode(told) == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        assert partition.replica.isr == {leader.broker_id}

        # The next one is refused before it is appended.
        answered = await cluster.client.ask(leader.address, request, ProduceResponse, PRODUCE_VERSION)
        told = answered.responses[0].partition_responses[0].error_code
        assert (ErrorCode(told), partition.log.end_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS, 1)
        for follower in followers:
            follower.start()
        await cluster.until(lambda: cluster.cluster.is_settled)
        assert [partition_at(each, "orders").log.end_offset for each in cluster.machines] == [1, 1, 1]

    SimulatedCluster().run(main)
