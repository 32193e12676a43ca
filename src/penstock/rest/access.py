"""As whom the cluster sees a request: the proxy's own login, or the one that the request brings.

An `Access` has the clients of one login: the admin library and a producer, each opened when it is first needed. Those of logins
that are passed on are kept while they are used; the broker checks a name and a password before they are kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, TypeVar

from penstock.admin import Cluster
from penstock.client.clients import Bearer, Connection
from penstock.client.errors import BadOption, Unreachable
from penstock.client.reach import check_reachable
from penstock.rest import errors
from penstock.rest.callers import NO_END_S, Caller, caller_of, not_logged_in
from penstock.rest.options import RestOptions
from penstock.rest.produce.known_topics import KnownTopics
from penstock.rest.produce.sender import Sender
from penstock.rest.registry_values import Registries, RegistryValues
from penstock.security.principals import ANONYMOUS, Principal
from penstock.web.call import Call

T = TypeVar("T")

OWN: Final = b""
CHECKS: Final = 4
"""Logins that are tried at the brokers at a time: strangers who try passwords do not take every thread."""
CLUSTER_TIMEOUT_S: Final = 10.0
"""How long a retriable error of the cluster is asked again. A request has its own bound, which is longer."""


class Access:
    """The clients of one login. Everything but `ask`'s question runs on the loop's thread."""

    def __init__(
        self,
        options: RestOptions,
        threads: ThreadPoolExecutor,
        registry: RegistryValues | None,
        *,
        key: bytes = OWN,
        caller: Caller | None = None,
    ) -> None:
        self.key = key
        self.owner: bytes | str = (caller.owner if caller is not None else "") or key
        """Of what is made by this login and by no other."""
        self.principal: Principal = ANONYMOUS if caller is None else caller.principal
        self.registry = registry
        """As this login sees it; None where there is none."""
        self.until_s = NO_END_S if caller is None else caller.until_s
        """Unix time: then the login is over."""
        login = None if caller is None else caller.client
        self._bearer: Bearer | None = None if caller is None else caller.bearer
        self._bootstrap = options.bootstrap
        self._properties = {role: _with_login(given, login) for role, given in options.clients.items()}
        self._threads = threads
        self._cluster: Cluster | None = None
        self._sender: Sender | None = None
        self._is_idempotent = True
        self._closing: set[asyncio.Future[None]] = set()
        self._opening = asyncio.Lock()
        self._cluster_id: str | None = None
        self.topics = KnownTopics(self.ask)
        self.used_s = time.monotonic()
        self.in_use = 0

    def connection(self, role: str) -> Connection:
        return Connection(self._bootstrap, self._properties[role], bearer=self._bearer)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Its clients stay open for so long."""
        self.in_use += 1
        try:
            yield
        finally:
            self.in_use -= 1
            self.used_s = time.monotonic()

    async def ask(self, question: Callable[[Cluster], T]) -> T:
        """Asked in a thread of the bounded pool."""
        if self._cluster is None:
            self._cluster = Cluster.over(self.connection("admin"), timeout_s=CLUSTER_TIMEOUT_S)
        return await asyncio.get_running_loop().run_in_executor(self._threads, question, self._cluster)

    async def in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def cluster_id(self) -> str:
        if self._cluster_id is None:
            found = await self.ask(lambda cluster: cluster.brokers.describe())
            self._cluster_id = found.cluster_id or ""
        return self._cluster_id

    def sender_at_once(self) -> Sender | None:
        return self._sender if self._sender is not None and self._sender.is_usable else None

    async def sender(self) -> Sender:
        """The producer of this login. Unreachable where no broker answers yet."""
        async with self._opening:
            sender = self.sender_at_once()
            if sender is None:
                if self._sender is not None:
                    self._is_idempotent = not self._sender.may_not_be_idempotent
                    closing = asyncio.ensure_future(self._sender.close())
                    self._closing.add(closing)
                    closing.add_done_callback(self._closing.discard)
                loop, is_idempotent = asyncio.get_running_loop(), self._is_idempotent
                sender = self._sender = await self.in_thread(
                    lambda: Sender(self.connection("producer"), loop, is_idempotent=is_idempotent)
                )
        return sender

    def check(self) -> None:
        """Unreachable where nobody answers or the login is not good. Blocks."""
        self.connection("admin").wire().close()

    async def close(self) -> None:
        """What is under way ends first. Who still has it may go on: with clients that are opened again."""
        if self._cluster is not None:
            cluster, self._cluster = self._cluster, None
            cluster.close()
        if self._sender is not None:
            sender, self._sender = self._sender, None
            await sender.close()


