"""Topics: which there are, what is known of them and of their partitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from penstock.admin.configs import ConfigEntry, config_entries, topics_configs
from penstock.client.cluster_client import ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import Refused, Unreachable
from penstock.client.wire_client import UnsupportedByBroker
from penstock.model.ids import TopicPartition, id_text

if TYPE_CHECKING:
    from penstock.admin.moves.model import Reassignment

NO_LEADER = -1
PARTITIONS_PER_ANSWER = 2000
CONTROLLER_PATIENCE_S = 5.0


class PartitionDescription(NamedTuple):
    partition: int
    leader: int
    """The broker that leads it; -1 for none."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None
    """Eligible leader replicas; None where the broker does not know DescribeTopicPartitions."""
    last_known_elr: tuple[int, ...] | None
    reassignment: Reassignment | None = None

    @property
    def replication_factor(self) -> int:
        """Without the replicas that are only being added. A reassignment that ended before the partition was asked for does
        not count, as in Kafka."""
        move = self.reassignment
        if move is None or set(self.replicas).isdisjoint([*move.adding, *move.removing]):
            return len(self.replicas)
        return len(move.origin)


class TopicDescription(NamedTuple):
    name: str
    topic_id: str
    """As Kafka writes it: 22 characters."""
    partitions: tuple[PartitionDescription, ...]
    """In order of their numbers."""


def topic_names(client: ClusterClient) -> list[str]:
    return sorted(topic.name or "" for topic in client.metadata().topics)


def describe_topics(
    client: ClusterClient, topics: Iterable[str], *, partition_limit: int = PARTITIONS_PER_ANSWER
) -> list[TopicDescription]:
    """In the order of the names given. Refused when one is not there."""
    names = list(topics)
    if not names:
        return []
    try:
        return _by_cursor(client, names, partition_limit)
    except UnsupportedByBroker:
        return _by_metadata(client, names)  # brokers before Kafka 3.8


def _by_cursor(client: ClusterClient, names: list[str], partition_limit: int) -> list[TopicDescription]:
    from penstock.wire.messages.describe_topic_partitions import (
        Cursor,
        DescribeTopicPartitionsRequest,
        DescribeTopicPartitionsResponse,
        TopicRequest,
    )

    ids: dict[str, str] = {}
    found: dict[str, list[PartitionDescription]] = {}
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names], response_partition_limit=partition_limit
    )
    while True:
        answer = client.ask(request, DescribeTopicPartitionsResponse)
        for topic in answer.topics:
            if topic.error_code:
                raise refused(topic.error_code)
            name = topic.name or ""
            ids[name] = id_text(bytes(topic.topic_id))
            found.setdefault(name, []).extend(
                PartitionDescription(
                    one.partition_index,
                    one.leader_id,
                    tuple(one.replica_nodes),
                    tuple(one.isr_nodes),
                    tuple(one.eligible_leader_replicas or ()),
                    tuple(one.last_known_elr or ()),
                )
                for one in topic.partitions
            )
        cursor = answer.next_cursor
        if cursor is None:
            return [
                TopicDescription(name, ids[name], _sorted(found[name])) for name in names if name in found
            ]
        # The broker takes the topics in order of name and goes on from the cursor.
        request.cursor = Cursor(topic_name=cursor.topic_name, partition_index=cursor.partition_index)
        request.topics = [TopicRequest(name=name) for name in names if name >= cursor.topic_name]


def _by_metadata(client: ClusterClient, names: list[str]) -> list[TopicDescription]:
    found = {}
    for topic in client.metadata(names).topics:
        if topic.error_code:
            raise refused(topic.error_code)
        partitions = [
            PartitionDescription(
                one.partition_index,
                one.leader_id,
                tuple(one.replica_nodes),
                tuple(one.isr_nodes),
                None,
                None,
            )
            for one in topic.partitions
        ]
        name = topic.name or ""
        found[name] = TopicDescription(name, id_text(bytes(topic.topic_id)), _sorted(partitions))
    return [found[name] for name in names if name in found]


def _sorted(partitions: list[PartitionDescription]) -> tuple[PartitionDescription, ...]:
    return tuple(sorted(partitions, key=lambda one: one.partition))


def with_reassignments(client: ClusterClient, topics: list[TopicDescription]) -> list[TopicDescription]:
    """The same topics with what is being reassigned, as far as there is a controller that can say so."""
    from penstock.admin.moves.cluster import ongoing

    partitions = [TopicPartition(topic.name, one.partition) for topic in topics for one in topic.partitions]
    try:
        moving = ongoing(client, partitions, patience_s=CONTROLLER_PATIENCE_S)
    except (Unreachable, Refused):
        return topics
    return [
        topic._replace(
            partitions=tuple(
                one._replace(reassignment=moving.get(TopicPartition(topic.name, one.partition)))
                for one in topic.partitions
            )
        )
        for topic in topics
    ]


def topic_configs(client: ClusterClient, topics: Iterable[str]) -> dict[str, dict[str, ConfigEntry]]:
    """All configs of each topic that is there, by name, in the order in which the broker sent them."""
    return {
        described.resource_name: {entry.name: entry for entry in config_entries(described)}
        for described in topics_configs(client, topics, None)
    }
