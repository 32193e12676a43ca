"""API 68 ConsumerGroupHeartbeat, versions 0–1: join, stay in and leave a group of the newer protocol. From version 1 on the
client chooses its member id, and may subscribe by regular expression.

Not done: assignors that are Java classes of the user's own.
"""

from typing import TYPE_CHECKING

from penstock.broker.coordinators.host import context_of
from penstock.broker.requests.call import Call
from penstock.broker.requests.later import NowOrLater
from penstock.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithGroups

REQUEST = ConsumerGroupHeartbeatRequest
RESPONSE = ConsumerGroupHeartbeatResponse


def handle(
    node: "WithGroups", call: Call, request: ConsumerGroupHeartbeatRequest
) -> NowOrLater[ConsumerGroupHeartbeatResponse]:
    context = context_of(call)
    return node.groups.ask(
        request.group_id,
        lambda shard, ticket, now_ms: shard.consumer_group_heartbeat(request, context, ticket, now_ms),
    )
