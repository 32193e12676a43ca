"""API 38 CreateDelegationToken, versions 1–3: A new token, with which its owner's programs can log in for a time.

Who asks must have logged in, and not with a token. A token of somebody else needs CreateTokens on that user.
Not done: nothing that Kafka documents.
"""

import logging
from typing import TYPE_CHECKING, Protocol

from penstock.broker.access.tokens import check_channel, is_allowed, requester
from penstock.broker.requests.call import Call
from penstock.controller.delegation_tokens import create_token, owner_of
from penstock.model.acl import Operation, ResourceType
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.tokens import DelegationToken
from penstock.security.tokens import ID_BYTES, token_id_of
from penstock.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithAuthorizer,
        WithChanges,
        WithClock,
        WithClustered,
        WithConfig,
        WithMarks,
        WithRandom,
        WithTokens,
    )

    class Needs(
        WithAuthorizer,
        WithChanges,
        WithClock,
        WithClustered,
        WithConfig,
        WithMarks,
        WithRandom,
        WithTokens,
        Protocol,
    ): ...


log = logging.getLogger("penstock.broker")

REQUEST = CreateDelegationTokenRequest
RESPONSE = CreateDelegationTokenResponse
NO_TIME = -1


def before_forwarding(
    node: "Needs", call: Call, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse | None:
    try:
        check_channel(node, call)
    except ApiError as error:
        return _refused(call, request, error)
    return None


async def handle(
    node: "Needs", call: Call, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    try:
        check_channel(node, call)
        _check_owner(node, call, request)
        node.tokens.check_on()
        (token,) = await node.changes.make_for_client(
            lambda: create_token(
                request,
                requester=requester(call),
                token_id=token_id_of(node.random.randbytes(ID_BYTES)),
                lifetimes=node.tokens.lifetimes,
                now_ms=node.clock.now_ms(),
                notify=node.is_clustered,
            )
        )
    except ApiError as error:
        return _refused(call, request, error)
    log.info("%s has made a delegation token for %s: %s", token.requester, token.owner, token.token_id)
    return _answer(node, token)


def _check_owner(node: "Needs", call: Call, request: CreateDelegationTokenRequest) -> None:
    owner = owner_of(request, requester(call))
    if owner != requester(call) and not is_allowed(
        node, call, Operation.CREATE_TOKENS, ResourceType.USER, owner, tells=True
    ):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)


def _answer(node: "Needs", token: DelegationToken) -> CreateDelegationTokenResponse:
    owner_type, _, owner_name = token.owner.partition(":")
    requester_type, _, requester_name = token.requester.partition(":")
    return CreateDelegationTokenResponse(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp_ms=token.issued_ms,
        expiry_timestamp_ms=token.expires_ms,
        max_timestamp_ms=token.max_ms,
        token_id=token.token_id,
        hmac=node.tokens.secret(token.token_id),
    )


def _refused(
    call: Call, request: CreateDelegationTokenRequest, error: ApiError
) -> CreateDelegationTokenResponse:
    owner_type, _, owner_name = owner_of(request, requester(call)).partition(":")
    requester_type, _, requester_name = requester(call).partition(":")
    return CreateDelegationTokenResponse(
        error_code=error.code,
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp_ms=NO_TIME,
        expiry_timestamp_ms=NO_TIME,
        max_timestamp_ms=NO_TIME,
    )
