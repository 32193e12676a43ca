"""Delegation tokens: made, renewed, ended and listed.

They are for programs that should act as somebody without having that one's password. Brokers talk about them only on listeners
where a client proves who it is.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import NamedTuple

from penstock.client.cluster_client import ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import UserError
from penstock.security.principals import Principal
from penstock.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from penstock.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from penstock.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from penstock.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

BROKERS_CHOICE = -1


class Token(NamedTuple):
    """For a login by SCRAM with `tokenauth=true`, `token_id` is the user name and `hmac` the password."""

    token_id: str
    hmac: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int

    def __repr__(self) -> str:
        return f"Token(token_id={self.token_id!r}, owner={str(self.owner)!r}, expires_ms={self.expires_ms})"


def parse_principal(text: str) -> Principal:
    kind, colon, name = text.strip().partition(":")
    if not (kind and colon and name):
        raise UserError(f"expected a string in format principalType:principalName but got {text}")
    return Principal(kind, name)


def create_token(
    client: ClusterClient,
    *,
    owner: Principal | None = None,
    renewers: Sequence[Principal] = (),
    max_lifetime_ms: int = BROKERS_CHOICE,
) -> Token:
    """Without an owner it is a token of whoever asks."""
    request = CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else owner.kind,
        owner_principal_name=None if owner is None else owner.name,
        renewers=[CreatableRenewers(principal_type=each.kind, principal_name=each.name) for each in renewers],
        max_lifetime_ms=max_lifetime_ms,
    )
    answer = client.ask_controller(request, CreateDelegationTokenResponse, codes=_codes)
    if answer.error_code:
        raise refused(answer.error_code)
    return Token(
        answer.token_id,
        base64.b64encode(answer.hmac).decode(),
        Principal(answer.principal_type, answer.principal_name),
        Principal(answer.token_requester_principal_type, answer.token_requester_principal_name),
        tuple(renewers),
        answer.issue_timestamp_ms,
        answer.expiry_timestamp_ms,
        answer.max_timestamp_ms,
    )


def renew_token(client: ClusterClient, hmac: str, period_ms: int = BROKERS_CHOICE) -> int:
    """Until when it is good now, in milliseconds since 1970."""
    request = RenewDelegationTokenRequest(hmac=_decoded(hmac), renew_period_ms=period_ms)
    answer = client.ask_controller(request, RenewDelegationTokenResponse, codes=_codes)
    if answer.error_code:
        raise refused(answer.error_code)
    return answer.expiry_timestamp_ms


def expire_token(client: ClusterClient, hmac: str, period_ms: int = -1) -> int:
    """Until when it is good now. A period below 0 removes it."""
    request = ExpireDelegationTokenRequest(hmac=_decoded(hmac), expiry_time_period_ms=period_ms)
    answer = client.ask_controller(request, ExpireDelegationTokenResponse, codes=_codes)
    if answer.error_code:
        raise refused(answer.error_code)
    return answer.expiry_timestamp_ms


def tokens(client: ClusterClient, owners: Sequence[Principal] = ()) -> list[Token]:
    """Those that the client may see; of these owners or renewers only, if some are named."""
    named = [
        DescribeDelegationTokenOwner(principal_type=owner.kind, principal_name=owner.name) for owner in owners
    ]
    answer = client.ask(DescribeDelegationTokenRequest(owners=named or None), DescribeDelegationTokenResponse)
    if answer.error_code:
        raise refused(answer.error_code)
    return [_token(each) for each in answer.tokens]


def _token(described: DescribedDelegationToken) -> Token:
    return Token(
        described.token_id,
        base64.b64encode(described.hmac).decode(),
        Principal(described.principal_type, described.principal_name),
        Principal(described.token_requester_principal_type, described.token_requester_principal_name),
        tuple(Principal(each.principal_type, each.principal_name) for each in described.renewers),
        described.issue_timestamp,
        described.expiry_timestamp,
        described.max_timestamp,
    )


def _codes(
    answer: CreateDelegationTokenResponse | RenewDelegationTokenResponse | ExpireDelegationTokenResponse,
) -> list[int]:
    return [answer.error_code]


def _decoded(hmac: str) -> bytes:
    try:
        return base64.b64decode(hmac, validate=True)
    except ValueError:
        raise UserError("the token's HMAC must be base64, as the token was printed") from None
