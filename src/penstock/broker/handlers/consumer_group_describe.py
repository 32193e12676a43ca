"""API 69 ConsumerGroupDescribe, versions 0–1: State, members and assignments of groups of the newer protocol (KIP-848). A
classic group is an error. Version 1 also says which protocol each member speaks.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.broker.requests.slices import in_slices
from penstock.model.acl import ResourceType
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithAuthorizer, WithGroups

    class Needs(WithAuthorizer, WithGroups, Protocol): ...


REQUEST = ConsumerGroupDescribeRequest
RESPONSE = ConsumerGroupDescribeResponse


async def handle(
    node: "Needs", call: Call, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    described = await in_slices(lambda group_id: _describe(node, group_id), request.group_ids)
    if request.include_authorized_operations:
        for group in described:
            if not group.error_code:
                group.authorized_operations = node.authorizer.authorized_operations(
                    call, ResourceType.GROUP, group.group_id
                )
    return ConsumerGroupDescribeResponse(groups=described)


async def _describe(node: "Needs", group_id: str) -> DescribedGroup:
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
