"""API 37 CreatePartitions, versions 0–3: topics grow; they never shrink."""

from typing import TYPE_CHECKING

from penstock.broker.call import Call
from penstock.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse

if TYPE_CHECKING:
    from penstock.broker.node import Node

REQUEST = CreatePartitionsRequest
RESPONSE = CreatePartitionsResponse


async def handle(node: "Node", call: Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(results=await node.topics.grow(request))
