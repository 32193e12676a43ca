"""API 43 ElectLeaders, versions 0–2: preferred and unclean elections, decided by the controller.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.controller.elections import elect_leaders
from penstock.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

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
