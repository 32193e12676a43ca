"""A broker of ours that checks access rules, in a thread of the test's process: a test sets the rules while it runs."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from penstock.broker.node import Node
from penstock.broker.serving import BrokerServer, Ports
from penstock.client.connection import BrokerConnection
from penstock.client.security import security_of
from penstock.config.loading import load
from penstock.metadata.image import BrokerRegistration
from penstock.metadata.tree import MetadataTree
from penstock.model.acl import Pattern, Rule
from penstock.model.endpoints import Address, Endpoint
from penstock.net.buffers import ReceiveBuffers
from penstock.net.listener import Listener, ListenLimits, bind
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.stores.embedded import open_store
from penstock.testing.processes import free_port
from penstock.wire.schema import Message
from tests.security.guard_cases import answer_type

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
LIMITS = ListenLimits(16 << 20, 1000, 1000, 600, -1, -1)
LISTENER = "SASL_PLAINTEXT"
WAIT_S = 60.0
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


class GuardedBroker:
    """Use as a context. One listener, with logins by PLAIN; each user's password is its name. Or one without logins."""

    def __init__(
        self, directory: Path, users: Sequence[str], *, listener: str = LISTENER, **options: str
    ) -> None:
        self._listener = listener
        self._directory = directory
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self.port = free_port()
        names = " ".join(f'user_{user}="{user}"' for user in users)
        self._options = {
            "authorizer.class.name": AUTHORIZER,
            "super.users": "User:admin",
            "log.dirs": str(directory),
            "sasl.enabled.mechanisms": "PLAIN",
            f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": f"{PLAIN} {names};",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            **options,
        }
        self._thread = threading.Thread(target=self._run, name="guarded broker", daemon=True)
        self.node: Node
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def set_rules(self, rules: dict[Pattern, list[Rule]]) -> None:
        """In force for every request that is sent after this returns."""

        def act() -> None:
            for pattern, given in rules.items():
                self.node.authorizer.set_rules(pattern, given)

        self.do(act)

    def do(self, act: Callable[[], Any]) -> Any:
        """On the broker's loop."""

        async def acted() -> Any:
            return act()

        return asyncio.run_coroutine_threadsafe(acted(), self._loop).result(WAIT_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as failure:
            self._failure = failure
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        async def store(_: object) -> MetadataTree:
            return open_store(str(self._directory))

        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        config, _ = load(self._options, {})
        ports = Ports(self._loop, SystemClock(), OsDisk(), random.Random(1), store)
        server = BrokerServer(config, ports, {})
        await server.open(lambda reason: None)
        self.node = server.node
        door = server.node.doors.open(self._listener, server.dispatch.receive)
        limits = LIMITS._replace(max_frame_bytes=door.max_frame_bytes or LIMITS.max_frame_bytes)
        listener = Listener(
            self._listener,
            bind("127.0.0.1", self.port),
            self._loop,
            door.receive,
            ReceiveBuffers(64 << 20),
            lambda: limits,
        )
        endpoint = Endpoint(self._listener, "127.0.0.1", self.port, self._listener)
        await server.join(BrokerRegistration(config.node_id, {self._listener: endpoint}, None))
        listener.start()
        self._ready.set()
        await self._stop.wait()
        await server.hand_over()
        listener.stop_accepting()
        await server.stop(listener.close)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(WAIT_S)
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(WAIT_S)
        assert self._failure is None, self._failure


def ask(address: Address, user: str, request: Message, version: int, *, client_id: str = "test") -> Any:
    """The answer to one request of a user; of nobody (""), who does not log in, at a listener without logins."""
    login = f'{PLAIN} username="{user}" password="{user}";'
    with_login = {"security.protocol": LISTENER, "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
    connection = BrokerConnection(
        address,
        client_id=client_id,
        timeout_s=WAIT_S,
        greeting_timeout_s=WAIT_S,
        security=security_of(with_login if user else {}),
    )
    try:
        return connection.ask(request, answer_type(type(request)), version=version)
    finally:
        connection.close()
