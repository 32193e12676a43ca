"""Logins on one listener: the gate before a connection is served, and what SaslHandshake and SaslAuthenticate do.

Before a client has logged in, nothing is answered but ApiVersions, SaslHandshake and SaslAuthenticate, and no frame may be larger
than `sasl.server.max.receive.size`. After a handshake of version 0 the client's tokens come as frames of their own, without a
header, as clients before Kafka 1.0 send them.

A failed login is answered after `connection.failed.authentication.delay.ms`, and then the connection is closed: who guesses
passwords waits each time. Where `connections.max.reauth.ms` is set, a login ends after that time: the client must log in again
before, as the same user and with the same mechanism, or its next request closes the connection.
"""

import logging
import secrets
from asyncio import sleep
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.requests.later import Later, NowOrLater
from penstock.config.broker_options import BROKER_OPTIONS
from penstock.metadata.image import USERS
from penstock.model.api_keys import ApiKey
from penstock.model.errors import ErrorCode
from penstock.model.tokens import DelegationToken
from penstock.net.connection import Connection, Deferred, Receiver
from penstock.net.output import Part
from penstock.security.bearer import OAUTHBEARER
from penstock.security.jaas import BadJaas, LoginModule, parse_login
from penstock.security.kerberos import GSSAPI
from penstock.security.principals import USER, Principal
from penstock.security.sasl import PLAIN, Exchange, LoginFailed, PlainExchange, ScramLogin
from penstock.security.scram import DEFAULT_ITERATIONS, Credential, parse_credential, shown
from penstock.security.scram import MECHANISMS as SCRAM_MECHANISMS
from penstock.wire.errors import Malformed
from penstock.wire.framing import SIZE, read_header

if TYPE_CHECKING:
    from penstock.broker.access.bearer_login import BearerLogins
    from penstock.broker.facets import (
        WithAnswers,
        WithClock,
        WithConfig,
        WithDecoys,
        WithImage,
        WithLoop,
        WithPools,
        WithTokens,
    )

    class Needs(
        WithAnswers, WithClock, WithConfig, WithDecoys, WithImage, WithLoop, WithPools, WithTokens, Protocol
    ): ...


log = logging.getLogger("penstock.broker.logins")

_BEFORE_LOGIN: Final = frozenset(
    map(int, (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE))
)
NONCE_BYTES: Final = 24
MAX_REQUESTS: Final = 50
"""Of a client before it is in. A login takes three or four, with Kerberos a few more."""
MAX_WAITING_BYTES: Final = 16 * 1024 * 1024
"""Of tokens that wait for a thread, or for keys, on a listener."""
REAUTH: Final = "connections.max.reauth.ms"
MECHANISMS: Final = (PLAIN, *SCRAM_MECHANISMS, OAUTHBEARER, GSSAPI)
_STAND_IN: Final = str(Credential(bytes(24), bytes(64), bytes(64), DEFAULT_ITERATIONS))
"""Read where a user has no credential, and good for nothing."""


class LoginExchange(Protocol):
    """An `Exchange` whose answer may come later: it fetches something, or computes in a thread."""

    user: str | None
    is_token: bool
    good_until_ms: int | None

    def step(self, token: bytes) -> NowOrLater[bytes]: ...


Begin = Callable[[], Exchange | LoginExchange]
"""Begins an attempt with one mechanism."""


