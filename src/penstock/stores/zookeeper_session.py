"""One session with ZooKeeper over its wire protocol, on the event loop: requests out, answers and events in, in their order.

The session outlives its connections: when one is lost, another server is looked for, without an end, and asked for the same
session. Only a server can say that it has expired; then, and when it is refused or closed, this object is done, and a new session
is a new object, since a broker must not hold one in which nobody registered.

A server hears from us each third of the timeout at least, and one that is silent for two thirds is left for another.
"""

import logging
import socket
import ssl
from asyncio import AbstractEventLoop, Future, Protocol, Task, Transport, sleep, timeout
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from random import random, shuffle
from typing import Any, Final, NamedTuple, cast

from penstock.runtime.pools import NAMES, Pool
from penstock.stores import zookeeper_wire as wire
from penstock.stores.zookeeper_absence import ASK_AGAIN_S, lacks_data
from penstock.stores.zookeeper_sasl import log_in
from penstock.stores.zookeeper_security import OPEN, ZooKeeperSecurity, why_not

RETRY_DELAY_S: Final = 0.05
MAX_RETRY_DELAY_S: Final = 1.0
MIN_CONNECTION_S: Final = 1.0
"""After one that lasted so long another server is asked at once."""
MIN_CONNECT_TIMEOUT_S: Final = 0.5
PING_SHARE: Final = 1 / 3
SILENCE_SHARE: Final = 2 / 3
LOOKS_PER_PING: Final = 2
MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024  # of `ReadMany`; single answers are far below
LENGTH_BYTES: Final = 4

_log = logging.getLogger("penstock.stores")

Take = Callable[[Any, Exception | None], None]
Address = tuple[str, int]


class ConnectionLoss(Exception):
    """A request was sent, and no answer came before the connection was gone."""


class SessionEvents(NamedTuple):
    """`connected` comes with the session timeout that the server granted, in seconds; `ended` when the session expired or
    was refused; `absent` now and then while no server takes the session, with what keeps one from it, where that is known."""

    connected: Callable[[float], None]
    suspended: Callable[[], None]
    ended: Callable[[], None]
    changed: Callable[[int, str], None]
    absent: Callable[[str], None]


