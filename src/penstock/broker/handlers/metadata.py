"""API 3 Metadata, versions 0–13: The brokers, the topics, and which broker leads which partition.

Where a listener has no advertised address, each client is told the one it connected to. Topics that do not exist are
created when the client and `auto.create.topics.enable` allow it, and are in the same answer.
Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.broker.requests.later import Later, NowOrLater
from penstock.broker.requests.portions import Portions
from penstock.metadata.image import Topic
from penstock.model.acl import NOT_ASKED, ResourceType
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import NO_ID
from penstock.model.internal_topics import is_internal
from penstock.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithAddresses, WithAuthorizer, WithImage, WithTopics

    class Needs(WithAddresses, WithAuthorizer, WithImage, WithTopics, Protocol): ...


REQUEST = MetadataRequest
RESPONSE = MetadataResponse
PORTIONS = (Portions(("topics",), ("topics",)),)


def handle(node: "Needs", call: Call, request: MetadataRequest) -> NowOrLater[MetadataResponse]:
    if request.topics is None or (call.api_version == 0 and not request.topics):
        return _answer(
            node,
            call,
            request,
            [_describe(node, call, topic, request) for topic in node.image.topics.values()],
        )
    missing = [name for name in map(_name, request.topics) if name and node.image.topic(name) is None]
    if missing:
        return Later(_create_and_answer(node, call, request, missing))
    return _answer(node, call, request, [_find(node, call, topic, request, {}) for topic in request.topics])


def _name(wanted: MetadataRequestTopic) -> str | None:
    """What is asked for by name. A name beside an id does not count."""
    return wanted.name if wanted.topic_id == NO_ID else None


async def _create_and_answer(
    node: "Needs", call: Call, request: MetadataRequest, missing: list[str]
) -> MetadataResponse:
    refusals: dict[str, ApiError] = {}
    out_of_reach: ApiError | None = (
        None  # the controller, or its store: it is waited for once, not for each topic
    )
    for name in missing:
        if out_of_reach is not None:
            refusals[name] = out_of_reach
            continue
        try:
            await node.topics.auto_create(name, allowed=request.allow_auto_topic_creation)
        except ApiError as error:
            refusals[name] = error
            if error.code == ErrorCode.LEADER_NOT_AVAILABLE:
                out_of_reach = error
    return _answer(
        node, call, request, [_find(node, call, topic, request, refusals) for topic in request.topics or ()]
    )


def _answer(
    node: "Needs", call: Call, request: MetadataRequest, topics: list[MetadataResponseTopic]
) -> MetadataResponse:
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=broker_id, host=host, port=port, rack=rack)
            for broker_id, host, port, rack in node.addresses.for_clients(call.connection)
        ],
        cluster_id=node.image.cluster_id,
        controller_id=node.image.controller_id,
        topics=topics,
        cluster_authorized_operations=node.authorizer.operations_on_cluster(call)
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )


def _find(
    node: "Needs",
    call: Call,
    wanted: MetadataRequestTopic,
    request: MetadataRequest,
    refusals: dict[str, ApiError],
) -> MetadataResponseTopic:
    if wanted.topic_id != NO_ID:
        topic = node.image.topic_with_id(wanted.topic_id)
        if topic is None:
            return MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, topic_id=wanted.topic_id, name=None
            )
        return _describe(node, call, topic, request)
    name = wanted.name or ""
    topic = node.image.topic(name)
    if topic is None:
        refusal = refusals.get(name)
        code = refusal.code if refusal is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return MetadataResponseTopic(
            error_code=code, name=name, topic_authorized_operations=_operations(node, call, name, request)
        )
    return _describe(node, call, topic, request)


def _describe_partition(node: "Needs", topic: Topic, index: int) -> MetadataResponsePartition:
    partition = topic.partitions[index]
    leader, offline = node.image.leader_and_offline(topic.name, index)
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        offline_replicas=offline,
    )


def _describe(node: "Needs", call: Call, topic: Topic, request: MetadataRequest) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[_describe_partition(node, topic, index) for index in range(len(topic.partitions))],
        topic_authorized_operations=_operations(node, call, topic.name, request),
    )


def _operations(node: "Needs", call: Call, name: str, request: MetadataRequest) -> int:
    """Also on a topic that does not exist."""
    if not request.include_topic_authorized_operations:
        return NOT_ASKED
    return node.authorizer.authorized_operations(call, ResourceType.TOPIC, name)
