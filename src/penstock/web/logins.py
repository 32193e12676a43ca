"""Who asks: HTTP basic, a bearer token, or the certificate of the connection, by `authentication.method` and TLS.

A login that was good is remembered for a while, so that a password is not hashed and a token is not checked at each request.
What is remembered is a keyed hash, not the password. Failures are not remembered.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import logging
import os
import time
from collections import OrderedDict
from typing import Final

from penstock.client.errors import BadOption, UserError
from penstock.client.property_files import read_text
from penstock.security.bearer import BadToken
from penstock.security.principals import ANONYMOUS, USER, Principal, parse_name_rules
from penstock.security.tls_context import principal_of_certificate
from penstock.web.call import Call
from penstock.web.errors import HttpError
from penstock.web.options import BASIC, BEARER, NONE, WebOptions
from penstock.web.tokens import TokenCheck
from penstock.web.users_file import User, is_let_in, parse_users

log = logging.getLogger("penstock.web")

REMEMBERED_S: Final = 60.0
MAX_REMEMBERED: Final = 4096
CHECK_FILE_S: Final = 5.0
READ_ONLY_ROLES: Final = "penstock.authentication.read.only.roles"
READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
USERS_FILE: Final = "penstock.authentication.users.file"
MAX_CHECKS: Final = 4
"""Hashes and signatures that are computed at a time: strangers who try passwords do not take every thread."""


class Logins:
    """BadOption where the options cannot be used."""

    def __init__(self, options: WebOptions) -> None:
        methods = {method.upper() for method in options["authentication.method"]} - {NONE}
        self._basic = BASIC in methods
        self._bearer = BEARER in methods
        self._roles: list[str] = options["authentication.roles"]
        self._read_only = frozenset(options[READ_ONLY_ROLES])
        self._skipped = frozenset(options["authentication.skip.paths"])
        self._rules = parse_name_rules(options["ssl.principal.mapping.rules"])
        self._key = os.urandom(32)
        self._remembered: OrderedDict[bytes, tuple[Principal, float]] = OrderedDict()
        self._path: str = options[USERS_FILE]
        self._users: dict[str, User] = {}
        self._stamp: tuple[int, int] | None = None
        self._looked_s = float("-inf")
        self._checks = asyncio.Semaphore(MAX_CHECKS)
        if self._basic:
            if not self._path:
                raise BadOption(f"{USERS_FILE}: must be given with authentication.method=BASIC")
            self._load_users()
        url = options["oauthbearer.jwks.endpoint.url"]
        if self._bearer and not url:
            raise BadOption("oauthbearer.jwks.endpoint.url: must be given with authentication.method=BEARER")
        self._tokens = TokenCheck(
            url=url,
            issuer=options["oauthbearer.expected.issuer"],
            audience=options["oauthbearer.expected.audience"],
            claim=options["oauthbearer.sub.claim.name"],
        )
        realm = options["authentication.realm"].replace('"', "")
        self._challenge = ", ".join(
            [f'Basic realm="{realm}"'] * self._basic + [f'Bearer realm="{realm}"'] * self._bearer
        )

    def is_skipped(self, path: str) -> bool:
        return path in self._skipped

    def check(self, principal: Principal, method: str) -> None:
        """HttpError 403 where somebody who may only look wants more. Who came by a token or a certificate has no roles."""
        if not self._read_only or method in READING:
            return
        user = self._users.get(principal.name)
        if user is not None and user.roles and user.roles <= self._read_only:
            raise HttpError(403, f"{principal.name} may look, and change nothing: {READ_ONLY_ROLES}")

    def at_once(self, call: Call) -> Principal | None:
        """The principal where nothing has to be computed; None otherwise."""
        if not self._basic and not self._bearer:
            return ANONYMOUS if call.certificate is None else self._of_certificate(call.certificate)
        known = self._remembered.get(self._mark(call.header("authorization")))
        return known[0] if known is not None and known[1] > time.monotonic() else None

    async def principal(self, call: Call) -> Principal:
        """HttpError 401 where nobody is let in."""
        known = self.at_once(call)
        if known is not None:
            return known
        header = call.header("authorization")
        if not header and call.certificate is not None:
            return self._of_certificate(call.certificate)
        scheme, _, credentials = header.partition(" ")
        async with self._checks:
            if scheme.lower() == "basic" and self._basic:
                found, seconds = await asyncio.to_thread(self._by_password, credentials.strip())
            elif scheme.lower() == "bearer" and self._bearer:
                found, seconds = await asyncio.to_thread(self._by_token, credentials.strip())
            else:
                raise self._refused()
        self._remember(header, found, seconds)
        return found

    def _of_certificate(self, certificate: bytes) -> Principal:
        try:
            return principal_of_certificate(certificate, self._rules)
        except ValueError as error:
            log.warning("A certificate names nobody: %s", error)
            raise self._refused() from None

    def _by_password(self, credentials: str) -> tuple[Principal, float]:
        try:
            name, colon, password = base64.b64decode(credentials, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            raise self._refused() from None
        self._look_at_file()
        if not colon or not is_let_in(self._users, name, password, self._roles):
            raise self._refused()
        return Principal(USER, name), REMEMBERED_S

    def _by_token(self, token: str) -> tuple[Principal, float]:
        try:
            name, until = self._tokens.name_of(token)
        except BadToken as error:
            log.info("A bearer token is refused: %s", error)
            raise self._refused() from None
        return Principal(USER, name), min(REMEMBERED_S, until - time.time())

    def _refused(self) -> HttpError:
        headers = {"WWW-Authenticate": self._challenge} if self._challenge else {}
        return HttpError(401, "Unauthorized", headers=headers)

    def _remember(self, header: str, principal: Principal, seconds: float) -> None:
        self._remembered[self._mark(header)] = (principal, time.monotonic() + seconds)
        while len(self._remembered) > MAX_REMEMBERED:
            self._remembered.popitem(last=False)

    def _mark(self, header: str) -> bytes:
        return hashlib.blake2b(header.encode(), key=self._key, digest_size=16).digest()

    def _look_at_file(self) -> None:
        """A file that cannot be read leaves the users as they are."""
        now = time.monotonic()
        if now - self._looked_s < CHECK_FILE_S:
            return
        self._looked_s = now
        try:
            self._load_users()
        except UserError as error:
            log.warning("The users stay as they were: %s", error)

    def _load_users(self) -> None:
        try:
            status = os.stat(self._path)
        except OSError as error:
            raise BadOption(
                f"{USERS_FILE}: cannot read {self._path}: {(error.strerror or '').lower()}"
            ) from None
        stamp = (status.st_mtime_ns, status.st_size)
        if stamp != self._stamp:
            self._users = parse_users(read_text(self._path), option=USERS_FILE)
            self._stamp = stamp
            self._remembered.clear()