class Login:
    """Of one connection."""

    __slots__ = (
        "_exchange",
        "_is_busy",
        "_logins",
        "expires_ms",
        "has_raw_tokens",
        "is_done",
        "is_refused",
        "lifetime_ms",
        "mechanism",
        "requests",
        "token",
    )

    def __init__(self, logins: "ListenerLogins") -> None:
        self._logins = logins
        self._exchange: Exchange | LoginExchange | None = None
        self._is_busy = False
        """Whether the answer to the client's last token is still to come."""
        self.requests = 0
        """Before the client was in."""
        self.mechanism: str | None = None
        self.has_raw_tokens = False
        self.is_done = False
        self.is_refused = False
        """It failed: whatever comes behind it is not looked at any more."""
        self.expires_ms: int | None = None
        self.lifetime_ms = 0
        """How long the login was good for when it was made; 0: for as long as the connection lasts."""
        self.token: DelegationToken | None = None
        """With which the client has logged in, if it did so with one."""

    @property
    def is_settled(self) -> bool:
        """The client is in and is not logging in again. As in Kafka, who is in for as long as the connection lasts may not."""
        return self.is_done and self._exchange is None

    def handshake(
        self, connection: Connection, mechanism: str, version: int
    ) -> tuple[ErrorCode, Sequence[str]]:
        """The error code, and the mechanisms of this listener. With a mechanism that it has not, the connection ends."""
        offered = self._logins.mechanisms
        if self._exchange is not None or (self.is_done and self.expires_ms is None):
            return ErrorCode.ILLEGAL_SASL_STATE, ()
        begin = offered.get(mechanism)
        if begin is None:
            self._logins.tell(connection, f"it asks for {shown(mechanism)}, which this listener has not")
            self._refused(connection)
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM, list(offered)
        if self.is_done and mechanism != self.mechanism:
            self._logins.tell(connection, f"it was in by {self.mechanism}, and would go on with {mechanism}")
            self._refused(connection)
            return ErrorCode.ILLEGAL_SASL_STATE, ()
        self.mechanism = mechanism
        self._exchange = begin()
        self.has_raw_tokens = version == 0 and not self.is_done
        return ErrorCode.NONE, list(offered)

    def step(self, connection: Connection, token: bytes) -> NowOrLater[bytes]:
        """The answer; LoginFailed. With the last one the connection is open to requests."""
        try:
            exchange = self._exchange
            if exchange is None:
                raise LoginFailed("SaslAuthenticate request received before SaslHandshake", "out of order")
            if self._is_busy:
                raise LoginFailed(
                    "SaslAuthenticate request received before the answer to the last", "out of order"
                )
            may_wait = not isinstance(exchange, PlainExchange | ScramLogin)
            if may_wait and self._logins.waiting_bytes + len(token) > MAX_WAITING_BYTES:
                connection.close("too many logins at once")
                raise LoginFailed("", "")
            answer = exchange.step(token)
            if isinstance(answer, Later):
                self._is_busy = True
                self._logins.waiting_bytes += len(token)
                return Later(self._later(connection, exchange, answer, len(token)))
            self._look(connection, exchange)
            return answer
        except LoginFailed:
            self._refused(connection)
            raise

    async def _later(
        self,
        connection: Connection,
        exchange: Exchange | LoginExchange,
        answer: Later[bytes],
        token_bytes: int,
    ) -> bytes:
        try:
            try:
                said = await answer
            finally:
                self._logins.waiting_bytes -= token_bytes
            if self.is_refused or connection.is_closed:
                raise LoginFailed("", "")  # another token came meanwhile, and ended it
            self._is_busy = False
            self._look(connection, exchange)
            return said
        except LoginFailed:
            self._refused(connection)
            raise

    def _refused(self, connection: Connection) -> None:
        # At once, and not when the client is told: frames that came with this one are no further guesses.
        self.is_refused = True
        self._exchange = None
        connection.close_when_sent()

    def _look(self, connection: Connection, exchange: Exchange | LoginExchange) -> None:
        """Whether the client has proven who it is."""
        refusal = getattr(exchange, "refusal", None)
        if refusal is not None:
            self._logins.tell(connection, refusal)
        if exchange.user is not None:
            used = self._logins.token(exchange)
            name = exchange.user if used is None else used.owner.partition(":")[2]
            principal = Principal(USER, name)
            if self.is_done and principal != connection.principal:
                raise LoginFailed(
                    f"Cannot change principals during re-authentication from {connection.principal}: {principal}",
                    "another user",
                )
            self._exchange = None
            self.has_raw_tokens = False
            self.is_done = True
            self.token = used
            connection.principal = principal
            good_until_ms = exchange.good_until_ms if used is None else used.expires_ms
            self._logins.let_in(connection, self, good_until_ms)

    async def refuse(self, connection: Connection, failure: LoginFailed) -> None:
        """The client waits for its answer; behind that the connection is closed."""
        await self._logins.refuse(connection, failure)


