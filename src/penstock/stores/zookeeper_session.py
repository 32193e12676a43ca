"""One session with ZooKeeper, on kazoo's connection: requests out, answers and events in, all on the event loop.

What kazoo does here: the connection's thread, heartbeats, looking for another server, the wire format. What it
lacks is added below: persistent recursive watches and reads of many nodes at once (ZooKeeper 3.6), the order
of answers and events (kazoo has a thread for each; ZooKeeper promises that a change is heard of before its
effect is read, and so do we), and an end: kazoo begins a new session by itself when one has expired, and a
broker must not hold one that nobody registered in.

Threads: `_Inbox` is the only bridge. Everything else of ours runs on the loop.
"""

import asyncio
import logging
import select
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import EXCEPTIONS, ConnectionDropped, NoNodeError
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import _CONNECTION_DROP, CLOSE_RESPONSE, STOP_CONNECTING, ConnectionHandler
from kazoo.protocol.serialization import (
    GetChildren,
    GetData,
    MultiHeader,
    Watch,
    int_struct,
    multiheader_struct,
    read_buffer,
    read_string,
    stat_struct,
    write_string,
)
from kazoo.protocol.states import KazooState, KeeperState, ZnodeStat
from kazoo.retry import KazooRetry

from penstock.metadata.tree import TreeError
from penstock.stores.zookeeper_requests import refusal

RETRY_DELAY_S = 0.05
MAX_RETRY_DELAY_S = 1.0
MIN_CONNECT_TIMEOUT_S = 0.5
RECEIVE_BYTES = 65_536
MAX_ANSWER_BYTES = 256 * 1024 * 1024  # of `ReadMany`; single answers are far below
PERSISTENT_RECURSIVE = 1

_log = logging.getLogger("penstock.stores")
# Kazoo tells of every attempt to connect; we tell of the first and of the last.
_kazoo_log = logging.getLogger("penstock.stores.kazoo")
_kazoo_log.setLevel(logging.ERROR)

Answer = Callable[[Any, Exception | None], None]


class AddWatch:
    """Tell of every change at or below the path until the connection ends."""

    type = 106

    def __init__(self, path: str) -> None:
        self._path = path

    def serialize(self) -> bytes:
        return bytes(write_string(self._path) + int_struct.pack(PERSISTENT_RECURSIVE))

    @staticmethod
    def deserialize(buffer: bytes, offset: int) -> bool:
        return True


class Found(NamedTuple):
    data: bytes
    stat: Any
    children: list[str]


