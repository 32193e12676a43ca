"""As whom the brokers see what a request does: as the server, or, with `penstock.sql.auth.propagate`, as the one who asks.

The login of HTTP basic is tried at a broker before anything is done with it, and its clients are kept while it is used. In a
thread that works for a caller the engine's clients are the caller's (`acting`). The topic of commands, queries that run for good,
and the views that answer pull queries are the server's in any case; before they serve somebody, the brokers are asked whether he
may read or write their topics.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, TypeVar

from penstock.admin.cluster import Cluster
from penstock.client.clients import Connection
from penstock.client.errors import BadOption, Refused, Unreachable
from penstock.model.errors import ErrorCode
from penstock.sql.engine.inserting import Inserts
from penstock.sql.engine.options import SqlOptions
from penstock.sql.engine.refusals import FORBIDDEN_KAFKA, UNAUTHORIZED, SqlRefused

T = TypeVar("T")

PROPAGATE: Final = "penstock.sql.auth.propagate"
MECHANISM: Final = "penstock.sql.login.mechanism"
MAX_LOGIN_CHARS: Final = 4096
MAX_CALLERS: Final = 100
"""Logins whose clients are kept."""
IDLE_S: Final = 300.0
ALLOWED_S: Final = 10.0
"""So long it counts what a broker said of a caller's rights."""
READ, WRITE = "READ", "WRITE"
REQUEST_TIMEOUT_S: Final = 30.0


class Login(NamedTuple):
    name: str
    password: str


class Caller:
    """The clients of one login, each opened when it is first needed. Use from any thread."""

    def __init__(self, options: SqlOptions, login: Login | None, schemas: Any) -> None:
        """`login` None: the server itself."""
        properties = dict(options.client)
        if login is not None:
            mechanism = options[MECHANISM] or properties.get("sasl.mechanism") or "PLAIN"
            properties.pop("sasl.jaas.config", None)
            properties |= {
                "sasl.mechanism": mechanism, "sasl.username": login.name, "sasl.password": login.password,
            }  # fmt: skip
        self.login = login
        self.connection = Connection(options.bootstrap, properties)
        self.cluster = Cluster.over(self.connection)
        self.inserts = Inserts(self.connection, schemas)
        self.used_s = time.monotonic()
        self.in_use = 0
        self._lock = threading.Lock()
        self._admin: Any = None
        self._allowed: dict[str, tuple[float, frozenset[str]]] = {}

    def check_allowed(self, topic: str, operation: str) -> None:
        """SqlRefused (40301) where the brokers would not let this login do that. The server may do what it can."""
        if self.login is None:
            return
        until_s, operations = self._allowed.get(topic, (0.0, frozenset()))
        if until_s < time.monotonic():
            operations = self._asked(topic)
            self._allowed[topic] = time.monotonic() + ALLOWED_S, operations
        if operation not in operations:
            raise SqlRefused(
                f"Authorization denied to {operation.capitalize()} on topic(s): [{topic}]",
                code=FORBIDDEN_KAFKA,
            )

    def _asked(self, topic: str) -> frozenset[str]:
        from confluent_kafka import KafkaException, TopicCollection

        with self._lock:
            if self._admin is None:
                self._admin = self.connection.admin()
        try:
            (asked,) = self._admin.describe_topics(
                TopicCollection([topic]),
                include_authorized_operations=True,
                request_timeout=REQUEST_TIMEOUT_S,
            ).values()
            found = asked.result()
        except KafkaException as error:
            code = error.args[0].code()
            if code in (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                return frozenset()
            raise Refused(str(error.args[0].str()), code=code) from None
        return frozenset(each.name for each in found.authorized_operations or ())

    def check(self) -> None:
        """Unreachable where nobody answers or the login is not good."""
        self.connection.wire().close()

    def close(self) -> None:
        self.cluster.close()


_acting: Final[ContextVar[Caller | None]] = ContextVar("penstock_sql_caller", default=None)


def acting() -> Caller | None:
    return _acting.get()


class Callers:
    """BadOption where logins are to be passed on to brokers that ask for none."""

    def __init__(self, options: SqlOptions, schemas: Any) -> None:
        self.own = Caller(options, None, schemas)
        self._options, self._schemas = options, schemas
        self.passes_on: bool = options[PROPAGATE]
        protocol = options.client.get("security.protocol", "PLAINTEXT").upper()
        if self.passes_on and not protocol.startswith("SASL_"):
            raise BadOption(
                f"security.protocol: '{protocol}' has no logins to pass on ({PROPAGATE}); it must be SASL_SSL or SASL_PLAINTEXT"
            )
        self._salt = os.urandom(32)
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, Caller] = OrderedDict()

    def run_as(self, header: str, work: Callable[..., T], *arguments: Any) -> T:
        """In a thread: with the clients of this header's login. SqlRefused (40100) where it is missing or not good."""
        if not self.passes_on:
            return work(*arguments)
        caller = self._of(header)
        with self._acting_as(caller):
            return work(*arguments)

    @contextmanager
    def _acting_as(self, caller: Caller) -> Iterator[None]:
        token = _acting.set(caller)
        caller.in_use += 1
        try:
            yield
        finally:
            caller.in_use -= 1
            caller.used_s = time.monotonic()
            _acting.reset(token)

    def _of(self, header: str) -> Caller:
        key = hashlib.blake2b(header.encode("latin-1", "replace"), key=self._salt, digest_size=16).digest()
        with self._lock:
            known = self._known.get(key)
        if known is not None:
            return known
        made = Caller(self._options, login_of(header), self._schemas)
        try:
            made.check()
        except Unreachable as error:
            made.close()
            if _is_login_failure(error):
                raise SqlRefused(f"The brokers do not let you in: {error}", code=UNAUTHORIZED) from None
            raise
        with self._lock:
            known = self._known.setdefault(key, made)
            idle = self._idle()
        for each in idle:
            each.close()
        return known

    def _idle(self) -> list[Caller]:
        now_s = time.monotonic()
        oldest = sorted(self._known.items(), key=lambda each: each[1].used_s)
        doomed = []
        for key, each in oldest:
            too_many = len(self._known) > MAX_CALLERS
            if not each.in_use and (too_many or now_s - each.used_s > IDLE_S):
                doomed.append(self._known.pop(key))
        return doomed

    def close(self) -> None:
        for each in (self.own, *self._known.values()):
            each.close()


def login_of(header: str) -> Login:
    """Of the header Authorization. SqlRefused."""
    scheme, _, credentials = header.partition(" ")
    if scheme.lower() != "basic" or len(credentials) > MAX_LOGIN_CHARS:
        raise SqlRefused("A name and a password are needed (HTTP basic).", code=UNAUTHORIZED)
    try:
        name, colon, password = base64.b64decode(credentials.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise SqlRefused("The login cannot be read.", code=UNAUTHORIZED) from None
    if not colon or not name:
        raise SqlRefused("A name and a password are needed (HTTP basic).", code=UNAUTHORIZED)
    return Login(name, password)


def _is_login_failure(error: Unreachable) -> bool:
    """The client's errors have no class of their own for it, only these words."""
    text = str(error)
    return "(option sasl." in text or "does not let us in" in text
