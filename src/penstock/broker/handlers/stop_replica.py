"""API 5 StopReplica, versions 3–4: The controller removes replicas from this broker, with their files if it says so.

Not done: versions before 3; requests of a KRaft controller.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithRoles

REQUEST = StopReplicaRequest
RESPONSE = StopReplicaResponse


async def handle(node: "WithRoles", call: Call, request: StopReplicaRequest) -> StopReplicaResponse:
    response: StopReplicaResponse = await node.roles.stop_replicas(request)
    return response
