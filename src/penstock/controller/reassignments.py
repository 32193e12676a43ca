"""Replicas move to other brokers, step by step (KIP-455).

While a partition moves from (1, 2) to (2, 3), its replicas are (2, 3, 1), the target first, of which 3 is being added and 1
removed. The added ones copy; when all of them are in the ISR the replicas are the target, and the others are told to go:

    replicas    adding  removing  leader  ISR
    (1, 2)      ()      ()        1       (1, 2)       at rest
    (2, 3, 1)   (3,)    (1,)      1       (1, 2)       asked for (`alter`)
    (2, 3, 1)   (3,)    (1,)      1       (1, 2, 3)    the leader let 3 in (`isr.alter_partition`)
    (2, 3)      ()      ()        2       (2, 3)       complete (`progress`)

Raising or lowering the number of replicas is the same. A move may be replaced by another, or cancelled: then the replicas are
those from before, although not always in their order. As in Kafka, ops have the states first and the topic's node last, so that
between the two the tree still knows of the move.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from penstock.controller import placement
from penstock.controller.decision import MAX_PARTITIONS_PER_REQUEST, Decision, change_state
from penstock.controller.topics import too_many_partitions
from penstock.metadata import znodes
from penstock.metadata.image import NO_LEADER, NO_STATE, ClusterImage, PartitionRegistration
from penstock.metadata.tree import Set
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from penstock.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def alter(
    image: ClusterImage, request: AlterPartitionReassignmentsRequest, *, leaving: Container[int] = ()
) -> Decision[ReassignableTopicResponse]:
    """Each partition of its own. No replicas named: its move is cancelled. What needs no copying is complete at once."""
    if sum(len(topic.partitions) for topic in request.topics) > MAX_PARTITIONS_PER_REQUEST:
        raise too_many_partitions()
    decision: Decision[ReassignableTopicResponse] = Decision([], [], [])
    able = image.brokers.keys() - {id for id in image.brokers if id in leaving}
    moved: dict[str, dict[int, PartitionRegistration]] = {}
    seen: set[tuple[str, int]] = set()
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            answer = ReassignablePartitionResponse(partition_index=asked.partition_index, error_message=None)
            answers.append(answer)
            try:
                if (topic.name, asked.partition_index) in seen:
                    raise ApiError(ErrorCode.INVALID_REQUEST, "Each partition must appear at most once.")
                seen.add((topic.name, asked.partition_index))
                partition = _find(image, topic.name, asked.partition_index)
                after = _altered(partition, asked, able, request.allow_replication_factor_change)
            except ApiError as error:
                answer.error_code, answer.error_message = error.code, error.detail
                continue
            if after is not partition:
                moved.setdefault(topic.name, {})[asked.partition_index] = after
        decision.results.append(ReassignableTopicResponse(name=topic.name, partitions=answers))
    _write(decision, image, moved)
    return decision


def progress(
    image: ClusterImage, changed: Iterable[tuple[str, int]], *, leaving: Container[int] = ()
) -> Decision[None]:
    """Of these partitions, whose ISR or leader changed, the moves that are complete by now are brought to their end. A new
    controller asks for all that are `reassigning`."""
    decision: Decision[None] = Decision([], [], [])
    able = image.brokers.keys() - {id for id in image.brokers if id in leaving}
    moved: dict[str, dict[int, PartitionRegistration]] = {}
    for name, index in changed:
        partition = image.partition(name, index)
        if partition is not None and is_reassigning(partition):
            after = _completed(partition, able)
            if after is not None:
                moved.setdefault(name, {})[index] = after
    _write(decision, image, moved)
    return decision


def list_(image: ClusterImage, request: ListPartitionReassignmentsRequest) -> list[OngoingTopicReassignment]:
    """Of those named, or of all, the ones that move."""
    named: Iterable[tuple[str, Iterable[int]]] = (
        [(topic.name, range(len(topic.partitions))) for topic in image.topics.values()]
        if request.topics is None
        else [(topic.name, topic.partition_indexes) for topic in request.topics]
    )
    found = []
    for name, indexes in named:
        ongoing = []
        for index in indexes:
            partition = image.partition(name, index)
            if partition is not None and is_reassigning(partition):
                ongoing.append(
                    OngoingPartitionReassignment(
                        partition_index=index,
                        replicas=partition.replicas,
                        adding_replicas=partition.adding,
                        removing_replicas=partition.removing,
                    )
                )
        if ongoing:
            found.append(OngoingTopicReassignment(name=name, partitions=ongoing))
    return found


def is_reassigning(partition: PartitionRegistration) -> bool:
    return bool(partition.adding or partition.removing)


def reassigning(image: ClusterImage) -> list[TopicPartition]:
    return [
        TopicPartition(name, index)
        for name, topic in image.topics.items()
        for index, partition in enumerate(topic.partitions)
        if is_reassigning(partition)
    ]


def target_replicas(partition: PartitionRegistration) -> tuple[int, ...]:
    """Those that it will have when it does not move any more."""
    return _without(partition.replicas, partition.removing)


def _find(image: ClusterImage, name: str, index: int) -> PartitionRegistration:
    if image.topic(name) is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    partition = image.partition(name, index)
    if partition is None or partition.partition_epoch == NO_STATE:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    return partition


def _altered(
    partition: PartitionRegistration,
    asked: ReassignablePartition,
    able: Container[int],
    may_change_factor: bool,
) -> PartitionRegistration:
    """The partition itself when there is nothing to do."""
    origin = _without(partition.replicas, partition.adding)
    if asked.replicas is None:
        if not is_reassigning(partition):
            raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
        target = origin
    else:
        target = tuple(asked.replicas)
        _check_target(partition, target, origin, able, may_change_factor)
    replicas = target + _without(origin, target)
    adding, removing = _without(replicas, origin), _without(replicas, target)
    if (replicas, adding, removing) == (partition.replicas, partition.adding, partition.removing):
        return partition
    started = _assigned(partition, replicas, adding, removing, able)
    if started is None:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"None of the replicas {list(replicas)} is in sync and available: the leader could not be among them.",
        )
    if not is_reassigning(started):
        return started
    completed = _completed(started, able)
    if completed is None:
        return started
    # Two steps in one write: one epoch.
    return completed._replace(leader_epoch=started.leader_epoch, partition_epoch=started.partition_epoch)


def _check_target(
    partition: PartitionRegistration,
    target: Sequence[int],
    origin: Sequence[int],
    able: Container[int],
    may_change_factor: bool,
) -> None:
    """A replica that the partition has may stay although its broker is away; a new one must be there."""
    known = {id for id in target if id in able or id in origin}
    placement.check_manual_assignment(known, target, replication_factor=None)
    factor = len(target_replicas(partition))
    if not may_change_factor and len(target) != factor:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {factor} to {len(target)}",
        )


def _completed(partition: PartitionRegistration, able: Container[int]) -> PartitionRegistration | None:
    """None while a replica is still to be copied, or none of the target could lead."""
    if any(id not in partition.isr for id in partition.adding):
        return None
    return _assigned(partition, target_replicas(partition), (), (), able)


def _assigned(
    partition: PartitionRegistration,
    replicas: tuple[int, ...],
    adding: tuple[int, ...],
    removing: tuple[int, ...],
    able: Container[int],
) -> PartitionRegistration | None:
    """With these replicas, in a new epoch: those that are gone are not in sync any more, and do not lead."""
    isr = tuple(id for id in partition.isr if id in replicas)
    if not isr:
        return None
    leader = partition.leader
    if leader != NO_LEADER and leader not in replicas:
        leader = next((id for id in replicas if id in isr and id in able), NO_LEADER)
        if leader == NO_LEADER:
            return None
    epochs = tuple(epoch for id, epoch in zip(partition.isr, partition.isr_epochs, strict=False) if id in isr)
    return PartitionRegistration(
        replicas,
        isr,
        leader,
        partition.leader_epoch + 1,
        partition.partition_epoch + 1,
        adding,
        removing,
        epochs,
    )


def _write(
    decision: Decision[Any],
    image: ClusterImage,
    moved: Mapping[str, Mapping[int, PartitionRegistration]],
) -> None:
    for name, by_index in moved.items():
        topic = image.topics[name]
        partitions = list(topic.partitions)
        for index, partition in by_index.items():
            partitions[index] = partition
            change_state(decision, image, name, index, partition)
        decision.ops.append(Set(znodes.topic_path(name), znodes.encode_topic(topic.topic_id, partitions)))


def _without(ids: Sequence[int], others: Container[int]) -> tuple[int, ...]:
    return tuple(id for id in ids if id not in others)
