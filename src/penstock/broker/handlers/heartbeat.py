"""API 12 Heartbeat, versions 0–4: A member of a group of the classic protocol shows that it is alive.

While the group is being loaded, every heartbeat is accepted.
Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.coordinators.host import context_of
from penstock.broker.requests.call import Call
from penstock.broker.requests.later import Later, NowOrLater
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithGroups

REQUEST = HeartbeatRequest
RESPONSE = HeartbeatResponse


def handle(node: "WithGroups", call: Call, request: HeartbeatRequest) -> NowOrLater[HeartbeatResponse]:
    context = context_of(call)
    answered = node.groups.ask(
        request.group_id,
        lambda shard, ticket, now_ms: shard.heartbeat(request, context, ticket, now_ms),
        reads_only=True,
    )
    return Later(_patiently(answered)) if isinstance(answered, Later) else answered


async def _patiently(answered: Later[HeartbeatResponse]) -> HeartbeatResponse:
    try:
        return await answered
    except ApiError as refusal:
        if refusal.code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            raise
        return HeartbeatResponse()
