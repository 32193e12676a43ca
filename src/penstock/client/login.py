"""SASL: how a connection tells the broker who it is, before anything else is asked.

A broker may end logins after a time (`connections.max.reauth.ms`, or an access token's end). It says so, and the connection logs
in again before (KIP-368), as the same user, between two requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.client.errors import AccessRefused
from penstock.client.security import Login
from penstock.model.errors import ErrorCode
from penstock.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from penstock.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from penstock.client.connection import BrokerConnection
    from penstock.security.kerberos import TicketSource


MAX_SHOWN: Final = 300
TOKEN: Final = ",tokenauth=true"


Authenticate = Callable[[bytes], bytes]


def log_in(connection: BrokerConnection, login: Login) -> int:
    """For how many milliseconds the login is good, 0: for as long as the connection lasts. AccessRefused, which names the option,
    where the broker does not want us."""
    no_login = AccessRefused("security.protocol", f"the listener at {connection.address} has no SASL")
    if not connection.offers(SaslAuthenticateRequest):
        raise no_login
    answer = connection.ask(SaslHandshakeRequest(mechanism=login.mechanism), SaslHandshakeResponse, version=1)
    if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise no_login
    if answer.error_code:
        offered = _shown(", ".join(answer.mechanisms), login) or "nothing"
        raise AccessRefused(
            "sasl.mechanism",
            f"the broker at {connection.address} does not take {login.mechanism}; it offers {offered}",
        )
    lifetime_ms = 0

    def authenticate(token: bytes) -> bytes:
        nonlocal lifetime_ms
        said = _authenticate(connection, login, token)
        lifetime_ms = said.session_lifetime_ms
        return bytes(said.auth_bytes)

    if login.mechanism == "PLAIN":
        authenticate(f"\0{login.username}\0{login.password}".encode())
    elif login.mechanism == "OAUTHBEARER":
        _bearer(connection, login, authenticate)
    elif login.tickets is not None:
        _kerberos(connection, login, login.tickets, authenticate)
    else:
        _scram(connection, login, authenticate)
    return lifetime_ms


def _scram(connection: BrokerConnection, login: Login, authenticate: Authenticate) -> None:
    from scramp import ScramClient, ScramException

    try:
        client = ScramClient([login.mechanism], login.username, login.password)
        first = client.get_client_first()
        if login.is_token:  # the proof is about the whole message, Kafka's extension too
            first += TOKEN
            client.client_first_bare += TOKEN
        client.set_server_first(authenticate(first.encode()).decode())
        client.set_server_final(authenticate(client.get_client_final().encode()).decode())
    except (ScramException, UnicodeDecodeError) as error:
        # The last step is the broker's proof that it knows the password, too.
        cause = f"the login at {connection.address} with {login.mechanism} failed"
        raise AccessRefused(login.option, f"{cause}: {error}") from None


def _bearer(connection: BrokerConnection, login: Login, authenticate: Authenticate) -> None:
    from penstock.credentials.tokens import NoToken, token_of
    from penstock.security.bearer import HEARD, first_message

    try:
        token = login.bearer_token or token_of(login.token_source)
    except NoToken as error:
        raise AccessRefused(error.option, str(error)) from None
    if authenticate(first_message(token)):
        # It said why not, and says no when it has heard that we heard.
        authenticate(HEARD)
        raise AccessRefused(login.option, f"the broker at {connection.address} does not take the token")


def _kerberos(
    connection: BrokerConnection, login: Login, tickets: TicketSource, authenticate: Authenticate
) -> None:
    from penstock.credentials.gssapi import GssFailed, prove

    try:
        prove(tickets, connection.address.host, authenticate)
    except GssFailed as error:
        raise AccessRefused(
            login.option, f"the login at {connection.address} with Kerberos failed: {error}"
        ) from None


def _authenticate(connection: BrokerConnection, login: Login, token: bytes) -> SaslAuthenticateResponse:
    answer = connection.ask(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
    if answer.error_code:
        said = f": {_shown(answer.error_message, login)}" if answer.error_message else ""
        raise AccessRefused(
            login.option, f"the broker at {connection.address} refused the login of '{login.username}'{said}"
        )
    return answer


def _shown(message: str, login: Login) -> str:
    """On one line; and a broker that has heard our password need not tell it to our logs."""
    for secret in (login.password, login.bearer_token):
        if secret:
            message = message.replace(secret, "…")
    return " ".join(message.split())[:MAX_SHOWN]