class ReadMany:
    """Data and children of many nodes in one request; what is not there is None in the answer. What we may not read makes
    the answer a refusal as a whole: taken for a node that is not there, it would count as deleted."""

    type = 22

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    def serialize(self) -> bytes:
        parts = bytearray()
        for path in self._paths:
            for op in (GetData(path, None), GetChildren(path, None)):
                parts += MultiHeader(op.type, False, -1).serialize() + op.serialize()
        return bytes(parts + multiheader_struct.pack(-1, True, -1))

    def deserialize(self, buffer: bytes, offset: int) -> "list[Found | None] | TreeError":
        results: list[Any] = []
        while True:
            header, offset = MultiHeader.deserialize(buffer, offset)
            if header.done:
                break
            if header.type == GetData.type:
                data, offset = read_buffer(buffer, offset)
                results.append((data or b"", ZnodeStat._make(stat_struct.unpack_from(buffer, offset))))
                offset += stat_struct.size
            elif header.type == GetChildren.type:
                (count,) = int_struct.unpack_from(buffer, offset)
                offset += int_struct.size
                names = []
                for _ in range(count):
                    name, offset = read_string(buffer, offset)
                    names.append(name)
                results.append(names)
            else:
                (code,) = int_struct.unpack_from(buffer, offset)
                offset += int_struct.size
                if code != NoNodeError.code:
                    # Returned, not raised: kazoo would log it with its traceback.
                    return refusal(EXCEPTIONS[code](), self._paths[len(results) // 2])
                results.append(None)
        pairs = zip(results[::2], results[1::2], strict=True)
        return [
            Found(first[0], first[1], names) if first is not None and names is not None else None
            for first, names in pairs
        ]


class SessionEvents(NamedTuple):
    """Called on the loop. `connected` comes with the session timeout that the server granted, in seconds;
    `ended` when the session expired, was refused or was closed."""

    connected: Callable[[float], None]
    suspended: Callable[[], None]
    ended: Callable[[], None]
    changed: Callable[[int, str], None]


class Session:
    def __init__(
        self,
        hosts: str,
        *,
        timeout_s: float,
        auth: str | None,
        events: SessionEvents,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._inbox = _Inbox(loop)
        self._loop = loop
        self._events = events
        handler = _Handler()
        self._client = KazooClient(
            hosts=hosts,
            timeout=timeout_s,
            handler=handler,
            auth_data={("digest", auth)} if auth is not None else None,
            connection_retry=KazooRetry(
                max_tries=-1, delay=RETRY_DELAY_S, max_delay=MAX_RETRY_DELAY_S, sleep_func=handler.sleep_func
            ),
            logger=_kazoo_log,
        )
        handler.connect_timeout_s = max(MIN_CONNECT_TIMEOUT_S, timeout_s / 3 / len(self._client.hosts))
        self._client._connection = _Connection(self._client, self._inbox, events)
        self._client.add_listener(self._state_changed)

    def start(self) -> None:
        self._client.start_async()

    @property
    def session_id(self) -> int:
        return self._client._session_id or 0

    @property
    def server(self) -> str:
        """The server that we are, or were last, connected to."""
        last = self._client._connection.last_server
        return f"{last[0]}:{last[1]}" if last is not None else ""

    def send(self, request: Any, answer: Answer) -> None:
        self._client._call(request, _Reply(self._inbox, answer))

    def drop_connection(self) -> None:
        """Look for another server, with the same session: this one is silent."""
        self._client._call(_CONNECTION_DROP, _Reply(self._inbox, lambda value, error: None))

    def close(self) -> "asyncio.Future[None]":
        """Ends the session at the server if one answers; the result is done when the thread has ended.

        Requests under way are answered with an error. kazoo waits for its thread, hence a thread for waiting.
        """
        done: asyncio.Future[None] = self._loop.create_future()

        def end() -> None:
            try:
                self._client.stop()
                self._client.close()
            except Exception as error:
                _kazoo_log.error("the session did not end as it should: %r", error)
            self._inbox.put(lambda: None if done.done() else done.set_result(None))

        threading.Thread(target=end, name="zookeeper-close", daemon=True).start()
        return done

    def _state_changed(self, state: str) -> None:
        """In the connection's thread."""
        if state == KazooState.SUSPENDED:
            self._inbox.put(self._events.suspended)
        elif state == KazooState.LOST:
            self._inbox.put(self._events.ended)


class _Inbox:
    """From any thread to the loop, in order, one wake-up for all that has gathered."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_woken = False

    def put(self, call: Callable[[], None]) -> None:
        self._waiting.append(call)
        if not self._is_woken:
            self._is_woken = True
            try:
                self._loop.call_soon_threadsafe(self._empty)
            except RuntimeError:
                pass  # the loop is closed: nobody waits any more

    def _empty(self) -> None:
        # Lowered first: whoever puts something in from here on wakes the loop again, which then finds nothing.
        self._is_woken = False
        while self._waiting:
            call = self._waiting.popleft()
            try:
                call()
            except Exception:
                _log.exception("an answer of ZooKeeper was not taken")


class _Reply:
    """What kazoo gives an answer to, in its thread."""

    __slots__ = ("_answer", "_inbox")

    def __init__(self, inbox: _Inbox, answer: Answer) -> None:
        self._inbox = inbox
        self._answer = answer

    def set(self, value: Any) -> None:
        if isinstance(value, TreeError):
            self.set_exception(value)
        else:
            self._inbox.put(lambda: self._answer(value, None))

    def set_exception(self, error: Exception) -> None:
        self._inbox.put(lambda: self._answer(None, error))


class _Handler(SequentialThreadingHandler):
    """No threads for callbacks, as `_Inbox` carries them; and a limit to waiting for one server of several."""

    connect_timeout_s = MIN_CONNECT_TIMEOUT_S

    def start(self) -> None:
        self._running = True

    def stop(self) -> None:
        self._running = False

    def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["timeout"] = self.connect_timeout_s
        return super().create_connection(*args, **kwargs)

    def select(
        self,
        readers: Sequence[Any],
        writers: Sequence[Any],
        others: Sequence[Any],
        timeout: float | None = None,
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """kazoo's makes an epoll descriptor for each wait, of which there are several for each message."""
        poll = select.poll()
        by_descriptor = {each.fileno(): each for each in (*readers, *writers)}
        for each in readers:
            poll.register(each, select.POLLIN)
        for each in writers:
            poll.register(each, select.POLLOUT)
        ready = [by_descriptor[fd] for fd, _ in poll.poll(None if timeout is None else timeout * 1000)]
        return [each for each in ready if each in readers], [each for each in ready if each in writers], []


class _Connection(ConnectionHandler):
    """In kazoo's thread."""

    def __init__(self, client: KazooClient, inbox: _Inbox, events: SessionEvents) -> None:
        super().__init__(client, client._conn_retry.copy(), logger=_kazoo_log)
        self._inbox = inbox
        self._events = events
        self._received = bytearray()  # taken from the socket, not yet read
        self.last_server: tuple[str, int] | None = None

    def _expand_client_hosts(self) -> list[tuple[str, str, int]]:
        """The server that we lost comes last."""
        found: list[tuple[str, str, int]] = super()._expand_client_hosts()
        return sorted(found, key=lambda host: host[1:] == self.last_server)

    def _connect(self, host: str, hostip: str, port: int) -> tuple[float, float]:
        self.last_server = (hostip, port)
        self._received.clear()
        read_timeout_ms, connect_timeout_ms = super()._connect(host, hostip, port)
        granted_s = read_timeout_ms * 1.5 / 1000  # kazoo reads for two thirds of a session
        self._inbox.put(lambda: self._events.connected(granted_s))
        return read_timeout_ms, connect_timeout_ms

    def _connect_attempt(self, host: str, hostip: str, port: int, retry: KazooRetry) -> Any:
        status = super()._connect_attempt(host, hostip, port, retry)
        if self.client.client_state == KeeperState.EXPIRED_SESSION:
            return STOP_CONNECTING
        return status

    def _read(self, length: int, timeout: float) -> bytes:
        if not 0 <= length <= MAX_ANSWER_BYTES:
            raise ConnectionDropped("that is no ZooKeeper server")
        while len(self._received) < length:
            self._receive(timeout)
        taken = bytes(self._received[:length])
        del self._received[:length]
        return taken

    def _receive(self, timeout: float) -> None:
        with self._socket_error_handling():
            if not self.handler.select([self._socket], [], [], timeout)[0]:
                raise self.handler.timeout_exception("no answer")
            chunk = self._socket.recv(RECEIVE_BYTES)
        if not chunk:
            raise ConnectionDropped("the server has closed the connection")
        self._received += chunk

    def _read_socket(self, read_timeout: float) -> Any:
        """All messages that have come: kazoo waits for the socket before each, and what we took is not there."""
        while True:
            answer = super()._read_socket(read_timeout)
            if answer == CLOSE_RESPONSE or len(self._received) < int_struct.size:
                return answer
            (length,) = int_struct.unpack_from(self._received)
            if len(self._received) < int_struct.size + length:
                return answer

    def _read_watch_event(self, buffer: bytes, offset: int) -> None:
        watch, _ = Watch.deserialize(buffer, offset)
        self._inbox.put(lambda: self._events.changed(watch.type, watch.path))
