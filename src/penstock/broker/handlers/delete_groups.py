"""API 42 DeleteGroups, versions 0–2: Delete empty groups with their offsets. Each one is deleted or refused on its own.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.broker.requests.slices import in_slices
from penstock.model.errors import ApiError
from penstock.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithGroups

REQUEST = DeleteGroupsRequest
RESPONSE = DeleteGroupsResponse


async def handle(node: "WithGroups", call: Call, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    results = await in_slices(lambda group_id: _delete(node, group_id), request.groups_names)
    return DeleteGroupsResponse(results=results)


async def _delete(node: "WithGroups", group_id: str) -> DeletableGroupResult:
    try:
        result: DeletableGroupResult = await node.groups.answer(
            group_id, lambda shard, ticket, _: shard.delete_group(group_id, ticket)
        )
    except ApiError as refusal:
        return DeletableGroupResult(group_id=group_id, error_code=refusal.code)
    return result
