"""API 11 JoinGroup, versions 0–9: Join a group of the classic protocol. The answer waits until the rebalance has all members.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Protocol

import penstock.groups.shard  # noqa: F401  (ahead of the first member, when handlers are loaded while idle)
from penstock.broker.access.guards.groups import member_context
from penstock.broker.requests.call import Call
from penstock.broker.requests.later import NowOrLater
from penstock.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithAuthorizer, WithGroups

    class Needs(WithAuthorizer, WithGroups, Protocol): ...


REQUEST = JoinGroupRequest
RESPONSE = JoinGroupResponse


def handle(node: "Needs", call: Call, request: JoinGroupRequest) -> NowOrLater[JoinGroupResponse]:
    context = member_context(node, call)
    return node.groups.ask(
        request.group_id, lambda shard, ticket, now_ms: shard.join_group(request, context, ticket, now_ms)
    )
