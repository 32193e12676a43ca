"""SCRAM (RFC 5802) on the server's side: credentials in Kafka's form, and one exchange of four messages.

    client: n,,n=alice,r=fyko            the name, and a nonce
    server: r=fyko3rfc,s=QSXC…,i=4096    its own nonce behind it, the user's salt and iterations
    client: c=biws,r=fyko3rfc,p=v0X8…    proof that it knows the password
    server: v=rmF9…                      proof that the server knows it too

The server keeps no password, but two keys made of it. A user that is not there gets a decoy (`decoys`) in place of a credential,
and fails at the proof like a wrong password: nobody learns from it who exists.
Kafka's extension `tokenauth=true` says that the name is a delegation token's.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

MECHANISMS: Final[Mapping[str, str]] = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""With the name of each one's hash."""
MAX_MESSAGE_BYTES: Final = 4096
"""Names, nonces and proofs are short. What is longer is not even looked at: it comes from somebody we do not know."""
MIN_ITERATIONS: Final = 4096
"""Also of tokens, whose secrets nobody guesses."""
MAX_ITERATIONS: Final = 16384
DEFAULT_ITERATIONS: Final = 8192
"""Of users that `penstock users` makes."""
MECHANISM_CODES: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""As requests about credentials number them."""


class ScramFailed(Exception):
    """The exchange is over. The text is for the log; clients are told no more than that it failed."""


@dataclass(frozen=True)
class Credential:
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int

    def __str__(self) -> str:
        """As Kafka keeps it in ZooKeeper."""
        parts = [
            f"{name}={base64.b64encode(value).decode()}"
            for name, value in (
                ("salt", self.salt),
                ("stored_key", self.stored_key),
                ("server_key", self.server_key),
            )
        ]
        return ",".join([*parts, f"iterations={self.iterations}"])


def parse_credential(text: str) -> Credential:
    """ValueError where it is not in Kafka's form; the text is a secret and stands in no message."""
    given = dict(part.partition("=")[::2] for part in text.split(","))
    if set(given) != {"salt", "stored_key", "server_key", "iterations"}:
        raise ValueError("the credential must hold salt, stored_key, server_key and iterations")
    try:
        salt, stored_key, server_key = (
            base64.b64decode(given[name], validate=True) for name in ("salt", "stored_key", "server_key")
        )
        return Credential(salt, stored_key, server_key, int(given["iterations"]))
    except ValueError:
        raise ValueError("the credential's keys must be base64, and its iterations a number") from None


def credential_of(mechanism: str, salted_password: bytes, *, salt: bytes, iterations: int) -> Credential:
    """From what a client makes of the password (PBKDF2): only this much crosses the wire."""
    digest = MECHANISMS[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", digest)
    server_key = hmac.digest(salted_password, b"Server Key", digest)
    return Credential(salt, hashlib.new(digest, client_key).digest(), server_key, iterations)


def salted(mechanism: str, password: str, *, salt: bytes, iterations: int) -> bytes:
    """Milliseconds of work, by intent: not for an event loop."""
    return hashlib.pbkdf2_hmac(MECHANISMS[mechanism], password.encode(), salt, iterations)


LookUp = Callable[[str, bool], "Credential | None"]
"""The credential of a name; True: of the delegation token with that id. It takes as long where there is none."""
MakeUp = Callable[[str, bool], "Credential"]
"""The decoy of a name that nobody has."""

_NAME = r"(?:[^=,\0]|=2C|=3D)+"
_FIRST = re.compile(
    rf"(?P<header>n,(?:a=(?P<authzid>{_NAME}))?,)n=(?P<name>{_NAME}),r=(?P<nonce>[!-+\--~]+)(?P<more>(?:,[A-Za-z]+=[^,\0]+)*)"
)
_FINAL = re.compile(
    r"(?P<bare>c=(?P<channel>[A-Za-z0-9+/=]+),r=(?P<nonce>[!-+\--~]+)),p=(?P<proof>[A-Za-z0-9+/=]+)"
)


class ScramExchange:
    """One login. `first`, then `final`; ScramFailed ends it. `nonce` is ours, and new for each exchange."""

    def __init__(self, mechanism: str, look_up: LookUp, *, nonce: str, make_up: MakeUp) -> None:
        self._digest: Final = MECHANISMS[mechanism]
        self._look_up = look_up
        self._nonce = nonce
        self._make_up = make_up
        self._so_far = ""
        self._header = ""
        self._credential: Credential | None = None
        self._exists = False
        self.name = ""
        self.is_token = False

    def first(self, message: bytes) -> bytes:
        found = _FIRST.fullmatch(_text(message))
        if found is None:
            raise ScramFailed("the client's first message cannot be read")
        self.name = _unescaped(found["name"])
        if found["authzid"] is not None and _unescaped(found["authzid"]) != self.name:
            raise ScramFailed(f"{shown(self.name)} asks to act as somebody else")
        extensions = dict(part.partition("=")[::2] for part in found["more"].split(",")[1:])
        self.is_token = extensions.get("tokenauth", "").lower() == "true"
        credential = self._look_up(self.name, self.is_token)
        made_up = self._make_up(self.name, self.is_token)  # in any case, so that nobody's name takes longer
        self._exists = credential is not None
        self._credential = made_up if credential is None else credential
        self._header = found["header"]
        self._nonce = found["nonce"] + self._nonce
        salt = base64.b64encode(self._credential.salt).decode()
        answer = f"r={self._nonce},s={salt},i={self._credential.iterations}"
        self._so_far = f"{found[0].removeprefix(self._header)},{answer}"
        return answer.encode()

    def final(self, message: bytes) -> bytes:
        found = _FINAL.fullmatch(_text(message))
        credential = self._credential
        if found is None or credential is None:
            raise ScramFailed("the client's final message cannot be read, or comes out of order")
        self._credential = None
        if not hmac.compare_digest(found["nonce"], self._nonce):
            raise ScramFailed("the nonce is not of this exchange")
        if _decoded(found["channel"]) != self._header.encode():
            raise ScramFailed("the channel is not the one that the first message named")
        signed = f"{self._so_far},{found['bare']}".encode()
        proof = _decoded(found["proof"])
        signature = hmac.digest(credential.stored_key, signed, self._digest)
        if len(proof) != len(signature):
            raise ScramFailed("the proof has the wrong length")
        client_key = bytes(left ^ right for left, right in zip(proof, signature, strict=True))
        is_right = hmac.compare_digest(hashlib.new(self._digest, client_key).digest(), credential.stored_key)
        if not is_right or not self._exists:
            raise ScramFailed(f"wrong password, or no such user: {shown(self.name)}")
        return b"v=" + base64.b64encode(hmac.digest(credential.server_key, signed, self._digest))


def shown(name: str) -> str:
    """For a log: short, and without line ends that would look like lines of our own."""
    return repr(name[:100])


def _text(message: bytes) -> str:
    if len(message) > MAX_MESSAGE_BYTES:
        raise ScramFailed("the message is too long")
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramFailed("the message is not text") from None


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ScramFailed("the message is not base64") from None


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
