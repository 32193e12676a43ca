"""API 15 DescribeGroups, versions 0–6: each group on its own; from version 6 on, one that is not there is an error.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.coordinators.host import context_of
from penstock.broker.requests.call import Call
from penstock.broker.requests.slices import in_slices
from penstock.model.acl import ALTER_CONFIGS, DELETE, DESCRIBE, DESCRIBE_CONFIGS, READ
from penstock.model.errors import ApiError
from penstock.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithGroups

REQUEST = DescribeGroupsRequest
RESPONSE = DescribeGroupsResponse

ALL_GROUP_OPERATIONS = sum(1 << one for one in (READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS))


async def handle(node: "WithGroups", call: Call, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    described = await in_slices(lambda group_id: _describe(node, call, group_id), request.groups)
    if request.include_authorized_operations:
        for group in described:
            if not group.error_code:
                group.authorized_operations = ALL_GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=described)


async def _describe(node: "WithGroups", call: Call, group_id: str) -> DescribedGroup:
    context = context_of(call)
    try:
        group: DescribedGroup = await node.groups.answer(
            group_id,
            lambda shard, ticket, _: shard.describe_group(group_id, context, ticket),
            reads_only=True,
        )
    except ApiError as refusal:
        return DescribedGroup(group_id=group_id, error_code=refusal.code)
    return group
