"""API 41 DescribeDelegationToken, versions 1–3: The tokens that the client may see, with their secrets.

Those are its own, those that it may renew, and those that a rule allows it to describe: the token itself, or all of its owner's.
Not done: nothing that Kafka documents.
"""

from asyncio import sleep
from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

from penstock.broker.access.tokens import check_channel, is_allowed, requester
from penstock.broker.requests.call import Call
from penstock.broker.requests.slices import GIVE_WAY_EVERY
from penstock.model.acl import Operation, ResourceType
from penstock.model.tokens import DelegationToken
from penstock.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithAuthorizer, WithConfig, WithImage, WithMarks, WithTokens

    class Needs(WithAuthorizer, WithConfig, WithImage, WithMarks, WithTokens, Protocol): ...


REQUEST = DescribeDelegationTokenRequest
RESPONSE = DescribeDelegationTokenResponse


async def handle(
    node: "Needs", call: Call, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """A null list of owners asks for all; an empty one for none."""
    check_channel(node, call)
    node.tokens.check_on()
    owners = None
    if request.owners is not None:
        owners = [f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners]
    found = []
    for number, token in enumerate(list(node.image.tokens.values()), 1):
        if _is_shown(node, call, token, owners):
            found.append(_described(node, token))
        if number % GIVE_WAY_EVERY == 0:
            await sleep(0)
    return DescribeDelegationTokenResponse(tokens=found)


def _is_shown(node: "Needs", call: Call, token: DelegationToken, owners: Collection[str] | None) -> bool:
    if owners is not None and not any(map(token.concerns, owners)):
        return False
    return token.concerns(requester(call)) or any(
        is_allowed(node, call, operation, kind, name, tells=False)
        for operation, kind, name in (
            (Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id),
            (Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner),
        )
    )


def _described(node: "Needs", token: DelegationToken) -> DescribedDelegationToken:
    owner_type, _, owner_name = token.owner.partition(":")
    requester_type, _, requester_name = token.requester.partition(":")
    renewers = [renewer.partition(":") for renewer in token.renewers]
    return DescribedDelegationToken(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=node.tokens.secret(token.token_id),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
            for kind, _, name in renewers
        ],
    )
