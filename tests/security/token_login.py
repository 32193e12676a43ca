"""A login with a delegation token, by hand: for answers that our client does not show."""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import new, pbkdf2_hmac

from penstock.client.connection import BrokerConnection
from penstock.model.endpoints import Address
from penstock.security.scram import MECHANISMS
from penstock.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from penstock.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


@contextmanager
def connected(bootstrap: str) -> Iterator[BrokerConnection]:
    host, _, port = bootstrap.rpartition(":")
    connection = BrokerConnection(Address(host, int(port)), client_id="by-hand", timeout_s=20)
    try:
        yield connection
    finally:
        connection.close()


def lets_in(bootstrap: str, mechanism: str, token_id: str, secret: str) -> bool:
    with connected(bootstrap) as connection:
        return token_login(connection, mechanism, token_id, secret).error_code == 0


def token_login(
    connection: BrokerConnection, mechanism: str, token_id: str, secret: str
) -> SaslAuthenticateResponse:
    """The broker's last answer: its proof, or its refusal."""
    digest = MECHANISMS[mechanism]
    answer = connection.ask(SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse, version=1)
    assert answer.error_code == 0
    nonce = secrets.token_hex(12)
    first = f"n={token_id},r={nonce},tokenauth=true"
    said = _step(connection, f"n,,{first}")
    if said.error_code:
        return said
    server_first = said.auth_bytes.decode()
    given = dict(part.split("=", 1) for part in server_first.split(","))
    salt, iterations = base64.b64decode(given["s"]), int(given["i"])
    hashed = pbkdf2_hmac(digest, secret.encode(), salt, iterations)
    client_key = hmac.digest(hashed, b"Client Key", digest)
    bare = f"c=biws,r={given['r']}"
    signature = hmac.digest(
        new(digest, client_key).digest(), f"{first},{server_first},{bare}".encode(), digest
    )
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    return _step(connection, f"{bare},p={proof}")


def _step(connection: BrokerConnection, text: str) -> SaslAuthenticateResponse:
    return connection.ask(SaslAuthenticateRequest(auth_bytes=text.encode()), SaslAuthenticateResponse)
