"""OAUTHBEARER on one listener: who comes with a token that the identity provider has signed.

The message is read and the signature checked in a thread; in between the key is looked up (`bearer_keys`). A refused token is
answered as RFC 7628 has it: with JSON first, and the login fails when the client has heard that.
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.access.bearer_keys import URL, BearerKeys
from penstock.broker.requests.later import Later, NowOrLater
from penstock.credentials.signed_tokens import Rules, check, has_library, key_id
from penstock.security.bearer import (
    HEARD,
    MAX_TOKEN_BYTES,
    OAUTHBEARER,
    REFUSED,
    TOO_LONG,
    BadMessage,
    BadToken,
    Bearer,
    FirstMessage,
    UnsecuredRules,
    check_unsecured,
    parse_first,
)
from penstock.security.jaas import LoginModule
from penstock.security.sasl import LoginFailed, invalid_credentials
from penstock.security.scram import shown

if TYPE_CHECKING:
    from penstock.broker.facets import WithClock, WithLoop, WithPools
    from penstock.runtime.pools import Pools

    class Needs(WithClock, WithLoop, WithPools, Protocol): ...


log = logging.getLogger("penstock.broker.logins")

_PREFIX: Final = "sasl.oauthbearer."
Number = Callable[[str], int]


class Checks(Protocol):
    """What a listener knows of tokens."""

    pools: "Pools"

    async def bearer(self, token: str) -> Bearer:
        """Who it is; BadToken otherwise."""


class BearerExchange:
    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._is_refused = False
        self.user: str | None = None
        self.is_token = False
        self.good_until_ms: int | None = None
        self.refusal: str | None = None

    def step(self, token: bytes) -> NowOrLater[bytes]:
        if self._is_refused:
            # Whatever the client says now: it should be HEARD. Why it was refused is in the log already.
            raise LoginFailed(REFUSED if token == HEARD else invalid_credentials(OAUTHBEARER), "")
        if len(token) > MAX_TOKEN_BYTES:  # not even for a thread: it would wait there
            raise LoginFailed(invalid_credentials(OAUTHBEARER), TOO_LONG)
        return Later(self._first(token))

    async def _first(self, token: bytes) -> bytes:
        try:
            said: FirstMessage = await self._checks.pools.logins.run(parse_first, token)
        except BadMessage as error:
            raise LoginFailed(invalid_credentials(OAUTHBEARER), str(error)) from None
        try:
            bearer = await self._checks.bearer(said.token)
        except BadToken as error:
            self._is_refused = True
            self.refusal = f"the token is refused: {error}"
            return REFUSED.encode()
        if said.authorization_id not in ("", bearer.name):
            raise LoginFailed(
                f"Authentication failed: Client requested an authorization id ({said.authorization_id}) that is "
                f"different from the token's principal name ({bearer.name})",
                f"{shown(bearer.name)} asks to act as somebody else",
            )
        self.user, self.good_until_ms = bearer.name, bearer.expires_ms
        return b""


class SignedChecks:
    def __init__(self, pools: "Pools", keys: BearerKeys, rules: Rules) -> None:
        self.pools = pools
        self._keys = keys
        self._rules = rules

    async def bearer(self, token: str) -> Bearer:
        named: str | None = await self.pools.logins.run(key_id, token)
        key = await self._keys.find(named)
        if key is None:
            raise BadToken("it is signed with a key that is not known")
        found: Bearer = await self.pools.logins.run(check, token, key, self._rules)
        return found


class UnsecuredChecks:
    def __init__(self, node: "Needs", rules: UnsecuredRules) -> None:
        self.pools = node.pools
        self._clock = node.clock
        self._rules = rules

    async def bearer(self, token: str) -> Bearer:
        found: Bearer = await self.pools.logins.run(check_unsecured, token, self._rules, self._clock.now_ms())
        return found


class BearerLogins:
    """Of all listeners: those with the same keys share them."""

    def __init__(self, node: "Needs") -> None:
        self._node = node
        self._keys: dict[tuple[str, float, float, float], BearerKeys] = {}

    def of_listener(
        self, listener: str, given: Mapping[str, str], number: Number, module: LoginModule | None
    ) -> Callable[[], BearerExchange]:
        """`number` gives an option as a number. ValueError, which names the option. Reads files: for the start."""
        url = given.get(URL, "").strip()
        if url:
            if not has_library():
                raise ValueError(f"{URL}: tokens are checked with PyJWT: pip install 'penstock[oauth]'")
            return partial(BearerExchange, self._signed(url, given, number))
        rules = UnsecuredRules.of(module.options if module is not None else {})
        if rules is None:
            raise ValueError(
                f"{URL}: must be given for {OAUTHBEARER}: where the keys are that tokens are checked with. (For "
                'trials without keys put unsecuredValidatorPrincipalClaimName="sub" into oauthbearer.sasl.jaas.config)'
            )
        log.warning(
            "listener %s takes tokens without a signature: everybody can say to be anybody (%s is not set)",
            listener,
            URL,
        )
        return partial(BearerExchange, UnsecuredChecks(self._node, rules))

    def _signed(self, url: str, given: Mapping[str, str], number: Number) -> SignedChecks:
        if not url.startswith(("https://", "http://", "file:")):
            raise ValueError(f"{URL}: '{url}' must begin with https://, http:// or file:")
        refresh_s, backoff_s, max_backoff_s = (
            number(f"{_PREFIX}jwks.endpoint.{name}.ms") / 1000
            for name in ("refresh", "retry.backoff", "retry.backoff.max")
        )
        keys = self._keys.get((url, refresh_s, backoff_s, max_backoff_s))
        if keys is None:
            node = self._node
            keys = BearerKeys(
                node.loop,
                node.pools.keys,
                url,
                refresh_s=refresh_s,
                backoff_s=backoff_s,
                max_backoff_s=max_backoff_s,
            )
            keys.start()
            self._keys[url, refresh_s, backoff_s, max_backoff_s] = keys
        audience = given.get(f"{_PREFIX}expected.audience", "").split(",")
        rules = Rules(
            given.get(f"{_PREFIX}expected.issuer", "").strip(),
            tuple(one.strip() for one in audience if one.strip()),
            given.get(f"{_PREFIX}sub.claim.name", "").strip() or "sub",
            given.get(f"{_PREFIX}scope.claim.name", "").strip() or "scope",
            number(f"{_PREFIX}clock.skew.seconds"),
        )
        return SignedChecks(self._node.pools, keys, rules)

    def stop(self) -> None:
        for keys in self._keys.values():
            keys.stop()
