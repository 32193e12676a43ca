"""API 15 DescribeGroups, versions 0–6: State, members and assignments of groups of the classic protocol. From version 6 on an
unknown group is an error.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.coordinators.host import context_of
from penstock.broker.requests.call import Call
from penstock.broker.requests.slices import in_slices
from penstock.model.acl import ResourceType
from penstock.model.errors import ApiError
from penstock.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithAuthorizer, WithGroups

    class Needs(WithAuthorizer, WithGroups, Protocol): ...


REQUEST = DescribeGroupsRequest
RESPONSE = DescribeGroupsResponse


async def handle(node: "Needs", call: Call, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    described = await in_slices(lambda group_id: _describe(node, call, group_id), request.groups)
    if request.include_authorized_operations:
        for group in described:
            if not group.error_code:
                group.authorized_operations = node.authorizer.authorized_operations(
                    call, ResourceType.GROUP, group.group_id
                )
    return DescribeGroupsResponse(groups=described)


async def _describe(node: "Needs", call: Call, group_id: str) -> DescribedGroup:
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
