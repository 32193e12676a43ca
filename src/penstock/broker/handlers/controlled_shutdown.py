"""API 7 ControlledShutdown, versions 0–3: A broker that is about to stop asks the controller to elect other leaders for its
partitions.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.wire.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithControlling

REQUEST = ControlledShutdownRequest
RESPONSE = ControlledShutdownResponse


async def handle(
    node: "WithControlling", call: Call, request: ControlledShutdownRequest
) -> ControlledShutdownResponse:
    response: ControlledShutdownResponse = await node.controlling.requests.controlled_shutdown(request)
    return response
