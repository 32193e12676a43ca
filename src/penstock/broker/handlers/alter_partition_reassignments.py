"""API 45 AlterPartitionReassignments, versions 0–1: Move partitions to other brokers, or cancel a move.

On a broker without a cluster a move to itself is complete at once, and one to any other broker is refused.
Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.controller import reassignments
from penstock.model.errors import ErrorCode
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
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


def refuse(
    request: AlterPartitionReassignmentsRequest, code: ErrorCode, detail: str | None
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=detail,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index, error_code=code, error_message=detail
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
