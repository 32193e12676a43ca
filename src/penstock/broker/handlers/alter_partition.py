"""API 56 AlterPartition, versions 2–3: A leader asks the controller to change the set of in-sync replicas.

Not done: versions before 2, which have no topic ids.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithControlling

REQUEST = AlterPartitionRequest
RESPONSE = AlterPartitionResponse


async def handle(
    node: "WithControlling", call: Call, request: AlterPartitionRequest
) -> AlterPartitionResponse:
    response: AlterPartitionResponse = await node.controlling.requests.alter_partition(request)
    return response
