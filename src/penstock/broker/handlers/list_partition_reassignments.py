"""API 46 ListPartitionReassignments, version 0: the partitions that are on their way to other brokers."""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithClustered, WithControlling

    class Needs(WithClustered, WithControlling, Protocol): ...


REQUEST = ListPartitionReassignmentsRequest
RESPONSE = ListPartitionReassignmentsResponse


def handle(
    node: "Needs", call: Call, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    if not node.is_clustered:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "there is no other broker to move partitions to")
    response: ListPartitionReassignmentsResponse = node.controlling.list_reassignments(request)
    return response
