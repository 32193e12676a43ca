"""API 16 ListGroups, versions 0–5: The groups that this broker coordinates, filtered by state and type.

Not done: share and streams groups.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithGroups

REQUEST = ListGroupsRequest
RESPONSE = ListGroupsResponse


async def handle(node: "WithGroups", call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
    listed = await node.groups.answer_of_all(lambda shard, ticket, _: shard.list_groups(request, ticket))
    return ListGroupsResponse(groups=[group for groups in listed for group in groups])
