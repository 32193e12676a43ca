"""API 20 DeleteTopics, versions 1–6: Delete topics by name or by id. The logs are renamed at once and removed in the
background.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Final, Protocol

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
    from penstock.broker.facets import WithClientQuotas, WithTopics

    class Needs(WithClientQuotas, WithTopics, Protocol): ...


REQUEST = DeleteTopicsRequest
RESPONSE = DeleteTopicsResponse
PORTIONS = (
    Portions(("topics",), ("responses",)),
    Portions(("topic_names",), ("responses",)),
)

STRICT_FROM: Final = 5
"""From this version on a client knows THROTTLING_QUOTA_EXCEEDED; older ones are served, and then wait."""


async def handle(node: "Needs", call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    quota = node.client_quotas.mutations(call, strict_from=STRICT_FROM)
    responses = await node.topics.delete(request, quota.take)
    return DeleteTopicsResponse(responses=responses, throttle_time_ms=quota.throttle_time_ms)


def refuse(request: DeleteTopicsRequest, code: ErrorCode, detail: str | None) -> DeleteTopicsResponse:
    asked = [(topic.name, topic.topic_id) for topic in request.topics]
    asked += [(name, NO_ID) for name in request.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=detail)
            for name, topic_id in asked
        ]
    )
