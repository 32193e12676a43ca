"""Delegation tokens on this broker: their secrets, and what a login with one is checked against.

Both are made of the token's id and `delegation.token.secret.key`, and live in memory only. A login's credential is made in a
thread when the broker hears of a token. If somebody logs in before that is done, it is made on the spot, once for each mechanism.
"""

import logging
from asyncio import Future
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.requests.call import Call
from penstock.broker.requests.forwarding import is_relayed
from penstock.config.layers import BrokerConfig
from penstock.controller.delegation_tokens import Lifetimes
from penstock.metadata.image import ClusterImage
from penstock.model.acl import Operation, ResourceType
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.tokens import DelegationToken
from penstock.net.endpoints import security_protocol
from penstock.runtime.clock import Clock
from penstock.runtime.pools import Pools
from penstock.security.principals import ANONYMOUS
from penstock.security.scram import MECHANISMS, Credential
from penstock.security.tokens import salt_of, secret_of, token_credential, token_decoy

if TYPE_CHECKING:
    from penstock.broker.facets import WithAuthorizer, WithConfig, WithMarks

    class Needs(WithAuthorizer, WithConfig, WithMarks, Protocol): ...


log = logging.getLogger("penstock.broker")


def requester(call: Call) -> str:
    """Who asks about tokens, as in `User:alice`."""
    return str(call.principal)


def is_allowed(
    node: "WithAuthorizer", call: Call, operation: Operation, kind: ResourceType, name: str, *, tells: bool
) -> bool:
    """Whether a rule lets whoever asks do so."""
    return node.authorizer.allows(call, operation, kind, name, tells=tells)


def check_channel(node: "Needs", call: Call) -> None:
    """ApiError where nobody has proven who asks, or where a token is used to get at others. What another broker has forwarded
    it has checked."""
    if call.client is not None or is_relayed(node, call):
        return
    connection = call.connection
    protocol = security_protocol(connection.listener_name, node.config.get("listener.security.protocol.map"))
    is_unknown = protocol == "SSL" and connection.principal == ANONYMOUS
    by_token = connection.login is not None and connection.login.token is not None
    if protocol == "PLAINTEXT" or is_unknown or by_token:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


class DelegationTokens:
    def __init__(self, config: BrokerConfig, image: ClusterImage, clock: Clock, pools: Pools) -> None:
        self._key: Final[str] = config.get("delegation.token.secret.key") or ""
        self._image = image
        self._clock = clock
        self._pools = pools
        self._ids: dict[bytes, str] = {}
        """By secret."""
        self._credentials: dict[tuple[str, str], Credential] = {}
        """By id and mechanism."""
        self.lifetimes: Final = Lifetimes(
            config.get("delegation.token.max.lifetime.ms"), config.get("delegation.token.expiry.time.ms")
        )
        for token_id in image.tokens:
            self.changed(token_id)

    @property
    def is_on(self) -> bool:
        return bool(self._key)

    def check_on(self) -> None:
        if not self.is_on:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)

    def changed(self, token_id: str) -> None:
        """The image has it anew, or no more."""
        if not self.is_on:
            return
        secret = self.secret(token_id)
        if token_id not in self._image.tokens:
            self._ids.pop(secret, None)
            for mechanism in MECHANISMS:
                self._credentials.pop((token_id, mechanism), None)
        elif secret not in self._ids:
            self._ids[secret] = token_id
            for mechanism in MECHANISMS:
                made = self._pools.logins.run(
                    token_credential, mechanism, secret, salt_of(mechanism, token_id, self._key.encode())
                )
                made.add_done_callback(partial(self._made, token_id, mechanism))

    def _made(self, token_id: str, mechanism: str, made: "Future[Credential]") -> None:
        if not made.cancelled() and made.exception() is None and token_id in self._image.tokens:
            self._credentials.setdefault((token_id, mechanism), made.result())

    def secret(self, token_id: str) -> bytes:
        return secret_of(token_id, self._key)

    def with_secret(self, secret: bytes) -> DelegationToken | None:
        token_id = self._ids.get(secret)
        return None if token_id is None else self._image.tokens.get(token_id)

    def usable(self, token_id: str) -> DelegationToken | None:
        """With which somebody may log in now."""
        token = self._image.tokens.get(token_id) if self.is_on else None
        return None if token is None or token.is_expired(self._clock.now_ms()) else token

    def credential(self, mechanism: str, token_id: str) -> Credential | None:
        if self.usable(token_id) is None:
            return None
        found = self._credentials.get((token_id, mechanism))
        if found is None:
            salt = salt_of(mechanism, token_id, self._key.encode())
            found = self._credentials[token_id, mechanism] = token_credential(
                mechanism, self.secret(token_id), salt
            )
        return found

    def decoy(self, mechanism: str, token_id: str, key: bytes) -> Credential:
        """Of an id that no usable token has. `key` counts where there are no tokens at all."""
        return token_decoy(mechanism, token_id, self._key.encode() or key)
