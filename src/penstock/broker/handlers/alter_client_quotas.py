"""API 49 AlterClientQuotas, versions 0–1: Set and remove the quotas of users, client ids and IP addresses.

Not done: host names instead of IP addresses, which Kafka looks up.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.controller.client_quotas import alter_client_quotas
from penstock.model.errors import ErrorCode
from penstock.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ResponseEntryData,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithChanges, WithClustered, WithImage

    class Needs(WithChanges, WithClustered, WithImage, Protocol): ...


REQUEST = AlterClientQuotasRequest
RESPONSE = AlterClientQuotasResponse
PORTIONS = (Portions(("entries",), ("entries",)),)


async def handle(node: "Needs", call: Call, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    entries = await node.changes.make_for_client(
        lambda: alter_client_quotas(node.image, request, notify=node.is_clustered)
    )
    return AlterClientQuotasResponse(entries=entries)


def refuse(
    request: AlterClientQuotasRequest, code: ErrorCode, detail: str | None
) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            ResponseEntryData(error_code=code, error_message=detail, entity=entry.entity)
            for entry in request.entries
        ]
    )
