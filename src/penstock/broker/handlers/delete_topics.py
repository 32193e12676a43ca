"""API 20 DeleteTopics, versions 1–6: by name or by id. The logs are renamed at once and removed in the background.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.model.errors import ErrorCode
from penstock.model.ids import NO_ID
from penstock.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithTopics

REQUEST = DeleteTopicsRequest
RESPONSE = DeleteTopicsResponse
PORTIONS = (
    Portions(("topics",), ("responses",)),
    Portions(("topic_names",), ("responses",)),
)


async def handle(node: "WithTopics", call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=await node.topics.delete(request))


def refuse(request: DeleteTopicsRequest, code: ErrorCode, detail: str | None) -> DeleteTopicsResponse:
    asked = [(topic.name, topic.topic_id) for topic in request.topics]
    asked += [(name, NO_ID) for name in request.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=detail)
            for name, topic_id in asked
        ]
    )
