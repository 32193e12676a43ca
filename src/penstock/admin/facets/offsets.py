"""`cluster.offsets`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from penstock.admin.clients import ClusterClients
from penstock.admin.facets.topics import there
from penstock.admin.offsets import (
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Position,
    Span,
    all_positions,
    spans,
)
from penstock.client.cluster_client import ClusterClient
from penstock.model.ids import TopicPartition


class Offsets:
    """Where the partitions of a cluster begin and end."""

    def __init__(self, clients: ClusterClients) -> None:
        self._clients = clients

    def spans(self, *topics: str) -> dict[TopicPartition, Span]:
        """The first offset and the end of each partition of these topics. NoSuchTopic when one is not there.

        >>> cluster.offsets.spans("orders")
        {TopicPartition(topic='orders', partition=0): Span(start_offset=0, end_offset=42)}
        """

        def ask(client: ClusterClient) -> dict[TopicPartition, Span]:
            return spans(client, _partitions(client, topics))

        return self._clients.call(ask)

    def at(
        self, when: datetime | int, *topics: str, partitions: Iterable[TopicPartition] = ()
    ) -> dict[TopicPartition, Position]:
        """The first record that is as late as a time (a datetime, or milliseconds since 1970), of each partition of the topics,
        or of these partitions. The offset is -1 where no record is as late.

        >>> cluster.offsets.at(datetime(2026, 11, 16, tzinfo=UTC), "orders")
        {TopicPartition(topic='orders', partition=0): Position(offset=17, timestamp_ms=1794787200000, leader_epoch=0)}
        """
        when_ms = round(when.timestamp() * 1000) if isinstance(when, datetime) else when
        return self._ask(when_ms, topics, partitions, READ_UNCOMMITTED)

    def ends(
        self, *topics: str, partitions: Iterable[TopicPartition] = (), committed: bool = False
    ) -> dict[TopicPartition, int]:
        """The offset of the next record; with `committed`, the last stable offset: that of the first open transaction.

        >>> cluster.offsets.ends("orders")
        {TopicPartition(topic='orders', partition=0): 42}
        """
        isolation_level = READ_COMMITTED if committed else READ_UNCOMMITTED
        found = self._ask(LATEST, topics, partitions, isolation_level)
        return {partition: position.offset for partition, position in found.items()}

    def _ask(
        self, when: int, topics: tuple[str, ...], partitions: Iterable[TopicPartition], isolation_level: int
    ) -> dict[TopicPartition, Position]:
        named = list(partitions)

        def ask(client: ClusterClient) -> dict[TopicPartition, Position]:
            asked = named + _partitions(client, topics)
            return all_positions(client, asked, when, isolation_level=isolation_level)

        return self._clients.call(ask)


def _partitions(client: ClusterClient, topics: tuple[str, ...]) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name or "", number)
        for topic in there(client, topics)
        for number in sorted(one.partition_index for one in topic.partitions)
    ]
