"""API 33 AlterConfigs, versions 0–2: replaces all overrides of a resource; what is not named goes back to its default."""

from typing import TYPE_CHECKING

from penstock.broker.call import Call
from penstock.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse

if TYPE_CHECKING:
    from penstock.broker.node import Node

REQUEST = AlterConfigsRequest
RESPONSE = AlterConfigsResponse


async def handle(node: "Node", call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse:
    responses = await node.configs.alter(request.resources, validate_only=request.validate_only)
    return AlterConfigsResponse(responses=responses)
