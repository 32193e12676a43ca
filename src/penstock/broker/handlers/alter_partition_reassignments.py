"""API 45 AlterPartitionReassignments, versions 0–1: move partitions to other brokers, or call a move off."""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithClustered, WithControlling

    class Needs(WithClustered, WithControlling, Protocol): ...


REQUEST = AlterPartitionReassignmentsRequest
RESPONSE = AlterPartitionReassignmentsResponse


async def handle(
    node: "Needs", call: Call, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    if not node.is_clustered:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "there is no other broker to move partitions to")
    response: AlterPartitionReassignmentsResponse = await node.controlling.alter_reassignments(request)
    return response
