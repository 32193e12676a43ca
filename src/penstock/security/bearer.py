"""OAUTHBEARER as RFC 7628 has it: the client's first message, and tokens without a signature.

    n,,^Aauth=Bearer TOKEN^Atraceparent=7^A^A        ^A is the byte 1

A refused token is answered with JSON first; the login fails when the client has said ^A to that. Tokens without a signature prove
nothing. They are for trials: a broker takes them only where its JAAS line has options that begin with `unsecuredValidator`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

OAUTHBEARER: Final = "OAUTHBEARER"
MAX_TOKEN_BYTES: Final = 64 << 10
"""Of a whole message. Real tokens have one or two KiB."""
TOO_LONG: Final = "the message is too long"
REFUSED: Final = '{"status":"invalid_token"}'
HEARD: Final = b"\x01"
"""The client's answer to a refusal."""
ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"
_UNSECURED: Final = "unsecuredValidator"
_HEADER: Final = re.compile(r"n,(?:a=((?:[^=,\x00\x01]|=2C|=3D)+))?,")
_TOKEN: Final = re.compile(r"(\w+) +([-_.A-Za-z0-9]+) *", re.ASCII)
_EXTENSION: Final = re.compile(r"([A-Za-z]+)=([\x21-\x7e \t\r\n]+)")


class BadMessage(Exception):
    """It is not what RFC 7628 asks for."""


class BadToken(Exception):
    """Not valid; the text says why, and nothing that is in the token."""


class FirstMessage(NamedTuple):
    authorization_id: str
    """As whom the client wants to act; empty: as itself."""
    token: str
    extensions: Mapping[str, str]


class Bearer(NamedTuple):
    """Who came with a valid token."""

    name: str
    expires_ms: int


@dataclass(frozen=True)
class TokenSource:
    """Where tokens are asked for, with a client's id and secret."""

    endpoint: str
    client_id: str
    secret: str = field(repr=False)
    secret_option: str
    """Where the secret came from."""
    scope: str = ""


def is_endpoint(url: str) -> bool:
    return urllib.parse.urlsplit(url).scheme in ("http", "https")


def first_message(token: str) -> bytes:
    """The client's side."""
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


def parse_first(message: bytes) -> FirstMessage:
    if len(message) > MAX_TOKEN_BYTES:
        raise BadMessage(TOO_LONG)
    try:
        head, *pairs = message.decode().split("\x01")
    except UnicodeDecodeError:
        raise BadMessage("the message is not text") from None
    found = _HEADER.fullmatch(head)
    if found is None or pairs[-2:] != ["", ""]:
        raise BadMessage("the message is not of the form that OAUTHBEARER has")
    given: dict[str, str] = {}
    for pair in pairs[:-2]:
        extension = _EXTENSION.fullmatch(pair)
        if extension is None:
            raise BadMessage("the message has an extension that cannot be read")
        given[extension[1]] = extension[2]
    said = _TOKEN.fullmatch(given.pop("auth", ""))
    if said is None:
        raise BadMessage("the message has no token")
    if said[1].lower() != "bearer":
        raise BadMessage("the message has something else than a bearer token")
    wanted = (found[1] or "").replace("=2C", ",").replace("=3D", "=")
    return FirstMessage(wanted, said[2], given)


class UnsecuredRules(NamedTuple):
    """What tokens without a signature must say; see Kafka's OAuthBearerUnsecuredValidatorCallbackHandler."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: frozenset[str] = frozenset()
    clock_skew_ms: int = 0

    @classmethod
    def of(cls, options: Mapping[str, str]) -> UnsecuredRules | None:
        """From the options of the JAAS line; None where none of them asks for it. ValueError."""
        given = {
            name.removeprefix(_UNSECURED): text
            for name, text in options.items()
            if name.startswith(_UNSECURED)
        }
        if not given:
            return None
        skew = given.get("AllowableClockSkewMs") or "0"
        if not skew.isdecimal():
            raise ValueError(f"{_UNSECURED}AllowableClockSkewMs: '{skew}' is not a number")
        return cls(
            given.get("PrincipalClaimName") or "sub",
            given.get("ScopeClaimName") or "scope",
            frozenset(given.get("RequiredScope", "").split()),
            int(skew),
        )


def check_unsecured(token: str, rules: UnsecuredRules, now_ms: int) -> Bearer:
    parts = token.split(".")
    if len(parts) != 3:
        raise BadToken("it has no three parts")
    header, claims = _json(parts[0], "header"), _json(parts[1], "claims")
    if header.get("alg") != "none" or parts[2]:
        raise BadToken("it has a signature, and there are no keys to check it with")
    expires_ms = _milliseconds(claims, "exp")
    if expires_ms is None:
        raise BadToken("it has no exp")
    if expires_ms + rules.clock_skew_ms <= now_ms:
        raise BadToken("it has expired")
    issued_ms = _milliseconds(claims, "iat")
    if issued_ms is not None and issued_ms - rules.clock_skew_ms > now_ms:
        raise BadToken("it is from the future")
    scope = scopes(claims.get(rules.scope_claim))
    if not rules.required_scope <= scope:
        raise BadToken(f"it has not the scope {' '.join(sorted(rules.required_scope - scope))}")
    return Bearer(name_in(claims, rules.principal_claim), expires_ms)


def name_in(claims: Mapping[str, Any], claim: str) -> str:
    name = claims.get(claim)
    if not isinstance(name, str) or not name.strip():
        raise BadToken(f"the claim {claim} is not a name")
    return name


def scopes(value: Any) -> frozenset[str]:
    """A claim of scopes is one text with spaces between them, or a list; BadToken otherwise."""
    if value is None:
        return frozenset()
    if isinstance(value, str):
        return frozenset(value.split())
    if isinstance(value, list) and all(isinstance(one, str) and one.strip() for one in value):
        return frozenset(value)
    raise BadToken("its scope cannot be read")


def _json(part: str, what: str) -> dict[str, Any]:
    try:
        said = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise BadToken(f"its {what} cannot be read")
    return said


def _milliseconds(claims: Mapping[str, Any], claim: str) -> int | None:
    value = claims.get(claim)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e13:
        raise BadToken(f"its {claim} is not a time")
    return int(value * 1000)
