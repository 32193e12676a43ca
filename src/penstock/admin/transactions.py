"""Transactions as an administrator sees them: their coordinators' view, their producers' traces in partitions, and ways to
end them.

A *hanging* transaction is open in a partition while no coordinator knows of it any more: nobody will ever write its
marker, and readers of committed records wait behind it. `hanging` finds them; `write_abort_marker` ends one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from penstock.client.cluster_client import TRANSACTION, BrokerNode, ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import Refused
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition, by_topic
from penstock.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from penstock.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from penstock.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

# How many partitions one request asks about.
PARTITIONS_AT_ONCE = 500
NO_DURATION = -1
FENCING_TIMEOUT_MS = 30_000


class Listed(NamedTuple):
    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


class Transaction(NamedTuple):
    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None
    partitions: list[TopicPartition]


class Producer(NamedTuple):
    """What a partition remembers of a producer."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    start_offset: int | None
    """Of the transaction that it has open there."""


class OpenTransaction(NamedTuple):
    partition: TopicPartition
    producer: Producer


class AbortMarker(NamedTuple):
    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


def listed_transactions(
    cluster: ClusterClient,
    *,
    longer_than_ms: int = NO_DURATION,
    pattern: str | None = None,
    producer_ids: Iterable[int] = (),
) -> list[Listed]:
    request = ListTransactionsRequest(
        producer_id_filters=list(producer_ids),
        duration_filter=longer_than_ms,
        transactional_id_pattern=pattern,
    )
    found = []
    for node in cluster.nodes():
        answer = cluster.ask_node(node, request, ListTransactionsResponse)
        if answer.error_code:
            raise refused(answer.error_code)
        found += [
            Listed(one.transactional_id, node.node_id, one.producer_id, one.transaction_state)
            for one in answer.transaction_states
        ]
    return found


def described_transaction(cluster: ClusterClient, transactional_id: str) -> Transaction:
    answer = cluster.ask_coordinator(
        TRANSACTION,
        transactional_id,
        DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        DescribeTransactionsResponse,
        codes=lambda answer: [one.error_code for one in answer.transaction_states],
    )
    (state,) = answer.transaction_states
    if state.error_code:
        raise refused(state.error_code)
    return Transaction(
        transactional_id,
        cluster.coordinator(TRANSACTION, transactional_id).node_id,
        state.producer_id,
        state.producer_epoch,
        state.transaction_state,
        state.transaction_timeout_ms,
        state.transaction_start_time_ms if state.transaction_start_time_ms >= 0 else None,
        [TopicPartition(topic.topic, number) for topic in state.topics for number in topic.partitions],
    )


def producers(
    cluster: ClusterClient, partitions: Iterable[TopicPartition], *, broker_id: int | None = None
) -> dict[TopicPartition, list[Producer]]:
    """On each partition's leader, or on one broker that has replicas of them."""
    asked: dict[int, list[TopicPartition]] = {}
    nodes, leader_ids = _leaders(cluster, partitions)
    for partition, leader_id in leader_ids.items():
        asked.setdefault(leader_id if broker_id is None else broker_id, []).append(partition)
    found: dict[TopicPartition, list[Producer]] = {}
    for node_id, mine in asked.items():
        node = nodes.get(node_id) or cluster.node(node_id)
        for first in range(0, len(mine), PARTITIONS_AT_ONCE):
            found |= _producers_on(cluster, node, mine[first : first + PARTITIONS_AT_ONCE])
    return found


def _leaders(
    cluster: ClusterClient, partitions: Iterable[TopicPartition]
) -> tuple[dict[int, BrokerNode], dict[TopicPartition, int]]:
    wanted = list(partitions)
    nodes, described = cluster.leaders(one.topic for one in wanted)
    known = {
        TopicPartition(topic.name or "", one.partition_index): one.leader_id
        for topic in described.topics
        for one in topic.partitions
    }
    for partition in wanted:
        if partition not in known:
            raise refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return nodes, {partition: known[partition] for partition in wanted}


def _producers_on(
    cluster: ClusterClient, node: BrokerNode, partitions: list[TopicPartition]
) -> dict[TopicPartition, list[Producer]]:
    topics = [
        TopicRequest(name=name, partition_indexes=numbers) for name, numbers in by_topic(partitions).items()
    ]
    answer = cluster.ask_node(node, DescribeProducersRequest(topics=topics), DescribeProducersResponse)
    found = {}
    for topic in answer.topics:
        for one in topic.partitions:
            if one.error_code:
                raise refused(one.error_code, one.error_message)
            found[TopicPartition(topic.name, one.partition_index)] = [
                _producer(state) for state in one.active_producers
            ]
    return found


def _producer(state: ProducerState) -> Producer:
    return Producer(
        state.producer_id,
        state.producer_epoch,
        state.coordinator_epoch,
        state.last_sequence,
        state.last_timestamp,
        state.current_txn_start_offset if state.current_txn_start_offset >= 0 else None,
    )


def hanging(
    cluster: ClusterClient,
    partitions: Iterable[TopicPartition],
    *,
    longer_than_ms: int,
    broker_id: int | None = None,
) -> list[OpenTransaction]:
    """Open for longer than any transaction may be, and not expected to end by any coordinator."""
    now_ms = round(time.time() * 1000)
    candidates = [
        OpenTransaction(partition, producer)
        for partition, found in producers(cluster, partitions, broker_id=broker_id).items()
        for producer in found
        if producer.start_offset is not None and now_ms - producer.last_timestamp_ms > longer_than_ms
    ]
    if not candidates:
        return []
    producer_ids = sorted({one.producer.producer_id for one in candidates})
    expected: dict[int, list[TopicPartition]] = {}
    for one in listed_transactions(cluster, producer_ids=producer_ids):
        try:
            expected[one.producer_id] = described_transaction(cluster, one.transactional_id).partitions
        except Refused as error:
            if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise
    return [one for one in candidates if one.partition not in expected.get(one.producer.producer_id, ())]


def write_abort_marker(cluster: ClusterClient, marker: AbortMarker) -> None:
    """Straight into the partition, past any coordinator: for hanging transactions only."""
    nodes, leader_ids = _leaders(cluster, [marker.partition])
    leader = nodes.get(leader_ids[marker.partition])
    if leader is None:
        raise refused(ErrorCode.LEADER_NOT_AVAILABLE)
    topic, number = marker.partition
    written = WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[number])],
        # Before a producer's first marker its coordinator's epoch is not known: 0 is before every real one.
        coordinator_epoch=max(0, marker.coordinator_epoch),
    )
    answer = cluster.ask_node(leader, WriteTxnMarkersRequest(markers=[written]), WriteTxnMarkersResponse)
    for result in answer.markers:
        for each in result.topics:
            for one in each.partitions:
                if one.error_code:
                    raise refused(one.error_code)


def fence_producer(cluster: ClusterClient, transactional_id: str) -> None:
    """Takes the next epoch of a transactional id: its producer is fenced, and its open transaction aborted."""
    answer = cluster.ask_coordinator(
        TRANSACTION,
        transactional_id,
        InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=FENCING_TIMEOUT_MS),
        InitProducerIdResponse,
        codes=lambda answer: [answer.error_code],
    )
    if answer.error_code:
        raise refused(answer.error_code)
