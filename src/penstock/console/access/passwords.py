"""A name and a password: the one of this start, those of the console's own users, or SCRAM at a cluster.

Whatever the way, an answer tells only whether both were right. Checks run in threads, a few at a time: strangers who try
passwords take neither the event loop nor all of the machine.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import secrets
import time
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import quote

from penstock.client.errors import Refused, Unreachable, UserError
from penstock.client.property_files import read_text
from penstock.console.settings.model import SCRAM, START, USERS
from penstock.web.users_file import User, is_let_in, parse_users

if TYPE_CHECKING:
    from penstock.console.settings import ClusterSettings, ConsoleSettings, LoginSettings
    from penstock.web.options import Listen

log = logging.getLogger("penstock.console")

CLIENT_ID: Final = "penstock-console-login"
MAX_CHECKS: Final = 2
MAX_WAITING: Final = 32
CHECK_FILE_S: Final = 5.0
TIMEOUT_S: Final = 10.0
START_NAME: Final = "admin"
_START_BYTES: Final = 16
_LOGIN_PROPERTIES: Final = ("sasl.jaas.config", "sasl.username", "sasl.password", "sasl.mechanism",
                            "ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.key")  # fmt: skip


class CannotCheck(UserError):
    """Whether the password is right is not known: the cluster does not answer, or too many ask."""


class Passwords(Protocol):
    cluster: str
    """Whose names and passwords these are; empty: the console's own."""

    async def roles(self, name: str, password: str) -> tuple[str, ...] | None:
        """The names of the roles by the login itself (the settings may add some); None: they are wrong. CannotCheck."""
        ...


class StartPassword:
    """One admin, with a password that is made at the start and told to who starts the console."""

    cluster = ""

    def __init__(self) -> None:
        self._password = secrets.token_urlsafe(_START_BYTES)

    def told(self, listen: Listen) -> str:
        """The part behind # never leaves the browser, so it is in no log."""
        return (
            f"penstock console: log in as {START_NAME} with the password {self._password}\n"
            f"penstock console: or open {listen}/login#{quote(self._password)}"
        )

    async def roles(self, name: str, password: str) -> tuple[str, ...] | None:
        is_right = hmac.compare_digest(password.encode("utf-8", "replace"), self._password.encode())
        return ("admin",) if is_right and name == START_NAME else None


class OwnUsers:
    """Those of console.yaml, and of a file that is read again when it has changed."""

    cluster = ""

    def __init__(self, login: LoginSettings) -> None:
        self._given = dict(login.users)
        self._users = dict(login.users)
        self._file = login.users_file
        self._stamp: tuple[int, int] | None = None
        self._looked_s = time.monotonic()
        self._turns = _Turns()

    async def roles(self, name: str, password: str) -> tuple[str, ...] | None:
        return await self._turns.take(lambda: self._checked(name, password))

    def _checked(self, name: str, password: str) -> tuple[str, ...] | None:
        self._look()
        users: dict[str, User] = self._users
        # An unknown name costs the time of a known one: it is tried against the first hash there is.
        if name not in users:
            is_let_in(users, next(iter(users)), password, ("*",))
            return None
        return tuple(sorted(users[name].roles)) if is_let_in(users, name, password, ("*",)) else None

    def _look(self) -> None:
        now_s = time.monotonic()
        if not self._file or now_s - self._looked_s < CHECK_FILE_S:
            return
        self._looked_s = now_s
        try:
            about = os.stat(self._file)
            stamp = about.st_mtime_ns, about.st_size
            if stamp != self._stamp:
                self._users = parse_users(read_text(self._file), option=self._file) | self._given
                self._stamp = stamp
        except (OSError, UserError) as error:
            log.warning("the users of %s stay as they were: %s", self._file, error)


class ClusterUsers:
    """A login at a cluster, with the name and password of the visitor, by SCRAM. Nothing is done there with it."""

    def __init__(self, cluster: ClusterSettings, mechanism: str) -> None:
        self.cluster = cluster.name
        self._bootstrap = cluster.bootstrap
        self._mechanism = mechanism
        protocol = cluster.properties.get("security.protocol", "SASL_PLAINTEXT")
        self._properties = {
            name: value for name, value in cluster.properties.items() if name not in _LOGIN_PROPERTIES
        }
        self._properties["security.protocol"] = "SASL_SSL" if protocol.endswith("SSL") else "SASL_PLAINTEXT"
        self._turns = _Turns()

    async def roles(self, name: str, password: str) -> tuple[str, ...] | None:
        return await self._turns.take(lambda: self._checked(name, password))

    def _checked(self, name: str, password: str) -> tuple[str, ...] | None:
        from penstock.client.brokers import is_login_right
        from penstock.client.options import client_options
        from penstock.client.properties import SECURITY_NAMES

        if not name or not password:
            return None
        properties = {
            **{name: value for name, value in self._properties.items() if name in SECURITY_NAMES},
            "sasl.mechanism": self._mechanism,
            "sasl.username": name,
            "sasl.password": password,
            "client.id": CLIENT_ID,
        }
        try:
            is_right = is_login_right(client_options(self._bootstrap, properties), timeout_s=TIMEOUT_S)
        except (Unreachable, Refused) as error:
            raise CannotCheck(str(error)) from None
        return () if is_right else None


class _Turns:
    """Not more than a few checks at a time, and not more than some that wait."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(MAX_CHECKS)
        self._waiting = 0

    async def take(self, check: _Check) -> tuple[str, ...] | None:
        if self._waiting >= MAX_WAITING:
            raise CannotCheck("too many logins are being checked; try again soon")
        self._waiting += 1
        try:
            async with self._turns:
                return await asyncio.to_thread(check)
        finally:
            self._waiting -= 1


class _Check(Protocol):
    def __call__(self) -> tuple[str, ...] | None: ...


def passwords_for(settings: ConsoleSettings) -> Passwords | None:
    """None where nobody logs in with a password."""
    login = settings.login
    if login.method == START:
        return StartPassword()
    if login.method == USERS:
        return OwnUsers(login)
    if login.method == SCRAM:
        cluster = next(each for each in settings.clusters if each.name == login.scram_cluster)
        return ClusterUsers(cluster, login.scram_mechanism)
    return None
