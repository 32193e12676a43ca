"""Logins that compute or wait have threads of their own, and a bound on what waits."""

import asyncio
import threading
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.access import kerberos_login
from penstock.broker.access import logins as logins_module
from penstock.broker.access.bearer_login import BearerExchange, UnsecuredChecks
from penstock.broker.access.kerberos_login import KerberosExchange
from penstock.broker.access.logins import ListenerLogins, Login
from penstock.broker.requests.later import Later, settled
from penstock.config.loading import load
from penstock.runtime.pools import Pools
from penstock.security.bearer import REFUSED, UnsecuredRules, first_message
from penstock.security.sasl import LoginFailed
from tests.hostile.raw_client import header_of

KERBEROS = 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="k" principal="p";'


def test_a_kerberos_library_that_hangs_holds_up_no_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(kerberos_login, "kerberos_logins", lambda *arguments: given.extend(arguments))

    async def scenario() -> None:
        pools, may_end = Pools(asyncio.get_running_loop()), threading.Event()
        options = {
            "sasl.enabled.mechanisms": "GSSAPI",
            "listener.name.login.gssapi.sasl.jaas.config": KERBEROS,
        }
        node: Any = SimpleNamespace(config=load(options, {})[0], pools=pools)
        unused: Any = None
        ListenerLogins(node, "LOGIN", unused, unused)
        try:
            hanging = [given[-1].run(may_end.wait, 60) for _ in range(20)]
            async with asyncio.timeout(20):
                assert await pools.handshakes.run(lambda: "done") == "done"
                assert await pools.logins.run(lambda: "done") == "done"
            may_end.set()
            await asyncio.gather(*hanging)
        finally:
            may_end.set()
            pools.close()

    asyncio.run(scenario())


def test_access_tokens_are_not_checked_where_handshakes_are_made() -> None:
    async def scenario() -> None:
        pools = Pools(asyncio.get_running_loop())
        node: Any = SimpleNamespace(
            pools=SimpleNamespace(logins=pools.logins), clock=SimpleNamespace(now_ms=int)
        )
        exchange = BearerExchange(UnsecuredChecks(node, UnsecuredRules()))
        assert await settled(exchange.step(first_message("a.b.c"))) == REFUSED.encode()
        pools.close()

    asyncio.run(scenario())


class Waiting:
    """A mechanism whose answers never come."""

    user, is_token, good_until_ms = None, False, None

    def step(self, token: bytes) -> Later[bytes]:
        async def wait() -> bytes:
            await asyncio.Event().wait()
            return b""

        return Later(wait())


class Stranger:
    """Stands for a connection."""

    def __init__(self) -> None:
        self.login: Login | None = None
        self.reason: str | None = None
        self.is_closed = False

    def close(self, reason: str | None = None) -> None:
        self.is_closed, self.reason = True, reason

    def close_when_sent(self) -> None: ...


def waiting_logins() -> ListenerLogins:
    unused: Any = None
    node: Any = SimpleNamespace(config=load({"sasl.enabled.mechanisms": ""}, {})[0])
    logins = ListenerLogins(node, "LOGIN", lambda *_: None, unused)
    logins.mechanisms["WAITING"] = Waiting
    return logins


def test_tokens_that_wait_have_a_bound_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins_module, "MAX_WAITING_BYTES", 1000)

    async def begun(logins: ListenerLogins, size: int) -> tuple[Any, "asyncio.Task[bytes] | None"]:
        connection: Any = Stranger()
        login = Login(logins)
        login.handshake(connection, "WAITING", 1)
        try:
            return connection, asyncio.ensure_future(settled(login.step(connection, bytes(size))))
        except LoginFailed:
            return connection, None

    async def scenario() -> None:
        logins = waiting_logins()
        tasks = [(await begun(logins, 400))[1] for _ in range(2)]
        connection, refused = await begun(logins, 400)
        assert refused is None
        assert connection.reason == "too many logins at once"
        for task in filter(None, tasks):
            await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        assert logins.waiting_bytes == 0
        connection, taken = await begun(logins, 400)
        assert taken is not None
        await asyncio.sleep(0)
        taken.cancel()

    asyncio.run(scenario())


def test_a_stranger_is_answered_for_a_while_only() -> None:
    logins, stranger = waiting_logins(), Stranger()
    connection: Any = stranger
    frame = memoryview(header_of(18, 0))
    for _ in range(logins_module.MAX_REQUESTS):
        logins.receive(connection, frame)
        assert not stranger.is_closed
    logins.receive(connection, frame)
    assert stranger.reason == "more than 50 requests before a login"


def test_a_token_that_is_too_long_does_not_wait_for_a_thread() -> None:
    unused: Any = None
    for exchange in (BearerExchange(unused), KerberosExchange(unused, unused, unused)):
        with pytest.raises(LoginFailed) as failure:
            exchange.step(bytes((64 << 10) + 1))
        assert "too long" in failure.value.cause
