"""Delegation tokens are made, renewed, ended, and removed when they have expired."""

from typing import Final, NamedTuple

from penstock.controller.decision import Decision
from penstock.metadata import znodes
from penstock.metadata.image import ClusterImage, TokenChanged
from penstock.metadata.tree import Create, Delete, Set, TreeOp
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.tokens import DelegationToken
from penstock.wire.messages.create_delegation_token import CreateDelegationTokenRequest

USER: Final = "User"
MAX_TOKEN_BYTES: Final = 65_536
"""Of a token's node in the tree: the names in it come from clients."""


class Lifetimes(NamedTuple):
    longest_ms: int
    """Of a token, however often it is renewed."""
    renewal_ms: int
    """How long it is good before it must be renewed."""


def owner_of(request: CreateDelegationTokenRequest, requester: str) -> str:
    if not request.owner_principal_name:
        return requester
    return f"{request.owner_principal_type}:{request.owner_principal_name}"


def create_token(
    request: CreateDelegationTokenRequest,
    *,
    requester: str,
    token_id: str,
    lifetimes: Lifetimes,
    now_ms: int,
    notify: bool,
) -> Decision[DelegationToken]:
    owner = owner_of(request, requester)
    if not owner.startswith(f"{USER}:") or any(each.principal_type != USER for each in request.renewers):
        raise ApiError(ErrorCode.INVALID_PRINCIPAL_TYPE, "The principals of a token must be of type User")
    longest_ms = lifetimes.longest_ms
    if request.max_lifetime_ms > 0:
        longest_ms = min(longest_ms, request.max_lifetime_ms)
    token = DelegationToken(
        token_id,
        owner,
        requester,
        tuple(f"{each.principal_type}:{each.principal_name}" for each in request.renewers),
        issued_ms=now_ms,
        max_ms=now_ms + longest_ms,
        expires_ms=now_ms + min(longest_ms, lifetimes.renewal_ms),
    )
    data = znodes.encode_token(token)
    if len(data) > MAX_TOKEN_BYTES:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "The token has too many renewers, or their names are too long"
        )
    ops: list[TreeOp] = [Create(znodes.token_path(token_id), data), *_notice(token_id, notify=notify)]
    return Decision([token], ops, [TokenChanged(token_id, token)])


def renew_token(
    token: DelegationToken | None,
    period_ms: int,
    *,
    requester: str,
    lifetimes: Lifetimes,
    now_ms: int,
    notify: bool,
) -> Decision[DelegationToken]:
    found = _found(token)
    _check_good(found, now_ms)
    _check_renewer(found, requester)
    renewal_ms = lifetimes.renewal_ms
    if period_ms > 0:
        renewal_ms = min(renewal_ms, period_ms)
    return _changed(found._replace(expires_ms=min(found.max_ms, now_ms + renewal_ms)), notify=notify)


def expire_token(
    token: DelegationToken | None, period_ms: int, *, requester: str, now_ms: int, notify: bool
) -> Decision[DelegationToken]:
    """Below 0 it is removed now."""
    found = _found(token)
    _check_renewer(found, requester)
    if period_ms < 0:
        return Decision(
            [found._replace(expires_ms=now_ms)],
            _removal(found.token_id, notify=notify),
            [TokenChanged(found.token_id, None)],
        )
    _check_good(found, now_ms)
    return _changed(found._replace(expires_ms=min(found.max_ms, now_ms + period_ms)), notify=notify)


def expired_tokens(image: ClusterImage, *, now_ms: int, notify: bool) -> Decision[DelegationToken]:
    """Removes them, and answers which they were."""
    expired = [token for token in image.tokens.values() if token.is_expired(now_ms)]
    ops = [op for token in expired for op in _removal(token.token_id, notify=notify)]
    return Decision(expired, ops, [TokenChanged(token.token_id, None) for token in expired])


def _found(token: DelegationToken | None) -> DelegationToken:
    if token is None:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return token


def _check_good(token: DelegationToken, now_ms: int) -> None:
    if token.is_expired(now_ms):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def _check_renewer(token: DelegationToken, requester: str) -> None:
    if not token.may_be_renewed_by(requester):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _changed(token: DelegationToken, *, notify: bool) -> Decision[DelegationToken]:
    path = znodes.token_path(token.token_id)
    ops: list[TreeOp] = [
        Set(path, znodes.encode_token(token)),
        *_notice(token.token_id, notify=notify),
    ]
    return Decision([token], ops, [TokenChanged(token.token_id, token)])


def _removal(token_id: str, *, notify: bool) -> list[TreeOp]:
    return [Delete(znodes.token_path(token_id)), *_notice(token_id, notify=notify)]


def _notice(token_id: str, *, notify: bool) -> list[TreeOp]:
    """For brokers of Apache Kafka, which watch for these nodes; ours watch the tokens themselves."""
    return [Create(znodes.TOKEN_CHANGE, token_id.encode(), sequence=True)] if notify else []
