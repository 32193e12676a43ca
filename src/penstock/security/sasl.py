"""Logins by SASL on the broker's side: what a client says step by step, and who it is in the end.

An `Exchange` is one attempt. It takes the client's tokens in order and answers each; `user` is set by the last. `LoginFailed`
ends it. Its text is for the client, in Kafka's words: the same for an unknown user and a wrong password. `cause` is for our log.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final, Protocol

from penstock.security.scram import LookUp, MakeUp, ScramExchange, ScramFailed, shown

PLAIN: Final = "PLAIN"
MAX_TOKEN_BYTES: Final = 4096
"""Of a name and a password together."""


class LoginFailed(Exception):
    def __init__(self, text: str, cause: str) -> None:
        super().__init__(text)
        self.cause = cause


def invalid_credentials(mechanism: str) -> str:
    return (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism "
        f"{mechanism}"
    )


class Exchange(Protocol):
    user: str | None
    """None until the client has proven who it is."""
    is_token: bool
    """Whether it did so with a delegation token."""
    good_until_ms: int | None
    """Until when what it has shown is good, where that has an end."""

    def step(self, token: bytes) -> bytes:
        """The answer to the client's token; LoginFailed."""


class PlainExchange:
    """RFC 4616: `[authorization id] NUL name NUL password`, in one step."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self.user: str | None = None
        self.is_token = False
        self.good_until_ms: int | None = None

    def step(self, token: bytes) -> bytes:
        failed = "Authentication failed: Invalid username or password"
        if len(token) > MAX_TOKEN_BYTES:
            raise LoginFailed("Invalid SASL/PLAIN response: too long", "the token is too long")
        try:
            parts = token.decode().split("\0")
        except UnicodeDecodeError:
            raise LoginFailed("Invalid SASL/PLAIN response: not UTF-8", "the token is not text") from None
        if len(parts) != 3:
            raise LoginFailed(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}",
                "the token has no three parts",
            )
        authorization_id, name, password = parts
        for what, value in (("username", name), ("password", password)):
            if not value:
                raise LoginFailed(f"Authentication failed: {what} not specified", f"no {what}")
        expected = self._passwords.get(name)
        # Compared in any case, so that a name that exists takes no longer.
        is_right = hmac.compare_digest((expected or "\0").encode(), password.encode())
        if expected is None or not is_right:
            raise LoginFailed(failed, f"wrong password, or no such user: {shown(name)}")
        if authorization_id and authorization_id != name:
            text = (
                "Authentication failed: Client requested an authorization id that is different from username"
            )
            raise LoginFailed(text, f"{shown(name)} asks to act as somebody else")
        self.user = name
        return b""


class ScramLogin:
    """The two steps of `scram`, as an exchange."""

    def __init__(self, mechanism: str, look_up: LookUp, *, nonce: str, make_up: MakeUp) -> None:
        self._mechanism = mechanism
        self._scram = ScramExchange(mechanism, look_up, nonce=nonce, make_up=make_up)
        self._has_begun = False
        self.user: str | None = None
        self.is_token = False
        self.good_until_ms: int | None = None

    def step(self, token: bytes) -> bytes:
        try:
            if not self._has_begun:
                self._has_begun = True
                return self._scram.first(token)
            answer = self._scram.final(token)
        except ScramFailed as failure:
            raise LoginFailed(invalid_credentials(self._mechanism), str(failure)) from None
        self.user, self.is_token = self._scram.name, self._scram.is_token
        return answer
