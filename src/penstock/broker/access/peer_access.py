"""How this broker enters the listeners of other brokers: the way in which they enter its own.

The listener between brokers is `inter.broker.listener.name`, or that called after `security.inter.broker.protocol`. Its
`ssl.…` options say whom we trust and what we show; `sasl.mechanism.inter.broker.protocol` and the mechanism's `sasl.jaas.config`
say who we are. With OAUTHBEARER a token endpoint says so in our name (`credentials.tokens`), with GSSAPI
a Kerberos ticket (`credentials.gssapi`).

A handshake and a login are a few short exchanges. They run in a thread, on a socket that waits; then the loop takes it over.
"""

import socket
import ssl
import time
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any, Final, NamedTuple, TypeVar

from penstock.broker.access.inter_broker import inter_broker_listener
from penstock.config.layers import BrokerConfig
from penstock.credentials.tokens import NoToken, token_of
from penstock.net.endpoints import security_protocol
from penstock.net.peers import Connect, Entered, default_connect
from penstock.net.tls import TlsSocket, enter
from penstock.runtime.pools import Pools
from penstock.security.bearer import ENDPOINT, HEARD, OAUTHBEARER, TokenSource, first_message, is_endpoint
from penstock.security.jaas import BadJaas, parse_login
from penstock.security.kerberos import GSSAPI, SERVICE, TicketSource
from penstock.security.principals import USER, Principal
from penstock.security.sasl import PLAIN
from penstock.security.scram import MECHANISMS as SCRAM_MECHANISMS
from penstock.wire import codec
from penstock.wire.errors import Malformed
from penstock.wire.framing import SIZE, request_prefix, response_body_offset
from penstock.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from penstock.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from penstock.wire.schema import Message

R = TypeVar("R", bound=Message)

ENTER_SECONDS: Final = 10.0
MAX_ANSWER_BYTES: Final = 1 << 20
LOGIN_VERSION: Final = 1
"""Of both requests."""
MECHANISMS: Final = (PLAIN, *SCRAM_MECHANISMS, OAUTHBEARER, GSSAPI)
_CLIENT: Final = "sasl.oauthbearer.client.credentials.client"


def secured_connect(
    config: BrokerConfig,
    pools: Pools,
    client_id: str,
    tls_to: Callable[[str], Callable[[], ssl.SSLContext]],
) -> Connect:
    """`tls_to` gives the context for each connection to a listener, as certificates are renewed. ValueError, which names the
    option, where other brokers cannot be entered so. Reads files: for the start."""
    listener = inter_broker_listener(config)
    plain = partial(default_connect, names=pools.names)
    protocol = security_protocol(listener, config.get("listener.security.protocol.map"))
    if protocol == "PLAINTEXT":
        return plain
    given = config.of_listener(listener, ("",))
    context = tls_to(listener) if protocol.endswith("SSL") else None
    login = _login(given) if protocol.startswith("SASL") else None

    async def connect(host: str, port: int) -> Entered:
        sock = (await plain(host, port)).socket
        try:
            return await pools.peers.run(
                _enter, sock, host, None if context is None else context(), login, client_id
            )
        except BaseException:
            sock.close()
            raise

    return connect


def own_principal(config: BrokerConfig) -> Principal | None:
    """As whom we, and the other brokers of the cluster, log in at one another; None where no login says so. Of a token
    or a ticket only the one who takes it knows."""
    listener = inter_broker_listener(config)
    protocol = security_protocol(listener, config.get("listener.security.protocol.map"))
    if not protocol.startswith("SASL"):
        return None
    login = _login(config.of_listener(listener, ("",)))
    return Principal(USER, login.username) if login.mechanism in (PLAIN, *SCRAM_MECHANISMS) else None


class _Login(NamedTuple):
    mechanism: str
    username: str
    password: str = ""
    tokens: TokenSource | None = None
    tickets: TicketSource | None = None


def _login(given: dict[str, str]) -> _Login:
    mechanism = given.get("sasl.mechanism.inter.broker.protocol", "GSSAPI").strip()
    if mechanism not in MECHANISMS:
        known = ", ".join(MECHANISMS)
        raise ValueError(f"sasl.mechanism.inter.broker.protocol: {mechanism} is not known, only {known}")
    option = f"{mechanism.lower()}.sasl.jaas.config"
    text = given.get(option) or given.get("sasl.jaas.config", "")
    if mechanism == OAUTHBEARER and not text:
        return _by_tokens(given, {}, option)
    try:
        said = parse_login(text).options
    except BadJaas as error:
        raise ValueError(f"{option}: {error}") from None
    if mechanism == OAUTHBEARER:
        return _by_tokens(given, said, option)
    if mechanism == GSSAPI:
        return _by_tickets(given, said, option)
    if not said.get("username"):
        raise ValueError(f"{option}: must hold username and password, by which this broker logs in at others")
    return _Login(mechanism, said["username"], said.get("password", ""))


def _by_tickets(given: Mapping[str, str], said: Mapping[str, str], option: str) -> _Login:
    from penstock.credentials.gssapi import GssFailed, library

    try:
        library()
        source = TicketSource.of(said, given.get(SERVICE, "").strip())
    except (GssFailed, ValueError) as error:
        raise ValueError(f"{option}: {error}") from None
    return _Login(GSSAPI, source.principal, tickets=source)


