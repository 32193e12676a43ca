"""API 37 CreatePartitions, versions 0–3: Add partitions to topics.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.model.errors import ErrorCode
from penstock.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithClientQuotas, WithTopics

    class Needs(WithClientQuotas, WithTopics, Protocol): ...


REQUEST = CreatePartitionsRequest
RESPONSE = CreatePartitionsResponse
PORTIONS = (Portions(("topics",), ("results",)),)

STRICT_FROM: Final = 3
"""From this version on a client knows THROTTLING_QUOTA_EXCEEDED; older ones are served, and then wait."""


async def handle(node: "Needs", call: Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    quota = node.client_quotas.mutations(call, strict_from=STRICT_FROM)
    results = await node.topics.grow(request, quota.take)
    return CreatePartitionsResponse(results=results, throttle_time_ms=quota.throttle_time_ms)


def refuse(request: CreatePartitionsRequest, code: ErrorCode, detail: str | None) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=detail)
            for topic in request.topics
        ]
    )
