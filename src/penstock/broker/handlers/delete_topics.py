"""API 20 DeleteTopics, versions 1–6: by name or by id. The logs are renamed at once and removed in the background."""

from typing import TYPE_CHECKING

from penstock.broker.call import Call
from penstock.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

if TYPE_CHECKING:
    from penstock.broker.node import Node

REQUEST = DeleteTopicsRequest
RESPONSE = DeleteTopicsResponse


async def handle(node: "Node", call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=await node.topics.delete(request))
