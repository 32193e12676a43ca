"""API 75 DescribeTopicPartitions, version 0: Topics and partitions in order of name, in pages.

Not done: eligible leader replicas (KIP-966). The list is empty.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.metadata.image import Topic
from penstock.model.acl import ResourceType
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.internal_topics import is_internal
from penstock.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithAuthorizer, WithImage

    class Needs(WithAuthorizer, WithImage, Protocol): ...


REQUEST = DescribeTopicPartitionsRequest
RESPONSE = DescribeTopicPartitionsResponse

MAX_PARTITIONS_PER_PAGE = 2000


def handle(
    node: "Needs", call: Call, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    image = node.image
    names = sorted({topic.name for topic in request.topics} if request.topics else image.topics)
    first_partition = 0
    if request.cursor is not None:
        if request.cursor.partition_index < 0:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "DescribeTopicPartitionsRequest cursor partition must be valid"
            )
        names = [name for name in names if name >= request.cursor.topic_name]
        if names and names[0] == request.cursor.topic_name:
            first_partition = request.cursor.partition_index
    room = max(1, min(request.response_partition_limit, MAX_PARTITIONS_PER_PAGE))
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        topic = image.topic(name)
        if topic is None:
            topics.append(
                DescribeTopicPartitionsResponseTopic(
                    error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    name=name,
                    topic_authorized_operations=_operations(node, call, name),
                )
            )
            continue
        if room == 0:
            return DescribeTopicPartitionsResponse(
                topics=topics, next_cursor=Cursor(topic_name=name, partition_index=first_partition)
            )
        end = min(len(topic.partitions), first_partition + room)
        topics.append(_describe(node, call, topic, first_partition, end))
        room -= end - first_partition
        if end < len(topic.partitions):
            return DescribeTopicPartitionsResponse(
                topics=topics, next_cursor=Cursor(topic_name=name, partition_index=end)
            )
        first_partition = 0
    return DescribeTopicPartitionsResponse(topics=topics)


def _describe_partition(node: "Needs", topic: Topic, index: int) -> DescribeTopicPartitionsResponsePartition:
    partition = topic.partitions[index]
    leader, offline = node.image.leader_and_offline(topic.name, index)
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        eligible_leader_replicas=(),
        last_known_elr=(),
        offline_replicas=offline,
    )


def _describe(
    node: "Needs", call: Call, topic: Topic, first: int, end: int
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[_describe_partition(node, topic, index) for index in range(first, end)],
        topic_authorized_operations=_operations(node, call, topic.name),
    )


def _operations(node: "Needs", call: Call, name: str) -> int:
    return node.authorizer.authorized_operations(call, ResourceType.TOPIC, name)
