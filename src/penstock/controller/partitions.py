"""Adds partitions to topics."""

from collections import Counter
from collections.abc import Container

from penstock.controller import placement
from penstock.controller.decision import MAX_PARTITIONS_PER_REQUEST, Charge, Decision, free
from penstock.controller.reassignments import target_replicas
from penstock.controller.topics import (
    new_partition,
    partition_creation,
    restored_partitions,
    too_many_partitions,
)
from penstock.metadata import znodes
from penstock.metadata.image import ClusterImage, PartitionRegistration, PartitionsAdded, Topic
from penstock.metadata.tree import Set
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def create_partitions(
    image: ClusterImage,
    request: CreatePartitionsRequest,
    *,
    leaving: Container[int] = (),
    charge: Charge = free,
) -> Decision[CreatePartitionsTopicResult]:
    """`count` is the number of partitions wanted in the end. Placement continues where the topic's began. Brokers that are
    `leaving` lead a new partition only where no other could."""
    decision: Decision[CreatePartitionsTopicResult] = Decision([], [], [])
    times_named = Counter(topic.name for topic in request.topics)
    wanted = {topic.name: topic for topic in request.topics}
    partitions_made = 0
    for name, asked in wanted.items():
        try:
            if times_named[name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            topic = image.topic(name)
            if topic is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            replicas = _added_replicas(image, topic, asked)
            if asked.penstock_restored:
                added = _restored(topic, asked, replicas)
            else:
                added = tuple(new_partition(each, leaving=leaving) for each in replicas)
            partitions_made += len(added)
            if partitions_made > MAX_PARTITIONS_PER_REQUEST:
                raise too_many_partitions()
            if not request.validate_only:
                charge(len(added))
        except ApiError as error:
            decision.results.append(
                CreatePartitionsTopicResult(name=name, error_code=error.code, error_message=error.detail)
            )
            continue
        decision.results.append(CreatePartitionsTopicResult(name=name))
        if not request.validate_only:
            first = len(topic.partitions)
            node = znodes.encode_topic(topic.topic_id, (*topic.partitions, *added))
            decision.ops.append(Set(znodes.topic_path(name), node))
            for index, partition in enumerate(added, first):
                decision.ops.extend(
                    partition_creation(name, index, partition, controller_epoch=image.controller_epoch)
                )
            decision.changes.append(PartitionsAdded(name, added))
    return decision


def _added_replicas(image: ClusterImage, topic: Topic, asked: CreatePartitionsTopic) -> list[tuple[int, ...]]:
    existing = len(topic.partitions)
    if asked.count == existing:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {existing} partition(s).")
    if asked.count < existing:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {existing} partition(s);"
            f" {asked.count} would not be an increase.",
        )
    additional = asked.count - existing
    if additional > MAX_PARTITIONS_PER_REQUEST:
        raise too_many_partitions()
    replication_factor = len(target_replicas(topic.partitions[0]))
    if not asked.assignments:
        return placement.place_replicas(
            image.brokers,
            num_partitions=additional,
            replication_factor=replication_factor,
            start_index=placement.start_index_of(image.brokers, topic.partitions[0].replicas[0]),
            first_partition=existing,
        )
    if len(asked.assignments) != additional:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only"
            f" {len(asked.assignments)} assignment(s) were specified.",
        )
    for assignment in asked.assignments:
        placement.check_manual_assignment(
            image.brokers,
            assignment.broker_ids,
            # Of partitions that are restored some replicas may be lost.
            replication_factor=None if asked.penstock_restored else replication_factor,
        )
    return [tuple(assignment.broker_ids) for assignment in asked.assignments]


def _restored(
    topic: Topic, asked: CreatePartitionsTopic, replicas: list[tuple[int, ...]]
) -> tuple[PartitionRegistration, ...]:
    restored = asked.penstock_restored[0]
    if restored.topic_id != topic.topic_id:
        raise ApiError(ErrorCode.INCONSISTENT_TOPIC_ID, f"Topic '{topic.name}' has another id.")
    return restored_partitions(restored, replicas if asked.assignments else [])
