"""A producer's batches are appended in the order in which they came, whatever they wait for."""

import asyncio

from penstock.model.errors import ErrorCode
from penstock.records.build import build_batch
from penstock.records.walk import STEP_RECORDS
from penstock.storage.options import LogOptions
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from simulation.seeds.client import TRANSACTION
from simulation.seeds.machine import Machine
from tests.unit.broker.simulated_cluster import SimulatedCluster, node_of, partition_at

VERSION = 11  # of a client that adds partitions to its transaction by itself


class TransactionalProducer:
    """The first that has its coordinator on another broker than the one that leads its two partitions."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._client = cluster.client
        self._sequences: dict[int, int] = {}
        self.leader: Machine
        self.coordinator: Machine
        self.partitions: list[int] = []
        self._name = ""
        self._producer_id = -1
        self._producer_epoch = -1

    async def begin(self) -> None:
        machines = {each.address: each for each in self._cluster.machines}
        self.leader = self._cluster.machines[0]
        held = node_of(self.leader).partitions.topic("orders")
        assert held is not None
        self.partitions = [partition.index for partition in held if partition.is_leader][:2]
        for number in range(20):
            self._name = f"tx-{number}"
            self.coordinator = machines[await self._client.coordinator(TRANSACTION, self._name)]
            if self.coordinator is not self.leader:
                break
        init = InitProducerIdRequest(transactional_id=self._name, transaction_timeout_ms=60_000)
        while True:
            begun = await self._client.ask_coordinator(
                TRANSACTION, self._name, init, InitProducerIdResponse, 4
            )
            if not begun.error_code:
                break
            await self._client.pause()
        self._producer_id, self._producer_epoch = begun.producer_id, begun.producer_epoch
        add = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="orders", partitions=self.partitions)],
        )
        await self._client.ask_coordinator(TRANSACTION, self._name, add, AddPartitionsToTxnResponse, 3)

    def request(self, *indexes: int) -> ProduceRequest:
        """The next batch for each of these partitions."""
        data = []
        for index in indexes:
            sequence = self._sequences.get(index, 0)
            self._sequences[index] = sequence + 1
            batch = build_batch(
                [(None, b"%d" % sequence, (), self._cluster.director.clock.now_ms())],
                producer_id=self._producer_id,
                producer_epoch=self._producer_epoch,
                base_sequence=sequence,
                transactional=True,
            )
            data.append(PartitionProduceData(index=index, records=bytes(batch)))
        return ProduceRequest(
            transactional_id=self._name,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name="orders", partition_data=data)],
        )


def errors(answer: ProduceResponse) -> list[ErrorCode]:
    return [ErrorCode(result.error_code) for result in answer.responses[0].partition_responses]


def test_a_later_batch_does_not_overtake_one_that_waits_for_the_coordinator() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders", replicas=1, partitions=6)
        producer = TransactionalProducer(cluster)
        await producer.begin()
        wire = await cluster.client.wire(producer.leader.address)
        one, other = producer.partitions
        assert errors(await wire.send(producer.request(one), ProduceResponse, VERSION)) == [ErrorCode.NONE]
        # From here on the coordinator does not hear the leader, until it is all sent.
        link = cluster.cluster.network.link(producer.leader.name, producer.coordinator.name)
        link.block()
        first = wire.send(producer.request(one, other), ProduceResponse, VERSION)
        second = wire.send(producer.request(one), ProduceResponse, VERSION)
        await asyncio.sleep(0.5)
        assert not first.done()
        assert not second.done()
        cluster.cluster.network.heal()
        assert errors(await first) == [ErrorCode.NONE, ErrorCode.NONE]
        assert errors(await second) == [ErrorCode.NONE]
        assert partition_at(producer.leader, "orders", one).log.end_offset == 3

    SimulatedCluster().run(main)


def test_a_later_batch_does_not_overtake_one_that_is_checked_in_steps() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders", replicas=1)
        (leader,) = cluster.machines
        partition = partition_at(leader, "orders")
        partition.log.options = LogOptions(compacted=True)
        wire = await cluster.client.wire(leader.address)
        count = STEP_RECORDS * 3
        sent = [wire.send(plain_request(cluster, size), ProduceResponse, VERSION) for size in (count, 1, 1)]
        offsets = [(await each).responses[0].partition_responses[0].base_offset for each in sent]
        assert offsets == [0, count, count + 1]
        assert partition.log.end_offset == count + 2

    SimulatedCluster(1).run(main)


def test_what_comes_behind_a_first_batch_that_was_refused_is_refused_too() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders", replicas=1, partitions=6)
        producer = TransactionalProducer(cluster)
        await producer.begin()
        wire = await cluster.client.wire(producer.leader.address)
        one = producer.partitions[0]
        first, second, third = (producer.request(one) for _ in range(3))
        link = cluster.cluster.network.link(producer.leader.name, producer.coordinator.name)
        link.block()
        answers = [wire.send(each, ProduceResponse, VERSION) for each in (first, second)]
        assert errors(await answers[0]) == [ErrorCode.NOT_ENOUGH_REPLICAS]
        cluster.cluster.network.heal()
        # The coordinator consents now, and the partition has never heard of the producer: any sequence would do.
        assert errors(await answers[1]) in (
            [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER],
            [ErrorCode.NOT_ENOUGH_REPLICAS],
        )
        while errors(answer := await wire.send(third, ProduceResponse, VERSION)) == [
            ErrorCode.NOT_ENOUGH_REPLICAS
        ]:
            await asyncio.sleep(0.1)
        assert errors(answer) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
        for request in (first, second, third):
            assert errors(await wire.send(request, ProduceResponse, VERSION)) == [ErrorCode.NONE]
        assert partition_at(producer.leader, "orders", one).log.end_offset == 3
        assert not node_of(producer.leader).partitions.refused_firsts

    SimulatedCluster().run(main)


def plain_request(cluster: SimulatedCluster, count: int) -> ProduceRequest:
    now_ms = cluster.director.clock.now_ms()
    records = bytes(build_batch([(b"%d" % number, b"", (), now_ms) for number in range(count)]))
    return ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(name="orders", partition_data=[PartitionProduceData(index=0, records=records)])
        ],
    )
