"""API 40 ExpireDelegationToken, versions 1–2: A token is good until another time, or no more.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.access.tokens import check_channel, requester
from penstock.broker.requests.call import Call
from penstock.controller.delegation_tokens import expire_token
from penstock.model.errors import ApiError
from penstock.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
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


REQUEST = ExpireDelegationTokenRequest
RESPONSE = ExpireDelegationTokenResponse
NO_TIME = -1


def before_forwarding(
    node: "Needs", call: Call, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse | None:
    try:
        check_channel(node, call)
    except ApiError as error:
        return _refused(error)
    return None


async def handle(
    node: "Needs", call: Call, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    tokens = node.tokens
    try:
        check_channel(node, call)
        tokens.check_on()
        (token,) = await node.changes.make_for_client(
            lambda: expire_token(
                tokens.with_secret(bytes(request.hmac)),
                request.expiry_time_period_ms,
                requester=requester(call),
                now_ms=node.clock.now_ms(),
                notify=node.is_clustered,
            )
        )
    except ApiError as error:
        return _refused(error)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=token.expires_ms)


def _refused(error: ApiError) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=NO_TIME)
