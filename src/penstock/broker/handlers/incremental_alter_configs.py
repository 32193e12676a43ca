"""API 44 IncrementalAlterConfigs, versions 0–1: set, delete, append to and subtract from single options.

Not done: log levels (broker loggers) and `alter.config.policy.class.name`.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.model.errors import ErrorCode
from penstock.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithConfigs

REQUEST = IncrementalAlterConfigsRequest
RESPONSE = IncrementalAlterConfigsResponse
PORTIONS = (Portions(("resources",), ("responses",)),)


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
