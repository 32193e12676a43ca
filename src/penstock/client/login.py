"""SASL: how a connection tells the broker who it is, before anything else is asked.

A broker that ends logins after a time (`connections.max.reauth.ms`) closes the connection then; a reader opens another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.client.errors import AccessRefused
from penstock.client.security import Login
from penstock.model.errors import ErrorCode
from penstock.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from penstock.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from penstock.client.connection import BrokerConnection


MAX_SHOWN: Final = 300


def log_in(connection: BrokerConnection, login: Login) -> None:
    """AccessRefused, which names the option, where the broker does not want us."""
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
    if login.mechanism == "PLAIN":
        token = f"\0{login.username}\0{login.password}".encode()
        _authenticate(connection, login, token)
    elif login.mechanism == "OAUTHBEARER":
        _bearer(connection, login)
    else:
        _scram(connection, login)


def _scram(connection: BrokerConnection, login: Login) -> None:
    from scramp import ScramClient, ScramException

    try:
        client = ScramClient([login.mechanism], login.username, login.password)
        client.set_server_first(_authenticate(connection, login, client.get_client_first().encode()).decode())
        client.set_server_final(_authenticate(connection, login, client.get_client_final().encode()).decode())
    except (ScramException, UnicodeDecodeError) as error:
        # The last step is the broker's proof that it knows the password, too.
        cause = f"the login at {connection.address} with {login.mechanism} failed"
        raise AccessRefused(login.option, f"{cause}: {error}") from None


def _bearer(connection: BrokerConnection, login: Login) -> None:
    from penstock.client.tokens import token_of

    token = f"n,,\x01auth=Bearer {token_of(login)}\x01\x01".encode()
    if _authenticate(connection, login, token):
        _authenticate(
            connection, login, b"\x01"
        )  # it said why not, and says no when it has heard that we heard
        raise AccessRefused(login.option, f"the broker at {connection.address} does not take the token")


def _authenticate(connection: BrokerConnection, login: Login, token: bytes) -> bytes:
    answer = connection.ask(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
    if answer.error_code:
        said = f": {_shown(answer.error_message, login)}" if answer.error_message else ""
        raise AccessRefused(
            login.option, f"the broker at {connection.address} refused the login of '{login.username}'{said}"
        )
    return answer.auth_bytes


def _shown(message: str, login: Login) -> str:
    """On one line; and a broker that has heard our password need not tell it to our logs."""
    if login.password:
        message = message.replace(login.password, "…")
    return " ".join(message.split())[:MAX_SHOWN]
