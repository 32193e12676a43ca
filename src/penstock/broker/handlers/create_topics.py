"""API 19 CreateTopics, versions 2–7: each topic is made or refused on its own; the answer holds the configs it got.

Not done: `create.topic.policy.class.name`.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.controller.configs import ResourceType
from penstock.model.errors import ErrorCode
from penstock.wire.messages.create_topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithConfigs, WithTopics

    class Needs(WithConfigs, WithTopics, Protocol): ...


REQUEST = CreateTopicsRequest
RESPONSE = CreateTopicsResponse
PORTIONS = (Portions(("topics",), ("topics",)),)


async def handle(node: "Needs", call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse:
    results = await node.topics.create(request)
    if call.api_version >= 5 and not request.validate_only:
        for result in results:
            if result.error_code == 0:
                _add_configs(node, result)
    return CreateTopicsResponse(topics=results)


def _add_configs(node: "Needs", result: CreatableTopicResult) -> None:
    result.configs = [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in node.configs.describe(ResourceType.TOPIC, result.name, None)
    ]


def refuse(request: CreateTopicsRequest, code: ErrorCode, detail: str | None) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=topic.name, error_code=code, error_message=detail)
            for topic in request.topics
        ]
    )
