"""API 31 DeleteAcls, versions 1–3: Remove the access rules that filters match. The answer lists them, filter by filter.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.metadata import acls
from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.model.errors import ErrorCode
from penstock.wire.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithAuthorizer, WithChanges, WithClustered, WithImage

    class Needs(WithAuthorizer, WithChanges, WithClustered, WithImage, Protocol): ...


REQUEST = DeleteAclsRequest
RESPONSE = DeleteAclsResponse
PORTIONS = (Portions(("filters",), ("filter_results",)),)


async def handle(node: "Needs", call: Call, request: DeleteAclsRequest) -> DeleteAclsResponse:
    return DeleteAclsResponse(filter_results=await acls.delete(node, request.filters))


def refuse(request: DeleteAclsRequest, code: ErrorCode, detail: str | None) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=code, error_message=detail) for _ in request.filters
        ]
    )
