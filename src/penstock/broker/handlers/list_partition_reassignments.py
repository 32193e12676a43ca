"""API 46 ListPartitionReassignments, version 0: The partitions that are being moved to other brokers.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.controller import reassignments
from penstock.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithClustered, WithControlling, WithImage

    class Needs(WithClustered, WithControlling, WithImage, Protocol): ...


REQUEST = ListPartitionReassignmentsRequest
RESPONSE = ListPartitionReassignmentsResponse


def handle(
    node: "Needs", call: Call, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    if node.is_clustered:
        return node.controlling.requests.list_reassignments(request)
    return ListPartitionReassignmentsResponse(topics=reassignments.list_(node.image, request))
