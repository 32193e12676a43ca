"""API 37 CreatePartitions, versions 0–3: topics grow; they never shrink.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.model.errors import ErrorCode
from penstock.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithTopics

REQUEST = CreatePartitionsRequest
RESPONSE = CreatePartitionsResponse
PORTIONS = (Portions(("topics",), ("results",)),)


async def handle(
    node: "WithTopics", call: Call, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(results=await node.topics.grow(request))


def refuse(request: CreatePartitionsRequest, code: ErrorCode, detail: str | None) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=detail)
            for topic in request.topics
        ]
    )
