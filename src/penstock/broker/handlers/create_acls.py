"""API 30 CreateAcls, versions 1–3: Make access rules. One that is there already is no error.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.metadata import acls
from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.model.errors import ErrorCode
from penstock.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithAuthorizer, WithChanges, WithClustered, WithImage

    class Needs(WithAuthorizer, WithChanges, WithClustered, WithImage, Protocol): ...


REQUEST = CreateAclsRequest
RESPONSE = CreateAclsResponse
PORTIONS = (Portions(("creations",), ("results",)),)


async def handle(node: "Needs", call: Call, request: CreateAclsRequest) -> CreateAclsResponse:
    return CreateAclsResponse(results=await acls.create(node, request.creations))


def refuse(request: CreateAclsRequest, code: ErrorCode, detail: str | None) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[AclCreationResult(error_code=code, error_message=detail) for _ in request.creations]
    )