class ListenerLogins:
    def __init__(self, node: "Needs", listener: str, receive: Receiver, bearers: "BearerLogins") -> None:
        """ValueError, which names the option, where a mechanism cannot be offered."""
        self._node = node
        self._listener = listener
        self._bearers = bearers
        self._receive = receive
        given = node.config.of_listener(listener, ("sasl.", REAUTH))
        own = {
            name: text
            for name, text in node.config.of_listener(listener, ("",)).items()
            if ".sasl." in name or name.endswith(f".{REAUTH}")
        }
        self._given = {**given, **own}
        self.max_token_bytes = int(self._given.get("sasl.server.max.receive.size", 524_288))
        self._delay_s = node.config.get("connection.failed.authentication.delay.ms") / 1000
        self.waiting_bytes = 0
        """Of tokens whose answers are still to come."""
        self.mechanisms: dict[str, Begin] = {}
        for name in self._enabled():
            self._given_module(name)  # also where it is not needed: a line that cannot be read is a mistake
            self.mechanisms[name] = self._mechanism(name)

    def _enabled(self) -> list[str]:
        text = self._given.get("sasl.enabled.mechanisms")
        names = BROKER_OPTIONS["sasl.enabled.mechanisms"].default if text is None else text.split(",")
        return [name.strip() for name in names if name.strip()]

    def _mechanism(self, name: str) -> Begin:
        if name == PLAIN:
            users = self._module(name, 'with the users as user_NAME="PASSWORD"').users()
            return lambda: PlainExchange(users)
        if name in SCRAM_MECHANISMS:
            return lambda: ScramLogin(
                name,
                lambda user, is_token: self._credential(name, user, is_token=is_token),
                nonce=secrets.token_hex(NONCE_BYTES),
                make_up=lambda user, is_token: self._node.decoys.of(name, user, is_token=is_token),
            )
        if name == OAUTHBEARER:
            return self._bearers.of_listener(
                self._listener, self._given, self._number, self._given_module(name)
            )
        if name == GSSAPI:
            from penstock.broker.access.kerberos_login import kerberos_logins

            module = self._module(name, 'with useKeyTab=true, keyTab="…" and principal="…"')
            return kerberos_logins(self._given, module, self._node.pools.kerberos)
        raise ValueError(f"sasl.enabled.mechanisms: {name} is not known, only {', '.join(MECHANISMS)}")

    def _number(self, name: str) -> int:
        option = BROKER_OPTIONS[name]
        text = self._given.get(name)
        return int(option.default if text is None else option.parse(text))

    def _module(self, mechanism: str, with_what: str) -> LoginModule:
        module = self._given_module(mechanism)
        if module is None:
            raise ValueError(
                f"{mechanism.lower()}.sasl.jaas.config: must be given for {mechanism}, {with_what}"
            )
        return module

    def _given_module(self, mechanism: str) -> LoginModule | None:
        option = f"{mechanism.lower()}.sasl.jaas.config"
        text = self._given.get(option) or self._given.get("sasl.jaas.config")
        try:
            return None if text is None else parse_login(text)
        except BadJaas as error:
            raise ValueError(f"{option}: {error}") from None

    def _credential(self, mechanism: str, user: str, *, is_token: bool) -> Credential | None:
        if is_token:
            return self._node.tokens.credential(mechanism, user)
        text = self._node.image.overrides(USERS, user).get(mechanism)
        try:
            # Also where there is none: how long an answer takes tells nobody who exists.
            credential = parse_credential(_STAND_IN if text is None else text)
            return None if text is None else credential
        except ValueError as error:
            log.warning("the %s credential of %s cannot be used: %s", mechanism, user, error)
            return None

    # --- connections

    def receive(self, connection: Connection, frame: memoryview) -> "Sequence[Part] | Deferred | None":
        """Until the client has logged in."""
        login = connection.login
        if login is None:
            login = connection.login = Login(self)
        if login.is_refused:
            return None
        login.requests += 1
        if login.requests > MAX_REQUESTS:
            connection.close(f"more than {MAX_REQUESTS} requests before a login")
            return None
        if login.has_raw_tokens:
            return self._raw_token(connection, login, bytes(frame))
        try:
            header = read_header(frame)
        except Malformed as error:
            connection.close(str(error))
            return None
        if header.api_key not in _BEFORE_LOGIN:
            connection.close(f"{header.api.name} before a login")
            return None
        return self._receive(connection, frame)

    def _raw_token(
        self, connection: Connection, login: Login, token: bytes
    ) -> "Sequence[Part] | Deferred | None":
        try:
            answer = login.step(connection, token)
        except LoginFailed as failure:
            return self._end_raw(connection, failure)
        if isinstance(answer, Later):
            deferred = connection.defer()
            self._node.answers.begin(self._later_raw(connection, answer, deferred))
            return deferred
        return (SIZE.pack(len(answer)), answer)

    async def _later_raw(self, connection: Connection, answer: Later[bytes], deferred: Deferred) -> None:
        try:
            said = await answer
        except LoginFailed as failure:
            self._end_raw(connection, failure)
            return
        if not connection.is_closed:
            deferred.resolve((SIZE.pack(len(said)), said))

    def _end_raw(self, connection: Connection, failure: LoginFailed) -> Deferred:
        """There is no answer: the connection ends instead."""
        self.tell(connection, failure.cause)
        self._node.loop.call_later(self._delay_s, connection.close)
        return connection.defer()

    def let_in(self, connection: Connection, login: Login, good_until_ms: int | None) -> None:
        """For as long as what the client has shown is good, and no longer than the listener lets anybody in."""
        reauth_ms, now_ms = self.reauth_ms(login.mechanism), self._node.clock.now_ms()
        lifetimes_ms = [reauth_ms] if reauth_ms > 0 else []
        if good_until_ms is not None:
            lifetimes_ms.append(max(good_until_ms - now_ms, 0))
        login.lifetime_ms = min(lifetimes_ms, default=0)
        if lifetimes_ms:
            login.expires_ms = now_ms + login.lifetime_ms
            connection.receive_by(self._until_expiry, max_frame_bytes=self._max_frame_bytes())
        else:
            connection.receive_by(self._receive, max_frame_bytes=self._max_frame_bytes())

    def _until_expiry(self, connection: Connection, frame: memoryview) -> "Sequence[Part] | Deferred | None":
        login = connection.login
        if login is not None and login.is_refused:
            return None
        if (
            login is not None
            and login.expires_ms is not None
            and self._node.clock.now_ms() > login.expires_ms
        ):
            api_key = int.from_bytes(frame[:2], "big")
            if api_key not in _BEFORE_LOGIN:
                connection.close("its login is over, and it has not logged in again")
                return None
        return self._receive(connection, frame)

    def token(self, exchange: Exchange | LoginExchange) -> DelegationToken | None:
        """With which this login was made; None: with none."""
        if not exchange.is_token:
            return None
        found = self._node.tokens.usable(exchange.user or "")
        if found is None:
            raise LoginFailed(
                "Authentication failed: the delegation token has expired", "its token has ended"
            )
        return found

    def reauth_ms(self, mechanism: str | None) -> int:
        """How long a login is valid; 0: for as long as the connection lasts. A mechanism may have a time of its own."""
        own = self._given.get(f"{(mechanism or '').lower()}.{REAUTH}")
        return int(own if own is not None else self._given.get(REAUTH, 0))

    def _max_frame_bytes(self) -> int:
        return int(self._node.config.get("socket.request.max.bytes"))

    async def refuse(self, connection: Connection, failure: LoginFailed) -> None:
        self.tell(connection, failure.cause)
        await sleep(self._delay_s)

    def tell(self, connection: Connection, cause: str) -> None:
        if cause:
            log.info("a login from %s failed: %s", connection.peer_host, cause)
