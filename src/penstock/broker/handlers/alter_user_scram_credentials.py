"""API 51 AlterUserScramCredentials, version 0: Create and remove SCRAM users, and change their passwords.

A connection that is open stays open when its user is removed; its next login fails.
Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.controller.scram_credentials import alter_scram_credentials
from penstock.model.errors import ErrorCode
from penstock.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithChanges, WithClustered, WithImage

    class Needs(WithChanges, WithClustered, WithImage, Protocol): ...


REQUEST = AlterUserScramCredentialsRequest
RESPONSE = AlterUserScramCredentialsResponse


async def handle(
    node: "Needs", call: Call, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    results = await node.changes.make_for_client(
        lambda: alter_scram_credentials(node.image, request, notify=node.is_clustered)
    )
    return AlterUserScramCredentialsResponse(results=results)


def refuse(
    request: AlterUserScramCredentialsRequest, code: ErrorCode, detail: str | None
) -> AlterUserScramCredentialsResponse:
    names = dict.fromkeys(
        [each.name for each in request.deletions] + [each.name for each in request.upsertions]
    )
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=name, error_code=code, error_message=detail)
            for name in names
        ]
    )
