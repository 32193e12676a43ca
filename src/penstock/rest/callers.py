"""The login that a request brings, for proxies that pass it on: what it is for the clients at the brokers and at the registry.

Nothing is checked here but the form. The brokers check the login before anything is done with it.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from penstock.client.clients import Bearer
from penstock.rest import errors
from penstock.security.principals import USER, Principal
from penstock.web.errors import HttpError

MAX_LOGIN_CHARS: Final = 4096
MAX_TOKEN_CHARS: Final = 16 << 10
OPAQUE_S: Final = 60.0
"""So long a token that does not say until when it counts is taken for good; then the brokers are asked again."""
NO_END_S: Final = float("inf")
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")


class Caller(NamedTuple):
    principal: Principal
    owner: str
    """By which consumer instances know it again: a token is another one each hour, who has it is not. Empty: by the login."""
    client: Mapping[str, str]
    """Properties of a client."""
    registry: Mapping[str, str]
    """Properties of a registry's client."""
    bearer: Bearer | None = None
    until_s: float = NO_END_S
    """Unix time."""


def caller_of(header: str, *, wants_token: bool, mechanism: str) -> Caller:
    """Of the header Authorization. HttpError 401 where it is missing or cannot be read."""
    return _by_token(header) if wants_token else _by_password(header, mechanism)


def not_logged_in(why: str, *, wants_token: bool) -> HttpError:
    return errors.not_logged_in(why, scheme="Bearer" if wants_token else "Basic")


def _by_password(header: str, mechanism: str) -> Caller:
    scheme, _, credentials = header.partition(" ")
    if scheme.lower() != "basic" or len(credentials) > MAX_LOGIN_CHARS:
        raise errors.not_logged_in("A name and a password are needed (HTTP basic).")
    try:
        name, colon, password = base64.b64decode(credentials.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise errors.not_logged_in("The login cannot be read.") from None
    if not colon or not name:
        raise errors.not_logged_in("A name and a password are needed (HTTP basic).")
    return Caller(
        Principal(USER, name),
        "",
        {"sasl.mechanism": mechanism, "sasl.username": name, "sasl.password": password},
        {"schema.registry.basic.auth.user.info": f"{name}:{password}"},
    )


def _by_token(header: str) -> Caller:
    scheme, _, token = header.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or len(token) > MAX_TOKEN_CHARS or not _TOKEN.fullmatch(token):
        raise not_logged_in("A token is needed (Bearer).", wants_token=True)
    claims = _claims(token)
    end = claims.get("exp")
    has_end = isinstance(end, int | float) and not isinstance(end, bool)
    until_s = float(end) if has_end and isinstance(end, int | float) else time.time() + OPAQUE_S
    if until_s <= time.time():
        raise not_logged_in("The token has expired.", wants_token=True)
    issuer, subject = claims.get("iss"), claims.get("sub")
    name = subject if isinstance(subject, str) and subject else "token"
    owner = json.dumps([issuer, subject]) if isinstance(subject, str) and subject else ""
    return Caller(
        Principal(USER, name),
        owner,
        {},
        {"schema.registry.bearer.auth.token": token},
        Bearer(token, until_s),
        until_s,
    )


def _claims(token: str) -> dict[str, Any]:
    """As the token says it. Brokers that take it have checked its signature, and with that all of them."""
    parts = token.split(".")
    try:
        payload = parts[1]
        found = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
