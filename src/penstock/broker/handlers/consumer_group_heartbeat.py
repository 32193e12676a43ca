"""API 68 ConsumerGroupHeartbeat, versions 0–1: Join, stay in and leave a group of the newer protocol (KIP-848). From version 1
on the client chooses its member id and may subscribe by regular expression. Refused while a member of the cluster does not know
such groups (`group.version` 0), as a broker of Apache Kafka in ZooKeeper mode: it could not coordinate them.

Not done: assignors that are Java classes of your own.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.access.guards.groups import member_context
from penstock.broker.requests.call import Call
from penstock.broker.requests.later import NowOrLater
from penstock.controller.features import GROUP_VERSION
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithAuthorizer, WithClustered, WithGroups, WithMembership

    class Needs(WithAuthorizer, WithClustered, WithGroups, WithMembership, Protocol): ...


REQUEST = ConsumerGroupHeartbeatRequest
RESPONSE = ConsumerGroupHeartbeatResponse


def handle(
    node: "Needs", call: Call, request: ConsumerGroupHeartbeatRequest
) -> NowOrLater[ConsumerGroupHeartbeatResponse]:
    if node.is_clustered and not node.membership.members.features[1].get(GROUP_VERSION):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "not every broker of the cluster knows such groups")
    context = member_context(node, call)
    return node.groups.ask(
        request.group_id,
        lambda shard, ticket, now_ms: shard.consumer_group_heartbeat(request, context, ticket, now_ms),
    )