class Session:
    def __init__(
        self,
        servers: Sequence[Address],
        *,
        timeout_s: float,
        auth: str | None,
        events: SessionEvents,
        loop: AbstractEventLoop,
        security: ZooKeeperSecurity = OPEN,
    ) -> None:
        self._servers = servers
        self._security = security
        self._hosts: dict[Address, str] = {}
        """The names of which addresses were found: certificates have names."""
        self.trouble = ""
        """Why the last server that we tried does not take us, where that is known."""
        self._timeout_s = timeout_s
        self._auth = auth
        self._events = events
        self._loop = loop
        self._names = Pool(loop, "zookeeper-names", NAMES)
        self._connection: _Connection | None = None
        self._task: Task[None] | None = None
        self._closed: Future[None] = loop.create_future()
        self._password = bytes(wire.PASSWORD_BYTES)
        self._last_zxid = 0
        self._last_server: Address | None = None
        self._has_ended = False
        self._refused_by: Address | None = None
        self._explain_at = 0.0
        self.session_id = 0

    def start(self) -> None:
        self._task = self._loop.create_task(self._stay_connected())

    @property
    def server(self) -> str:
        """The server that we are, or were last, connected to."""
        return "" if self._last_server is None else f"{self._last_server[0]}:{self._last_server[1]}"

    def send(self, request: wire.Request, take: Take) -> None:
        """`take` is told the answer, or Refused, or ConnectionLoss."""
        if self._connection is None:
            take(None, ConnectionLoss())
        else:
            self._connection.send(request, take)

    def drop_connection(self) -> None:
        """Look for another server, with the same session: this one is silent."""
        if self._connection is not None:
            self._connection.drop("it does not answer")

    def close(self) -> "Future[None]":
        """Ends the session at the server if one answers; the result is done when it has said so, or cannot.

        Requests under way are answered with an error.
        """
        self._has_ended = True
        if self._connection is not None and not self._closed.done():
            self._connection.say_goodbye()
        else:
            self._end()
        return self._closed

    def _end(self) -> None:
        self._has_ended = True
        if self._task is not None:
            self._task.cancel()
        self._names.close()
        if not self._closed.done():
            self._closed.set_result(None)

    # --- looking for a server

    async def _stay_connected(self) -> None:
        delay_s = RETRY_DELAY_S
        while not self._has_ended:
            lost: Future[None] | None = None
            self._refused_by = None
            began = 0.0
            for address in await self._addresses():
                lost = await self._connect(address)
                if lost is not None:
                    began = self._loop.time()
                    await lost
                    break
            if lost is not None and self._loop.time() - began >= MIN_CONNECTION_S:
                delay_s = RETRY_DELAY_S
            else:  # also a server that takes us and drops us each time is not asked without a pause
                if lost is None:
                    await self._explain()
                await sleep(delay_s * (0.5 + random()))
                delay_s = min(2 * delay_s, MAX_RETRY_DELAY_S)

    async def _explain(self) -> None:
        """Why nobody serves a session that was there, as far as a server says so."""
        now = self._loop.time()
        if self.session_id == 0 or now < self._explain_at:
            return
        self._explain_at = now + ASK_AGAIN_S
        lacks = ""
        if self._refused_by is not None:
            ask = partial(lacks_data, self._refused_by, self._last_zxid, self._connect_timeout_s)
            lacks = await self._names.run(ask)
        if not self._has_ended:
            self._events.absent(lacks)

    async def _addresses(self) -> list[Address]:
        """Of all servers, in any order; the one that we lost comes last."""
        found: list[Address] = []
        for host, port in self._servers:
            look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
            try:
                async with timeout(self._connect_timeout_s):
                    infos = await self._names.run(look_up)
            except (OSError, UnicodeError) as error:  # TimeoutError too; the last one: it can be no name
                _log.debug("%s cannot be looked up: %s", host, error)
                continue
            addresses = [(str(address[0]), int(address[1])) for *_, address in infos]
            self._hosts.update(dict.fromkeys(addresses, host))
            found += addresses
        shuffle(found)
        return sorted(found, key=lambda address: address == self._last_server)

    async def _connect(self, address: Address) -> "Future[None] | None":
        """Done when the connection is lost; None when there was none to be had."""
        host, port = address
        hello = wire.connect_frame(
            last_zxid=self._last_zxid,
            timeout_ms=int(self._timeout_s * 1000),
            session_id=self.session_id,
            password=self._password,
        )
        connection = _Connection(self, self._loop)
        try:
            async with timeout(self._connect_timeout_s):
                tls = self._security.tls
                name = self._hosts.get(address, host) if tls is not None else None
                await self._loop.create_connection(
                    lambda: connection, host, port, ssl=tls, server_hostname=name
                )
                self._last_server = address
                welcome = await connection.greet(hello)
                if self._security.user is not None and welcome.session_id != 0:
                    await log_in(self._security.user, connection.send, self._loop)
        except (OSError, wire.Malformed) as error:  # TimeoutError too
            _log.debug("ZooKeeper at %s:%s: %s", host, port, error)
            self._explain_failure(address, error)
            if isinstance(error, ConnectionResetError) and self._security.tls is None:
                self._refused_by = address
            connection.drop("no welcome")
            return None
        except BaseException:
            connection.drop("nobody needs it any more")
            raise
        if connection.lost.done():
            return None
        self._welcomed(connection, welcome)
        return connection.lost

    def _explain_failure(self, address: Address, error: Exception) -> None:
        uses_tls, is_new = self._security.tls is not None, self.session_id == 0
        trouble = why_not(error, uses_tls=uses_tls, is_new=is_new)
        if trouble and trouble != self.trouble and not is_new:  # else whoever waits for a session says it
            _log.warning("ZooKeeper at %s:%s: %s", *address, trouble)
        self.trouble = trouble or self.trouble

    @property
    def _connect_timeout_s(self) -> float:
        return max(MIN_CONNECT_TIMEOUT_S, self._timeout_s / 3 / len(self._servers))

    def _welcomed(self, connection: "_Connection", welcome: wire.Connected) -> None:
        if welcome.session_id == 0:
            connection.drop("the session has expired")
            self.ended()
        else:
            self.session_id, self._password = welcome.session_id, welcome.password
            self.trouble = ""
            self._connection = connection
            connection.serve(welcome.timeout_ms / 1000, self._auth)
            self._events.connected(welcome.timeout_ms / 1000)

    # --- what a connection tells

    def saw(self, zxid: int) -> None:
        """No server that knows less than this may serve us from now on."""
        self._last_zxid = max(self._last_zxid, zxid)

    def changed(self, event: wire.Event) -> None:
        if not self._has_ended:
            self._events.changed(event.kind, event.path)

    def disconnected(self, connection: "_Connection") -> None:
        if connection is self._connection:
            self._connection = None
            if self._has_ended:
                self._end()
            else:
                self._events.suspended()

    def ended(self) -> None:
        """The server refuses the session."""
        if not self._has_ended:
            self._has_ended = True
            self.drop_connection()
            self._end()
            self._events.ended()


