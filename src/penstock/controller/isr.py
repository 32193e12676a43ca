"""A leader changes the ISR of what it leads (AlterPartition)."""

from collections.abc import Container, Mapping

from penstock.controller.decision import Decision, change_state
from penstock.metadata.image import NO_BROKER_EPOCH, NO_STATE, ClusterImage, PartitionRegistration, Topic
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.alter_partition import (
    AlterPartitionRequest,
    RequestPartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)

RECOVERED = 0


def alter_partition(
    image: ClusterImage,
    request: AlterPartitionRequest,
    *,
    broker_epochs: Mapping[int, int],
    shutting_down: Container[int] = (),
) -> Decision[ResponseTopicData]:
    """Each partition of its own: a new ISR with the next partition epoch in the same leader epoch, or a refusal.

    `broker_epochs` are the brokers that are there, by id. A sender that is not among them, or with another epoch, is refused as
    a whole (ApiError). A partition epoch of the leader's that is ahead of ours says that another is the controller by now:
    NOT_CONTROLLER, for that partition.
    """
    if broker_epochs.get(request.broker_id) != request.broker_epoch:
        raise ApiError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Broker {request.broker_id} is not registered with the epoch {request.broker_epoch}.",
        )
    decision: Decision[ResponseTopicData] = Decision([], [], [])
    altered: set[tuple[bytes, int]] = set()
    for asked_topic in request.topics:
        topic = image.topic_with_id(asked_topic.topic_id)
        answers = []
        for asked in asked_topic.partitions:
            try:
                if topic is None:
                    raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
                if (topic.topic_id, asked.partition_index) in altered:
                    raise ApiError(ErrorCode.INVALID_REQUEST)
                altered.add((topic.topic_id, asked.partition_index))
                current = _current(topic, asked, request.broker_id)
                isr = _new_isr(asked)
                if set(isr) != set(current.isr):
                    _check_epoch_and_isr(current, asked, isr)
                    failed = image.failed_replicas.get((topic.name, asked.partition_index), ())
                    _check_added(current, isr, broker_epochs, shutting_down, failed)
                    current = current._replace(isr=tuple(isr), partition_epoch=current.partition_epoch + 1)
                    change_state(decision, image, topic.name, asked.partition_index, current)
            except ApiError as error:
                answers.append(
                    ResponsePartitionData(partition_index=asked.partition_index, error_code=error.code)
                )
                continue
            answers.append(_answer(asked.partition_index, current))
        decision.results.append(ResponseTopicData(topic_id=asked_topic.topic_id, partitions=answers))
    return decision


def _current(topic: Topic, asked: RequestPartitionData, sender: int) -> PartitionRegistration:
    """The partition, if the sender leads it in that epoch."""
    index = asked.partition_index
    if not 0 <= index < len(topic.partitions) or topic.partitions[index].partition_epoch == NO_STATE:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = topic.partitions[index]
    if asked.leader_epoch > partition.leader_epoch or asked.partition_epoch > partition.partition_epoch:
        raise ApiError(ErrorCode.NOT_CONTROLLER)
    if asked.leader_epoch < partition.leader_epoch:
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
    if sender != partition.leader or asked.leader_recovery_state != RECOVERED:
        raise ApiError(ErrorCode.INVALID_REQUEST)
    return partition


def _new_isr(asked: RequestPartitionData) -> dict[int, int]:
    """Broker ids to their epochs, NO_BROKER_EPOCH where the sender (before version 3) does not know it."""
    if asked.new_isr_with_epochs:
        isr = {broker.broker_id: broker.broker_epoch for broker in asked.new_isr_with_epochs}
        times = len(asked.new_isr_with_epochs)
    else:
        isr = dict.fromkeys(asked.new_isr, NO_BROKER_EPOCH)
        times = len(asked.new_isr)
    if len(isr) != times:
        raise ApiError(ErrorCode.INVALID_REQUEST)
    return isr


def _check_epoch_and_isr(
    partition: PartitionRegistration, asked: RequestPartitionData, isr: Mapping[int, int]
) -> None:
    if asked.partition_epoch < partition.partition_epoch:
        raise ApiError(ErrorCode.INVALID_UPDATE_VERSION)
    if partition.leader not in isr or not set(isr) <= set(partition.replicas):
        raise ApiError(ErrorCode.INVALID_REQUEST)


def _check_added(
    partition: PartitionRegistration,
    isr: Mapping[int, int],
    broker_epochs: Mapping[int, int],
    shutting_down: Container[int],
    failed: Container[int],
) -> None:
    """Only of those that come in: one that is in and goes away leaves by the controller's own decision, and until then a leader
    that is itself shutting down must be able to let a successor in."""
    for id, epoch in isr.items():
        if id in partition.isr:
            continue
        is_there = id in broker_epochs and id not in shutting_down and id not in failed
        if not is_there or epoch not in (NO_BROKER_EPOCH, broker_epochs[id]):
            raise ApiError(ErrorCode.INELIGIBLE_REPLICA)


def _answer(index: int, partition: PartitionRegistration) -> ResponsePartitionData:
    return ResponsePartitionData(
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        leader_recovery_state=RECOVERED,
        partition_epoch=partition.partition_epoch,
    )
