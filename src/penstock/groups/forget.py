"""How offsets and groups are deleted: by tombstones, also where an offset is only pending."""

from penstock.coordination.form import Outcome
from penstock.groups.offset_book import OffsetBook
from penstock.groups.records import OffsetKey, write_group_key, write_offset_key
from penstock.groups.state import Group, GroupState
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def delete_offsets(
    outcome: Outcome, group: Group, book: OffsetBook, request: OffsetDeleteRequest
) -> OffsetDeleteResponse:
    """Forget offsets of topics that no member reads. Deleting what is not there succeeds."""
    if group.state is not GroupState.EMPTY and not group.is_of_consumers:
        # We cannot tell what its members read.
        raise ApiError(ErrorCode.NON_EMPTY_GROUP)
    subscribed = {topic.name for topic in request.topics if group.is_subscribed_to(topic.name)}
    return forget_requested(outcome, book, request, subscribed)


def forget_requested(
    outcome: Outcome, book: OffsetBook, request: OffsetDeleteRequest, subscribed: set[str]
) -> OffsetDeleteResponse:
    deleted = []
    for topic in request.topics:
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if topic.name in subscribed else ErrorCode.NONE
        results = []
        for partition in topic.partitions:
            topic_partition = TopicPartition(topic.name, partition.partition_index)
            if error is ErrorCode.NONE and (
                book.get(request.group_id, topic_partition) is not None
                or book.is_pending(request.group_id, topic_partition)
            ):
                forget_offset(outcome, request.group_id, topic_partition)
            results.append(
                OffsetDeleteResponsePartition(partition_index=topic_partition.partition, error_code=error)
            )
        deleted.append(OffsetDeleteResponseTopic(name=topic.name, partitions=results))
    return OffsetDeleteResponse(topics=deleted)


def forget_offset(outcome: Outcome, group_id: str, topic_partition: TopicPartition) -> None:
    outcome.record(write_offset_key(OffsetKey(group_id, *topic_partition)), None)


def forget_offsets(outcome: Outcome, group_id: str, book: OffsetBook, topic: str | None = None) -> None:
    """All offsets of a group, or those of one topic; the pending ones, too."""
    for topic_partition in dict.fromkeys((*book.topic_partitions(group_id), *book.pending(group_id))):
        if topic is None or topic_partition.topic == topic:
            forget_offset(outcome, group_id, topic_partition)


def forget_group(outcome: Outcome, group_id: str) -> None:
    outcome.record(write_group_key(group_id), None)
