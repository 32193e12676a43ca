"""`cluster.topics`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from penstock.admin import topic_changes
from penstock.admin.clients import ClusterClients
from penstock.admin.topic_changes import Assignment, NewPartitions, NewTopic
from penstock.admin.topics import TopicDescription, describe_topics, with_reassignments
from penstock.client.cluster_client import ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import NoSuchTopic, Refused
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition, id_text
from penstock.model.internal_topics import is_internal

if TYPE_CHECKING:
    from penstock.admin.compaction import Compaction
    from penstock.admin.moves.following import Show
    from penstock.wire.messages.metadata import MetadataResponseTopic


class TopicListing(NamedTuple):
    """One topic of a list."""

    name: str
    topic_id: str
    partitions: int
    replication_factor: int
    """Of the partition that has most replicas."""
    is_internal: bool
    """Kafka's own, such as __consumer_offsets."""


class Topics:
    """The topics of a cluster. Refused and Unreachable come from every call."""

    def __init__(self, clients: ClusterClients) -> None:
        self._clients = clients

    def describe(self, *names: str, reassignments: bool = False) -> list[TopicDescription]:
        """These topics with their partitions, in the order given; `reassignments` adds what is being moved.

        NoSuchTopic names one that is not there, and one with a similar name.

        >>> cluster.topics.describe("orders")[0].partitions[0].isr
        (1, 2, 3)
        """

        def ask(client: ClusterClient) -> list[TopicDescription]:
            there(client, names)
            found = describe_topics(client, names)
            return with_reassignments(client, found) if reassignments else found

        return self._clients.call(ask)

    def partitions(self, *names: str) -> list[TopicPartition]:
        """The partitions of these topics, in order. NoSuchTopic when one is not there.

        >>> cluster.topics.partitions("orders")
        [TopicPartition(topic='orders', partition=0), TopicPartition(topic='orders', partition=1)]
        """
        found = self._clients.call(lambda client: there(client, names))
        return [
            TopicPartition(topic.name or "", number)
            for topic in found
            for number in sorted(one.partition_index for one in topic.partitions)
        ]

    def create(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replication_factor: int | None = None,
        configs: Mapping[str, str | None] | None = None,
        assignment: Assignment = (),
        exist_ok: bool = False,
        validate_only: bool = False,
    ) -> bool:
        """Makes a topic. What is not said is the broker's default. `assignment` names the brokers of each partition instead.

        True when it was made; with `exist_ok` False when it was there already. `validate_only` checks and makes nothing.

        >>> cluster.topics.create("orders", partitions=3, configs={"retention.ms": "86400000"})
        True
        """
        topic = NewTopic(name, partitions, replication_factor, configs or {}, assignment)
        try:
            _raise_first(
                self._clients.change(
                    lambda client: topic_changes.create_topics(client, [topic], validate_only=validate_only)
                )
            )
        except Refused as error:
            if exist_ok and error.code == ErrorCode.TOPIC_ALREADY_EXISTS:
                return False
            raise
        return True

    def add_partitions(self, name: str, total: int, *, assignment: Assignment = ()) -> None:
        """Gives a topic more partitions: `total` is how many it has then. Keys may go to other partitions from then on.

        >>> cluster.topics.add_partitions("orders", 6)
        """
        wanted = NewPartitions(name, total, assignment)
        _raise_first(self._clients.change(lambda client: topic_changes.create_partitions(client, [wanted])))

    def set_replication_factor(
        self, name: str, factor: int, *, throttle: int | None = None, show: Show | None = None
    ) -> int:
        """Gives each partition so many replicas, and waits until they are in sync; how many partitions were moved.

        `throttle` bounds what brokers send each other for it, in bytes per second. `show` hears of the progress.

        >>> cluster.topics.set_replication_factor("orders", 3)
        6
        """
        from penstock.admin.moves.following import carry_out
        from penstock.admin.moves.plans import with_factor

        self.partitions(name)
        return carry_out(
            self._clients.connection,
            lambda states, racks: with_factor(states, racks, name, factor),
            throttle=throttle,
            show=show,
        )

    def delete(self, *names: str) -> None:
        """Deletes topics with all records. NoSuchTopic, and nothing is deleted, when one is not there.

        >>> cluster.topics.delete("orders")
        """

        def ask(client: ClusterClient) -> dict[str, Refused | None]:
            there(client, names)
            return topic_changes.delete_topics(client, names)

        _raise_first(self._clients.change(ask))

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Deletes the records before each offset (-1: all that are committed); the first offset that is left of each.

        >>> cluster.topics.delete_records({TopicPartition("orders", 0): 1000})
        {TopicPartition(topic='orders', partition=0): 1000}
        """
        found = self._clients.change(lambda client: topic_changes.delete_records(client, before))
        left = {}
        for partition, outcome in found.items():
            if isinstance(outcome, Refused):
                raise refused(outcome.code, f"{partition}: {outcome}")
            left[partition] = outcome
        return left

    def compaction(self, *names: str) -> dict[TopicPartition, Compaction]:
        """How far the compaction of these topics is, as far as brokers tell: Penstock's do, of topics that are compacted.

        >>> cluster.topics.compaction("prices")[TopicPartition("prices", 0)].state
        'waiting'
        """
        from penstock.admin.compaction import ask_cleaners

        def ask(client: ClusterClient) -> dict[TopicPartition, Compaction]:
            leaders = {
                TopicPartition(topic.name or "", one.partition_index): one.leader_id
                for topic in there(client, names)
                for one in topic.partitions
            }
            return ask_cleaners(client, leaders)

        return self._clients.call(ask)

    # The last one: below it, `list` would be this method.
    def list(self, *, internal: bool = False) -> list[TopicListing]:
        """All topics by name; with Kafka's own if `internal`.

        >>> [topic.name for topic in cluster.topics.list()]
        ['orders', 'payments']
        """
        listed = [_listing(topic) for topic in self._clients.call(ClusterClient.metadata).topics]
        return sorted(one for one in listed if internal or not one.is_internal)


def there(client: ClusterClient, names: Iterable[str]) -> list[MetadataResponseTopic]:
    """What Metadata says of the topics, in their order; NoSuchTopic when one is not there."""
    wanted = list(names)
    found = {topic.name: topic for topic in (client.metadata(wanted).topics if wanted else ())}
    for name in wanted:
        topic = found.get(name)
        if topic is None or topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            known = [one.name or "" for one in client.metadata().topics]
            raise NoSuchTopic(name, difflib.get_close_matches(name, known, n=3))
        if topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION:
            raise NoSuchTopic(name, ())
        if topic.error_code and not topic.partitions:
            raise refused(topic.error_code)
    return [found[name] for name in wanted]


def _listing(topic: MetadataResponseTopic) -> TopicListing:
    name = topic.name or ""
    factor = max((len(one.replica_nodes) for one in topic.partitions), default=0)
    return TopicListing(
        name, id_text(bytes(topic.topic_id)), len(topic.partitions), factor, is_internal(name)
    )


def _raise_first(outcome: Mapping[str, Refused | None]) -> None:
    for error in outcome.values():
        if error is not None:
            raise error