def _by_tokens(given: Mapping[str, str], said: Mapping[str, str], option: str) -> _Login:
    endpoint = given.get(ENDPOINT, "").strip()
    if not is_endpoint(endpoint):
        raise ValueError(
            f"{ENDPOINT}: must be given and begin with https://: where this broker gets the token with which it "
            "logs in at others"
        )
    client_id = given.get(f"{_CLIENT}.id") or said.get("clientId", "")
    if not client_id:
        raise ValueError(
            f'{option}: must hold clientId="…" and clientSecret="…", by which this broker asks for a token'
        )
    secret = given.get(f"{_CLIENT}.secret")
    secret_option = option if secret is None else f"{_CLIENT}.secret"
    scope = given.get("sasl.oauthbearer.scope") or said.get("scope", "")
    source = TokenSource(endpoint, client_id, secret or said.get("clientSecret", ""), secret_option, scope)
    return _Login(OAUTHBEARER, client_id, tokens=source)


def _enter(
    sock: socket.socket, host: str, context: ssl.SSLContext | None, login: _Login | None, client_id: str
) -> Entered:
    """In a thread. OSError says why not."""
    sock.settimeout(ENTER_SECONDS)
    lifetime_s = inf
    entered: Any = sock  # a TlsSocket has the face of one
    if context is not None:
        try:
            entered = enter(sock, context, host)
        except ssl.SSLCertVerificationError as error:
            raise ConnectionError(f"its certificate is not accepted: {error.verify_message}") from None
    if login is not None:
        lifetime_s = _log_in(entered, host, login, client_id)
    sock.setblocking(False)
    return Entered(entered, lifetime_s)


def _log_in(sock: socket.socket | TlsSocket, host: str, login: _Login, client_id: str) -> float:
    """For how many seconds the other broker takes us for who we are (KIP-368)."""
    lifetime_ms = 0
    shaken = _ask(sock, SaslHandshakeRequest(mechanism=login.mechanism), SaslHandshakeResponse, client_id)
    if shaken.error_code:
        offered = ", ".join(shaken.mechanisms)
        raise ConnectionError(f"it does not take {login.mechanism} from brokers; it offers {offered}")

    def authenticate(token: bytes) -> bytes:
        nonlocal lifetime_ms
        answer = _ask(sock, SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse, client_id)
        if answer.error_code:
            raise ConnectionError(f"it refuses our login as {login.username}: {answer.error_message}")
        lifetime_ms = answer.session_lifetime_ms
        return bytes(answer.auth_bytes)

    if login.mechanism == PLAIN:
        authenticate(f"\0{login.username}\0{login.password}".encode())
    elif login.tokens is not None:
        _by_token(login.tokens, authenticate)
    elif login.tickets is not None:
        _by_ticket(login.tickets, host, authenticate)
    else:
        _by_scram(login, authenticate)
    return lifetime_ms / 1000 if lifetime_ms > 0 else inf


def _by_scram(login: _Login, authenticate: Callable[[bytes], bytes]) -> None:
    from scramp import ScramClient, ScramException

    try:
        client = ScramClient([login.mechanism], login.username, login.password)
        client.set_server_first(authenticate(client.get_client_first().encode()).decode())
        client.set_server_final(authenticate(client.get_client_final().encode()).decode())
    except ScramException as error:
        raise ConnectionError(f"the login as {login.username} failed: {error}") from None


def _by_token(source: TokenSource, authenticate: Callable[[bytes], bytes]) -> None:
    try:
        token = token_of(source)
    except NoToken as error:
        raise ConnectionError(f"there is no token for our login as {source.client_id}: {error}") from None
    if authenticate(first_message(token)):
        authenticate(HEARD)
        raise ConnectionError(f"it does not take our token as {source.client_id}")


def _by_ticket(source: TicketSource, host: str, authenticate: Callable[[bytes], bytes]) -> None:
    from penstock.credentials.gssapi import GssFailed, prove

    try:
        prove(source, host, authenticate)
    except GssFailed as error:
        raise ConnectionError(f"the login with Kerberos failed: {error}") from None


def _ask(sock: socket.socket | TlsSocket, request: Message, response: type[R], client_id: str) -> R:
    body = codec.encode(request, LOGIN_VERSION)
    prefix = request_prefix(
        request.API_KEY,
        LOGIN_VERSION,
        correlation_id=0,
        client_id=client_id.encode(),
        is_flexible=False,
        body_bytes=len(body),
    )
    sock.sendall(prefix + body)
    deadline = time.monotonic() + ENTER_SECONDS
    (size,) = SIZE.unpack(_receive(sock, SIZE.size, deadline))
    if not SIZE.size <= size <= MAX_ANSWER_BYTES:
        raise ConnectionError(f"an answer of {size} bytes to our login")
    frame = memoryview(_receive(sock, size, deadline))
    try:
        offset = response_body_offset(frame, request.API_KEY, is_flexible=False)
        return codec.decode(response, LOGIN_VERSION, frame, offset)[0]
    except Malformed as error:
        raise ConnectionError(f"an answer to our login that cannot be read: {error}") from None


def _receive(sock: socket.socket | TlsSocket, size: int, deadline: float) -> bytes:
    received = bytearray()
    while len(received) < size:
        if time.monotonic() > deadline:
            raise TimeoutError("it answers our login too slowly")
        chunk = sock.recv(size - len(received))
        if not chunk:
            raise ConnectionResetError("it closed the connection during our login")
        received += chunk
    return bytes(received)
