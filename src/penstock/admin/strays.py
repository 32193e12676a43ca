"""Strays: logs that a cluster's metadata does not place where they are, found on all brokers.

Brokers tell of them by DescribeLogDirs, in a field of Penstock's. `restoration` makes topics of them again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from penstock.client.cluster_client import ClusterClient
from penstock.client.wire_client import UnsupportedByBroker
from penstock.model.strays import FoundStray
from penstock.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from penstock.wire.messages.metadata import MetadataResponseTopic


def ask_strays(client: ClusterClient) -> list[FoundStray]:
    """Of all brokers that are there; those that are not Penstock's tell of none."""
    found: list[FoundStray] = []
    for node in client.nodes():
        try:
            answer = client.ask_node(node, DescribeLogDirsRequest(topics=[]), DescribeLogDirsResponse)
        except UnsupportedByBroker:
            continue
        found += strays_of(node.node_id, answer)
    return sorted(found, key=lambda one: (one.topic, one.partition, one.broker, one.directory))


def strays_of(broker: int, answer: DescribeLogDirsResponse) -> list[FoundStray]:
    """What a broker tells of."""
    return [
        FoundStray(
            broker, directory.log_dir, stray.directory, stray.topic, stray.partition_index,
            stray.topic_id, stray.size_bytes, stray.start_offset, stray.end_offset,
            stray.leader_epoch, stray.set_aside_ms,
        )
        for directory in answer.results
        for stray in directory.penstock_strays
    ]  # fmt: skip


class StrayTopic(NamedTuple):
    """The strays of one topic id, and what the cluster has of it."""

    name: str
    topic_id: bytes
    strays: list[FoundStray]
    known_as: str | None
    """The name of the cluster's topic with that id; None: it has none."""
    known_partitions: int

    @property
    def lost(self) -> list[int]:
        """Partitions that the cluster does not have: these strays are all that is left of them."""
        return sorted({stray.partition for stray in self.strays if stray.partition >= self.known_partitions})

    @property
    def partitions(self) -> list[int]:
        return sorted({stray.partition for stray in self.strays})

    @property
    def brokers(self) -> list[int]:
        return sorted({stray.broker for stray in self.strays if stray.broker is not None})

    @property
    def size_bytes(self) -> int:
        return sum(stray.size_bytes for stray in self.strays)


def by_topic(strays: Iterable[FoundStray], topics: Iterable[MetadataResponseTopic] = ()) -> list[StrayTopic]:
    """In the order of their names; `topics` are the cluster's."""
    known = {topic.topic_id: topic for topic in topics}
    found: dict[bytes, StrayTopic] = {}
    for stray in strays:
        if stray.topic_id not in found:
            topic = known.get(stray.topic_id)
            known_as, count = (None, 0) if topic is None else (topic.name, len(topic.partitions))
            found[stray.topic_id] = StrayTopic(stray.topic, stray.topic_id, [], known_as, count)
        found[stray.topic_id].strays.append(stray)
    return sorted(found.values(), key=lambda topic: (topic.name, topic.topic_id))
