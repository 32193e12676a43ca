"""API 6 UpdateMetadata, versions 7–8: The controller tells this broker what to answer its clients: brokers, leaders, replicas.

Not done: versions before 7, which have no topic ids; requests of a KRaft controller.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithRoles

REQUEST = UpdateMetadataRequest
RESPONSE = UpdateMetadataResponse


async def handle(node: "WithRoles", call: Call, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
    response: UpdateMetadataResponse = await node.roles.update(request)
    return response
