"""API 13 LeaveGroup, versions 0–5: One member (before version 3) or several leave a group of the classic protocol.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.coordinators.host import context_of
from penstock.broker.requests.call import Call
from penstock.broker.requests.later import NowOrLater
from penstock.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithGroups

REQUEST = LeaveGroupRequest
RESPONSE = LeaveGroupResponse


def handle(node: "WithGroups", call: Call, request: LeaveGroupRequest) -> NowOrLater[LeaveGroupResponse]:
    context = context_of(call)
    return node.groups.ask(
        request.group_id, lambda shard, ticket, now_ms: shard.leave_group(request, context, ticket, now_ms)
    )
