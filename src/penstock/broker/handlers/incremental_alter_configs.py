"""API 44 IncrementalAlterConfigs, versions 0–1: Set, delete, append to or subtract from single configs.

Not done: log levels (broker loggers) and `alter.config.policy.class.name`.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.broker.requests.stores_first import refused_here
from penstock.model.errors import ErrorCode
from penstock.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithAuthorizer, WithConfigs

    class Asked(WithAuthorizer, WithConfigs, Protocol): ...


REQUEST = IncrementalAlterConfigsRequest
RESPONSE = IncrementalAlterConfigsResponse
PORTIONS = (Portions(("resources",), ("responses",)),)


async def before_forwarding(
    node: "Asked", call: Call, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse | None:
    """What the controller cannot see: whether this broker could use its new key and trust stores."""
    why = await refused_here(node, call, request.resources, validate_only=request.validate_only)
    return None if why is None else refuse(request, ErrorCode.INVALID_REQUEST, why)


async def handle(
    node: "WithConfigs", call: Call, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    responses = await node.configs.alter_incrementally(request.resources, validate_only=request.validate_only)
    return IncrementalAlterConfigsResponse(responses=responses)


def refuse(
    request: IncrementalAlterConfigsRequest, code: ErrorCode, detail: str | None
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
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