class _Connection(Protocol):
    """One connection to one server. Frames in, in pieces as they come; answers go to their requests in order."""

    def __init__(self, session: Session, loop: AbstractEventLoop) -> None:
        self._session = session
        self._loop = loop
        self._transport: Transport | None = None
        self._received = bytearray()
        self._welcome: Future[wire.Connected] = loop.create_future()
        self._waiting: deque[tuple[int, wire.Request | None, Take]] = deque()
        self._last_xid = 0
        self._looks = 0
        self._looked_at = self._heard_at = loop.time()
        self._timeout_s = 0.0
        self.lost: Future[None] = loop.create_future()

    # --- for the session

    async def greet(self, hello: bytes) -> wire.Connected:
        """ConnectionError or Malformed when it is no server that takes us."""
        if self._transport is None:
            raise ConnectionResetError("closed at once")
        self._transport.write(hello)
        return await self._welcome

    def serve(self, timeout_s: float, auth: str | None) -> None:
        self._timeout_s = timeout_s
        if auth is not None:
            self._write(wire.auth_frame("digest", auth.encode()))
        self._heard_at = self._looked_at = self._loop.time()
        self._look_later()

    def send(self, request: wire.Request, take: Take) -> None:
        self._last_xid = self._last_xid % 0x7FFF_FFFF + 1
        self._waiting.append((self._last_xid, request, take))
        self._write(wire.request_frame(self._last_xid, request))

    def say_goodbye(self) -> None:
        self._last_xid += 1
        self._waiting.append((self._last_xid, None, lambda value, error: self.drop("closed")))
        self._write(wire.frame(self._last_xid, wire.CLOSE_TYPE))

    def drop(self, why: str) -> None:
        """At once: what is on its way is lost."""
        if self._transport is not None:
            _log.debug("a connection to ZooKeeper is closed: %s", why)
            self._transport.abort()
            self.connection_lost(None)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    # --- signs of life

    def _look_later(self) -> None:
        self._loop.call_later(self._timeout_s * PING_SHARE / LOOKS_PER_PING, self._look)

    def _look(self) -> None:
        if self._transport is None:
            return
        now = self._loop.time()
        # After a pause of this process nothing has been read yet: that the server was silent is not known.
        stood_still = now - self._looked_at > self._timeout_s * PING_SHARE
        if not stood_still and now - self._heard_at > self._timeout_s * SILENCE_SHARE:
            self.drop("it is silent")
            return
        self._looked_at = now
        self._looks += 1
        if stood_still or self._looks % LOOKS_PER_PING == 0:
            self._write(wire.frame(wire.PING_XID, wire.PING_TYPE))
        self._look_later()

    # --- for the loop

    def connection_made(self, transport: Any) -> None:
        self._transport = cast(Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        self._received += data
        try:
            while self._transport is not None and (frame := self._next_frame()) is not None:
                self._take(frame)
        except wire.Malformed as error:
            if not self._welcome.done():
                self._welcome.set_exception(error)
            self.drop(str(error))

    def connection_lost(self, error: Exception | None) -> None:
        if self.lost.done():
            return
        self._transport = None
        self.lost.set_result(None)
        if not self._welcome.done():
            reset = ConnectionResetError("closed before the session began")
            self._welcome.set_exception(error if isinstance(error, ssl.SSLError) else reset)
            self._welcome.exception()  # whoever waited may have given up
        self._session.disconnected(self)
        waiting, self._waiting = self._waiting, deque()
        for _, _, take in waiting:
            take(None, ConnectionLoss())

    # --- inside

    def _next_frame(self) -> bytes | None:
        if len(self._received) < LENGTH_BYTES:
            return None
        end = LENGTH_BYTES + int.from_bytes(self._received[:LENGTH_BYTES], "big", signed=True)
        if not LENGTH_BYTES <= end <= MAX_ANSWER_BYTES:
            raise wire.Malformed("that is no ZooKeeper server")
        if len(self._received) < end:
            return None
        frame = bytes(self._received[LENGTH_BYTES:end])
        del self._received[:end]
        return frame

    def _take(self, frame: bytes) -> None:
        if not self._welcome.done():
            self._welcome.set_result(wire.read_connected(frame))
            return
        reader = wire.Reader(frame)
        answer = wire.read_answer(reader)
        if answer.zxid > 0:
            self._session.saw(answer.zxid)
        if answer.xid == wire.WATCH_XID:
            self._session.changed(wire.read_event(reader))
        elif answer.xid == wire.AUTH_XID:
            if answer.code:
                _log.error("ZooKeeper refuses the login (penstock.zookeeper.auth)")
                self._session.ended()
        elif answer.xid != wire.PING_XID:
            self._answer(answer, reader)

    def _answer(self, answer: wire.Answer, reader: wire.Reader) -> None:
        if not self._waiting or self._waiting[0][0] != answer.xid:
            raise wire.Malformed("an answer to nothing that was asked")
        _, request, take = self._waiting[0]
        value: Any = None
        error: Exception | None = None
        if answer.code == wire.Code.SESSION_MOVED:
            self.drop("the session is at another server")
            return
        if answer.code:
            error = wire.Refused(answer.code)
        elif request is not None:
            value = request.answer(reader)
        self._waiting.popleft()
        try:
            take(value, error)
        except Exception:
            _log.exception("an answer of ZooKeeper was not taken")
