"""API 19 CreateTopics, versions 2–7: Create topics. Each one is created or refused on its own; the answer holds the configs of
the new topic.

Not done: `create.topic.policy.class.name`.
"""

from typing import TYPE_CHECKING, Final, Protocol

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
    from penstock.broker.facets import WithClientQuotas, WithConfigs, WithTopics

    class Needs(WithClientQuotas, WithConfigs, WithTopics, Protocol): ...


REQUEST = CreateTopicsRequest
RESPONSE = CreateTopicsResponse
PORTIONS = (Portions(("topics",), ("topics",)),)

STRICT_FROM: Final = 6
"""From this version on a client knows THROTTLING_QUOTA_EXCEEDED; older ones are served, and then wait."""


async def handle(node: "Needs", call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse:
    quota = node.client_quotas.mutations(call, strict_from=STRICT_FROM)
    results = await node.topics.create(request, quota.take)
    if call.api_version >= 5 and not request.validate_only:
        for result in results:
            if result.error_code == 0:
                _add_configs(node, result)
    return CreateTopicsResponse(topics=results, throttle_time_ms=quota.throttle_time_ms)


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
