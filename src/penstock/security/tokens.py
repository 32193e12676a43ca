"""The secrets of delegation tokens: made of a token's id with the key that all brokers of a cluster share
(`delegation.token.secret.key`). They are never written anywhere. A client uses the secret, as base64, as its SCRAM password.
"""

import base64
import hmac
from typing import Final

from penstock.security.scram import MECHANISMS, MIN_ITERATIONS, Credential, credential_of, salted

SALT_BYTES: Final = 24
ID_BYTES: Final = 16


def token_id_of(random: bytes) -> str:
    """Random bytes as the id of a new token."""
    return base64.urlsafe_b64encode(random).rstrip(b"=").decode()


def salt_of(mechanism: str, token_id: str, key: bytes) -> bytes:
    """Made of the id, whether there is such a token or not: at each broker and after each start it is the same."""
    return hmac.digest(key, f"salt {mechanism} {token_id}".encode(), "sha512")[:SALT_BYTES]


def secret_of(token_id: str, key: str) -> bytes:
    return hmac.digest(key.encode(), token_id.encode(), "sha512")


def token_decoy(mechanism: str, token_id: str, key: bytes) -> Credential:
    """Of an id that no token has: looks like that of a token."""
    made_up = hmac.digest(key, f"decoy {mechanism} {token_id}".encode(), MECHANISMS[mechanism])
    return Credential(salt_of(mechanism, token_id, key), made_up, made_up, MIN_ITERATIONS)


def token_credential(mechanism: str, secret: bytes, salt: bytes) -> Credential:
    """Milliseconds of work: not for an event loop."""
    password = base64.b64encode(secret).decode()
    hashed = salted(mechanism, password, salt=salt, iterations=MIN_ITERATIONS)
    return credential_of(mechanism, hashed, salt=salt, iterations=MIN_ITERATIONS)
