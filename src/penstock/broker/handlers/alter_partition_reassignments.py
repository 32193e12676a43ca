"""API 45 AlterPartitionReassignments, versions 0–1: move partitions to other brokers, or call a move off.

On a broker without a cluster a move to itself is complete at once, and one to any other broker is refused.
Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.controller import reassignments
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithChanges, WithClustered, WithControlling, WithImage

    class Needs(WithChanges, WithClustered, WithControlling, WithImage, Protocol): ...


REQUEST = AlterPartitionReassignmentsRequest
RESPONSE = AlterPartitionReassignmentsResponse
PORTIONS = (Portions(("topics", "partitions"), ("responses", "partitions")),)


async def handle(
    node: "Needs", call: Call, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    if node.is_clustered:
        responses = await node.controlling.requests.alter_reassignments(request)
    else:
        responses = await node.changes.make(lambda: reassignments.alter(node.image, request))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, responses=responses
    )
