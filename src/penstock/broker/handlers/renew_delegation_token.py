"""API 39 RenewDelegationToken, versions 1–2: A token is good for longer.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.access.tokens import check_channel, requester
from penstock.broker.requests.call import Call
from penstock.controller.delegation_tokens import renew_token
from penstock.model.errors import ApiError
from penstock.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithAuthorizer,
        WithChanges,
        WithClock,
        WithClustered,
        WithConfig,
        WithMarks,
        WithTokens,
    )

    class Needs(
        WithAuthorizer, WithChanges, WithClock, WithClustered, WithConfig, WithMarks, WithTokens, Protocol
    ): ...


REQUEST = RenewDelegationTokenRequest
RESPONSE = RenewDelegationTokenResponse
NO_TIME = -1


def before_forwarding(
    node: "Needs", call: Call, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse | None:
    try:
        check_channel(node, call)
    except ApiError as error:
        return _refused(error)
    return None


async def handle(
    node: "Needs", call: Call, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    tokens = node.tokens
    try:
        check_channel(node, call)
        tokens.check_on()
        (token,) = await node.changes.make_for_client(
            lambda: renew_token(
                tokens.with_secret(bytes(request.hmac)),
                request.renew_period_ms,
                requester=requester(call),
                lifetimes=tokens.lifetimes,
                now_ms=node.clock.now_ms(),
                notify=node.is_clustered,
            )
        )
    except ApiError as error:
        return _refused(error)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=token.expires_ms)


def _refused(error: ApiError) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=NO_TIME)
