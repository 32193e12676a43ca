"""API 47 OffsetDelete, version 0: Delete committed offsets of topics that no member of the group subscribes to.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.broker.requests.later import NowOrLater
from penstock.broker.requests.portions import Portions
from penstock.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithGroups

REQUEST = OffsetDeleteRequest
RESPONSE = OffsetDeleteResponse
PORTIONS = (Portions(("topics", "partitions"), ("topics", "partitions")),)


def handle(node: "WithGroups", call: Call, request: OffsetDeleteRequest) -> NowOrLater[OffsetDeleteResponse]:
    return node.groups.ask(request.group_id, lambda shard, ticket, _: shard.delete_offsets(request, ticket))
