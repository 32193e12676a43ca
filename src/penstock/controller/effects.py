"""Which brokers must be told about a change."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from penstock.metadata.image import (
    NO_STATE,
    Change,
    ClusterImage,
    PartitionChanged,
    PartitionRegistration,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from penstock.model.ids import TopicPartition

# Kafka's mark for the leader epoch of a partition whose topic is being deleted.
EPOCH_DURING_DELETE: Final = -2


class DeletedTopic(NamedTuple):
    name: str
    topic_id: bytes
    num_partitions: int


class Effects(NamedTuple):
    """`told`: by broker, the partitions of which it holds a replica and whose leader, epoch or replicas changed (LeaderAndIsr);
    `new`: those among them that it did not hold before. `stopped`: by broker, the replicas that it loses, with the leader epoch
    that says so (StopReplica). `updated` and `deleted` are for every broker (UpdateMetadata)."""

    told: dict[int, list[TopicPartition]]
    new: dict[int, list[TopicPartition]]
    stopped: dict[int, dict[TopicPartition, int]]
    updated: list[TopicPartition]
    deleted: list[DeletedTopic]


def effects(image: ClusterImage, changes: Iterable[Change]) -> Effects:
    """Of changes of different things that are not yet in the image. A leader's own change of its ISR (same leader epoch, same
    replicas) is known to the leader from its answer, and no matter of its followers. Configs each broker reads from the tree."""
    found = Effects({}, {}, {}, [], [])
    for change in changes:
        if isinstance(change, PartitionChanged):
            before = image.topics[change.name].partitions[change.partition_index]
            which = TopicPartition(change.name, change.partition_index)
            _add_changed(found, which, before, change.partition)
        elif isinstance(change, TopicCreated):
            _add_new(found, change.name, 0, change.partitions)
        elif isinstance(change, PartitionsAdded):
            _add_new(found, change.name, len(image.topics[change.name].partitions), change.partitions)
        elif isinstance(change, TopicDeleted):
            topic = image.topics[change.name]
            found.deleted.append(DeletedTopic(topic.name, topic.topic_id, len(topic.partitions)))
            for index, partition in enumerate(topic.partitions):
                which = TopicPartition(topic.name, index)
                for id in partition.replicas:
                    found.stopped.setdefault(id, {})[which] = EPOCH_DURING_DELETE
    return found


def partitions_of(image: ClusterImage, broker_id: int) -> list[TopicPartition]:
    """All of which the broker holds a replica: what it is told when it arrives, or when the controller is new."""
    return [
        TopicPartition(name, index)
        for name, topic in image.topics.items()
        for index, partition in enumerate(topic.partitions)
        if broker_id in partition.replicas
    ]


def _add_new(found: Effects, name: str, first: int, partitions: Iterable[PartitionRegistration]) -> None:
    for index, partition in enumerate(partitions, first):
        which = TopicPartition(name, index)
        found.updated.append(which)
        for id in partition.replicas:
            found.told.setdefault(id, []).append(which)
            found.new.setdefault(id, []).append(which)


def _add_changed(
    found: Effects, which: TopicPartition, before: PartitionRegistration, after: PartitionRegistration
) -> None:
    found.updated.append(which)
    is_first = before.partition_epoch == NO_STATE
    if after.leader_epoch == before.leader_epoch and after.replicas == before.replicas and not is_first:
        return
    for id in after.replicas:
        found.told.setdefault(id, []).append(which)
        if is_first or id not in before.replicas:
            found.new.setdefault(id, []).append(which)
    for id in before.replicas:
        if id not in after.replicas:
            found.stopped.setdefault(id, {})[which] = after.leader_epoch
