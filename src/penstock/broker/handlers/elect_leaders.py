"""API 43 ElectLeaders, versions 0–2: Run preferred or unclean elections. The controller decides.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.controller.elections import elect_leaders
from penstock.model.errors import ErrorCode
from penstock.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithChanges, WithClustered, WithControlling, WithImage

    class Needs(WithChanges, WithClustered, WithControlling, WithImage, Protocol): ...


REQUEST = ElectLeadersRequest
RESPONSE = ElectLeadersResponse
PORTIONS = (Portions(("topic_partitions", "partitions"), ("replica_election_results", "partition_result")),)


async def handle(node: "Needs", call: Call, request: ElectLeadersRequest) -> ElectLeadersResponse:
    if node.is_clustered:
        results = await node.controlling.requests.elect_leaders(request)
    else:
        results = await node.changes.make(lambda: elect_leaders(node.image, request))
    return ElectLeadersResponse(replica_election_results=results)


def refuse(request: ElectLeadersRequest, code: ErrorCode, detail: str | None) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(partition_id=index, error_code=code, error_message=detail)
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )
