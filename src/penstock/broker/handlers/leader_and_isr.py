"""API 4 LeaderAndIsr, versions 5–7: The controller tells this broker which partitions it leads and which it follows.

Not done: versions before 5, which have no topic ids; requests of a KRaft controller.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithRoles

REQUEST = LeaderAndIsrRequest
RESPONSE = LeaderAndIsrResponse


async def handle(node: "WithRoles", call: Call, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    response: LeaderAndIsrResponse = await node.roles.lead_or_follow(request)
    return response
