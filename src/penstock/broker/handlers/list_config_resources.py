"""API 74 ListConfigResources, versions 0–1: The resources that have configs. Version 0 lists client metrics only.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.controller.configs import ENTITY_TYPES, ResourceType
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithConfigs

REQUEST = ListConfigResourcesRequest
RESPONSE = ListConfigResourcesResponse


def handle(
    node: "WithConfigs", call: Call, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    types = list(request.resource_types) if call.api_version >= 1 else [int(ResourceType.CLIENT_METRICS)]
    if any(kind not in ENTITY_TYPES and kind != ResourceType.BROKER_LOGGER for kind in types):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind, name in node.configs.resources(types)
        ]
    )
