"""API 69 ConsumerGroupDescribe, versions 0–1: each group on its own; a classic one is an error here. Version 1 also says
which protocol a member speaks.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.broker.requests.slices import in_slices
from penstock.model.acl import ALTER_CONFIGS, DELETE, DESCRIBE, DESCRIBE_CONFIGS, READ
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithGroups

REQUEST = ConsumerGroupDescribeRequest
RESPONSE = ConsumerGroupDescribeResponse

ALL_GROUP_OPERATIONS = sum(1 << one for one in (READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS))


async def handle(
    node: "WithGroups", call: Call, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    described = await in_slices(lambda group_id: _describe(node, group_id), request.group_ids)
    if request.include_authorized_operations:
        for group in described:
            if not group.error_code:
                group.authorized_operations = ALL_GROUP_OPERATIONS
    return ConsumerGroupDescribeResponse(groups=described)


async def _describe(node: "WithGroups", group_id: str) -> DescribedGroup:
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        group: DescribedGroup = await node.groups.answer(
            group_id,
            lambda shard, ticket, _: shard.consumer_group_describe(group_id, ticket),
            reads_only=True,
        )
    except ApiError as refusal:
        return DescribedGroup(group_id=group_id, error_code=refusal.code)
    return group
