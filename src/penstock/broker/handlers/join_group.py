"""API 11 JoinGroup, versions 0–9: parked until the group's rebalance has everybody, see `groups/classic/join.py`.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

import penstock.groups.shard  # noqa: F401  (ahead of the first member, when handlers are loaded while idle)
from penstock.broker.coordinators.host import context_of
from penstock.broker.requests.call import Call
from penstock.broker.requests.later import NowOrLater
from penstock.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithGroups

REQUEST = JoinGroupRequest
RESPONSE = JoinGroupResponse


def handle(node: "WithGroups", call: Call, request: JoinGroupRequest) -> NowOrLater[JoinGroupResponse]:
    context = context_of(call)
    return node.groups.ask(
        request.group_id, lambda shard, ticket, now_ms: shard.join_group(request, context, ticket, now_ms)
    )