class Accesses:
    """Each request's access. BadOption where the options cannot be used."""

    def __init__(self, options: RestOptions) -> None:
        self._options = options
        self._threads = ThreadPoolExecutor(options["penstock.admin.threads"], thread_name_prefix="rest-admin")
        self._registries = Registries(options)
        self._own = Access(options, self._threads, self._registries.own)
        self._own.connection("admin")  # says at once what is wrong with its properties
        self._wants_token = options.passes_tokens_on
        protocol = options.clients["admin"].get("security.protocol", "PLAINTEXT").upper()
        if options.passes_logins_on and not protocol.startswith("SASL_"):
            raise BadOption(
                f"client.security.protocol: '{protocol}' has no logins to pass on "
                "(confluent.rest.auth.propagate.method); it must be SASL_SSL or SASL_PLAINTEXT"
            )
        self._salt = os.urandom(32)
        self._by_key: OrderedDict[bytes, Access] = OrderedDict()
        self._limit: int = options["penstock.rest.login.limit"]
        self._idle_s: float = options["penstock.rest.login.idle.ms"] / 1000
        self._checks = asyncio.Semaphore(CHECKS)
        self._closing: set[asyncio.Future[None]] = set()
        self._mechanism = (
            options["penstock.rest.login.mechanism"]
            or options.clients["admin"].get("sasl.mechanism")
            or "PLAIN"
        )

    def at_once(self, call: Call) -> Access | None:
        """None where the login must be checked first."""
        if not self._options.passes_logins_on:
            return self._own
        access = self._by_key.get(self._mark(call.header("authorization")))
        if access is not None and access.until_s <= time.time():
            return None
        if access is not None:
            access.used_s = time.monotonic()
            call.principal = access.principal
        return access

    async def of(self, call: Call) -> Access:
        """HttpError 401 where the login is missing or not good."""
        access = self.at_once(call)
        if access is not None:
            return access
        header = call.header("authorization")
        caller = caller_of(header, wants_token=self._wants_token, mechanism=self._mechanism)
        call.principal = caller.principal
        key = self._mark(header)
        async with self._checks:
            access = self._by_key.get(key)
            if access is None or access.until_s <= time.time():
                self._drop(key)
                registry = self._registries.of(caller)
                access = Access(self._options, self._threads, registry, key=key, caller=caller)
                try:
                    await access.in_thread(access.check)
                except Unreachable as error:
                    if errors.is_login_failure(error):
                        raise not_logged_in(str(error), wants_token=self._wants_token) from None
                    raise
                access = self._by_key.setdefault(key, access)
        self._close_idle()
        return access

    def _mark(self, header: str) -> bytes:
        return hashlib.blake2b(header.encode("latin-1", "replace"), key=self._salt, digest_size=16).digest()

    def _close_idle(self) -> None:
        now_s = time.monotonic()
        idle = sorted((one for one in self._by_key.values() if not one.in_use), key=lambda one: one.used_s)
        for access in idle:
            is_over = now_s - access.used_s > self._idle_s or access.until_s <= time.time()
            if len(self._by_key) > self._limit or is_over:
                self._drop(access.key)

    def _drop(self, key: bytes) -> None:
        access = self._by_key.pop(key, None)
        if access is not None:
            closing = asyncio.ensure_future(access.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def problem(self) -> str | None:
        """What is wrong with the way to the cluster; None: nothing."""
        try:
            if self._options.passes_logins_on:
                await self._own.in_thread(
                    lambda: check_reachable(self._options.bootstrap, speaks_plaintext=False, timeout_s=3.0)
                )
            else:
                await self._own.ask(lambda cluster: cluster.brokers.describe())
                if self._own.sender_at_once() is None:
                    await (
                        self._own.sender()
                    )  # an idempotent producer takes its time to begin: not that of a request
        except Exception as error:
            return str(error)
        return None

    def tidy(self) -> None:
        """Now and then."""
        self._close_idle()

    async def close(self) -> None:
        for access in (self._own, *self._by_key.values()):
            await access.close()
        self._registries.close()
        self._threads.shutdown(wait=False, cancel_futures=True)


def _with_login(given: Mapping[str, str], login: Mapping[str, str] | None) -> dict[str, str]:
    """`sasl.jaas.config` and the two names of librdkafka say the same thing: only one of them may be given."""
    if login is None:
        return dict(given)
    return {name: value for name, value in given.items() if name != "sasl.jaas.config"} | dict(login)
