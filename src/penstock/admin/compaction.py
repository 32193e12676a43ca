"""How far the compaction of partitions is, as Penstock's brokers tell it. Other brokers tell nothing of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.client.cluster_client import ClusterClient
from penstock.client.wire_client import UnsupportedByBroker
from penstock.model.ids import TopicPartition
from penstock.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    PenstockCleaner,
)


class Compaction(NamedTuple):
    """What a leader's cleaner has done with one partition."""

    dirty_ratio: float
    is_cleanable: bool
    progress: float | None
    """Of the run that is under way; None when there is none."""
    runs: int
    last_run_ms: int | None
    last_duration_ms: int | None
    bytes_read: int
    bytes_written: int
    records_removed: int
    records_kept: int
    uncleanable_reason: str | None

    @property
    def state(self) -> str:
        """`running, 40% done`, `due`, `waiting`, or why it cannot be compacted."""
        if self.uncleanable_reason:
            return f"cannot be compacted: {self.uncleanable_reason}"
        if self.progress is not None:
            return f"running, {self.progress:.0%} done"
        return "due" if self.is_cleanable else "waiting"


def ask_cleaners(
    client: ClusterClient, leaders: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Compaction]:
    """What each leader (a broker id) says of its partitions."""
    found: dict[TopicPartition, Compaction] = {}
    for node in sorted(client.nodes()):
        asked: dict[str, list[int]] = {}
        for (topic, partition), leader in leaders.items():
            if leader == node.node_id:
                asked.setdefault(topic, []).append(partition)
        if not asked:
            continue
        topics = [DescribableLogDirTopic(topic=topic, partitions=parts) for topic, parts in asked.items()]
        try:
            answer = client.ask_node(node, DescribeLogDirsRequest(topics=topics), DescribeLogDirsResponse)
        except UnsupportedByBroker:
            continue
        for directory in answer.results:
            for held in directory.topics:
                for one in held.partitions:
                    for cleaner in one.penstock_cleaner:
                        found[TopicPartition(held.name, one.partition_index)] = of_cleaner(cleaner)
    return found


def of_cleaner(cleaner: PenstockCleaner) -> Compaction:
    has_run = cleaner.runs > 0
    return Compaction(
        cleaner.dirty_ratio,
        cleaner.is_cleanable,
        cleaner.progress if cleaner.progress >= 0 else None,
        cleaner.runs,
        cleaner.last_run_ms if has_run else None,
        cleaner.last_duration_ms if has_run else None,
        cleaner.bytes_read,
        cleaner.bytes_written,
        cleaner.records_removed,
        cleaner.records_kept,
        cleaner.uncleanable_reason or None,
    )
