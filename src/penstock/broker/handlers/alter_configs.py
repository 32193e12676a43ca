"""API 33 AlterConfigs, versions 0–2: Replace all configs of a resource. What the request does not name returns to its default.

Not done: log levels (broker loggers) and `alter.config.policy.class.name`.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.broker.requests.stores_first import refused_here
from penstock.model.errors import ErrorCode
from penstock.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithAuthorizer, WithConfigs

    class Asked(WithAuthorizer, WithConfigs, Protocol): ...


REQUEST = AlterConfigsRequest
RESPONSE = AlterConfigsResponse
PORTIONS = (Portions(("resources",), ("responses",)),)


async def before_forwarding(
    node: "Asked", call: Call, request: AlterConfigsRequest
) -> AlterConfigsResponse | None:
    """What the controller cannot see: whether this broker could use its new key and trust stores."""
    why = await refused_here(node, call, request.resources, validate_only=request.validate_only)
    return None if why is None else refuse(request, ErrorCode.INVALID_REQUEST, why)


async def handle(node: "WithConfigs", call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse:
    responses = await node.configs.alter(request.resources, validate_only=request.validate_only)
    return AlterConfigsResponse(responses=responses)


def refuse(request: AlterConfigsRequest, code: ErrorCode, detail: str | None) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=detail,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )
