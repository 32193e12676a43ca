"""Which open transactions hang, decided over a cluster that only answers what it is told to."""

from collections.abc import Iterable
from typing import Any

from penstock.admin.transactions import hanging
from penstock.client.cluster_client import BrokerNode
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.wire.messages import describe_producers, describe_transactions, list_transactions
from penstock.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NODE = BrokerNode(1, "h", 1)
ORDERS = TopicPartition("orders", 0)


class ScriptedCluster:
    """One broker, one partition. `open` are (producer id, start offset); `known` what coordinators say of an id."""

    def __init__(
        self, open_: list[tuple[int, int]], known: dict[int, tuple[str, list[TopicPartition] | None]]
    ) -> None:
        self.open = open_
        self.known = known

    def nodes(self) -> list[BrokerNode]:
        return [NODE]

    def coordinator(self, kind: int, key: str) -> BrokerNode:
        return NODE

    def leaders(self, topics: Iterable[str]) -> tuple[dict[int, BrokerNode], MetadataResponse]:
        partition = MetadataResponsePartition(partition_index=0, leader_id=1)
        topic = MetadataResponseTopic(name="orders", partitions=[partition])
        return {1: NODE}, MetadataResponse(topics=[topic])

    def ask_node(self, node: BrokerNode, request: Any, answer: type[Any], **_: Any) -> Any:
        if answer is describe_producers.DescribeProducersResponse:
            producers = [
                describe_producers.ProducerState(
                    producer_id=producer_id, last_timestamp=0, current_txn_start_offset=start
                )
                for producer_id, start in self.open
            ]
            partition = describe_producers.PartitionResponse(partition_index=0, active_producers=producers)
            topic = describe_producers.TopicResponse(name="orders", partitions=[partition])
            return answer(topics=[topic])
        states = [
            list_transactions.TransactionState(transactional_id=name, producer_id=producer_id)
            for producer_id, (name, _) in self.known.items()
            if producer_id in request.producer_id_filters
        ]
        return list_transactions.ListTransactionsResponse(transaction_states=states)

    def ask_coordinator(self, kind: int, key: str, request: Any, answer: type[Any], **_: Any) -> Any:
        (partitions,) = [partitions for name, partitions in self.known.values() if name == key]
        if partitions is None:
            state = describe_transactions.TransactionState(error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        else:
            topics = [
                describe_transactions.TopicData(topic=one.topic, partitions=[one.partition])
                for one in partitions
            ]
            state = describe_transactions.TransactionState(topics=topics)
        return answer(transaction_states=[state])


def hanging_producers(cluster: Any, *, longer_than_ms: int = 60_000) -> list[int]:
    return [one.producer.producer_id for one in hanging(cluster, [ORDERS], longer_than_ms=longer_than_ms)]


def test_a_transaction_of_a_producer_that_nobody_knows_hangs() -> None:
    assert hanging_producers(ScriptedCluster([(7, 10)], {})) == [7]


def test_a_transaction_hangs_when_its_coordinator_does_not_count_the_partition() -> None:
    cluster = ScriptedCluster([(7, 10), (8, 20)], {7: ("a", [TopicPartition("pay", 0)]), 8: ("b", [ORDERS])})
    assert hanging_producers(cluster) == [7]


def test_an_id_that_is_gone_before_it_is_described_leaves_its_transaction_hanging() -> None:
    assert hanging_producers(ScriptedCluster([(7, 10)], {7: ("a", None)})) == [7]


def test_what_is_younger_than_the_longest_timeout_does_not_hang() -> None:
    assert hanging_producers(ScriptedCluster([(7, 10)], {}), longer_than_ms=2**60) == []


def test_a_producer_without_an_open_transaction_does_not_hang() -> None:
    assert hanging_producers(ScriptedCluster([(7, -1)], {})) == []
