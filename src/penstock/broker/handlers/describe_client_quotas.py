"""API 48 DescribeClientQuotas, versions 0–1: Look up the quotas of users, client ids and IP addresses.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.controller.client_quotas import describe_client_quotas
from penstock.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithImage

REQUEST = DescribeClientQuotasRequest
RESPONSE = DescribeClientQuotasResponse


def handle(
    node: "WithImage", call: Call, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    found = describe_client_quotas(node.image, request.components, strict=request.strict)
    return DescribeClientQuotasResponse(
        entries=[
            EntryData(
                entity=[
                    EntityData(entity_type=kind, entity_name=name)
                    for kind, name in sorted(entity, reverse=True)  # the user before the client id
                ],
                values=[ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in found
        ],
    )
