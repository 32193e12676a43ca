"""API 9 OffsetFetch, versions 1–10: The committed offsets of one group (before version 8) or of several. Topics are named by id
from version 10 on.

With `require_stable` (version 7 on) an offset that an open transaction is about to change is UNSTABLE_OFFSET_COMMIT.
Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.coordinators.host import context_of
from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.broker.requests.slices import in_slices
from penstock.model.errors import ApiError
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithGroups

REQUEST = OffsetFetchRequest
RESPONSE = OffsetFetchResponse
PORTIONS = (
    Portions(("groups", "topics", "partition_indexes"), ("groups", "topics", "partitions")),
    Portions(("topics", "partition_indexes"), ("topics", "partitions")),
)

GROUPS_FROM = 8
TOP_LEVEL_ERROR_FROM = 2


async def handle(node: "WithGroups", call: Call, request: OffsetFetchRequest) -> OffsetFetchResponse:
    if call.api_version >= GROUPS_FROM:
        found = await in_slices(
            lambda group: _fetch(node, call, group, request.require_stable), request.groups
        )
        return OffsetFetchResponse(groups=found)
    only = await _fetch(node, call, _only_group(request), request.require_stable)
    return _as_one_group(call, request, only)


async def _fetch(
    node: "WithGroups", call: Call, wanted: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    context = context_of(call)
    try:
        found: OffsetFetchResponseGroup = await node.groups.answer(
            wanted.group_id,
            lambda shard, ticket, _: shard.fetch_offsets(
                wanted, context, ticket, require_stable=require_stable
            ),
            reads_only=True,
        )
    except ApiError as refusal:
        return OffsetFetchResponseGroup(group_id=wanted.group_id, error_code=refusal.code)
    return found


def _only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def _as_one_group(
    call: Call, request: OffsetFetchRequest, group: OffsetFetchResponseGroup
) -> OffsetFetchResponse:
    """Version 1 has no place for an error of the group but its partitions."""
    if group.error_code and call.api_version < TOP_LEVEL_ERROR_FROM:
        refused = [
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=-1, error_code=group.error_code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ]
        return OffsetFetchResponse(topics=refused)
    topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=partition.partition_index,
                    committed_offset=partition.committed_offset,
                    committed_leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.metadata,
                    error_code=partition.error_code,
                )
                for partition in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)
