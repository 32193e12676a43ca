"""API 14 SyncGroup, versions 0–5: The group's leader sends the assignment; the other members wait for their part of it.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.coordinators.host import context_of
from penstock.broker.requests.call import Call
from penstock.broker.requests.later import NowOrLater
from penstock.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithGroups

REQUEST = SyncGroupRequest
RESPONSE = SyncGroupResponse


def handle(node: "WithGroups", call: Call, request: SyncGroupRequest) -> NowOrLater[SyncGroupResponse]:
    context = context_of(call)
    return node.groups.ask(
        request.group_id, lambda shard, ticket, now_ms: shard.sync_group(request, context, ticket, now_ms)
    )
