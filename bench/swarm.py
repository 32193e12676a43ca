"""Thousands of clients in one thread: a connection each, and a script that says what it asks next.

A script is a generator. It yields an `Ask` and is given the answer, decoded; or it yields a `Pause` in seconds. So a
member of a group reads from top to bottom, and costs no more than its messages:

    joined = yield ask(JoinGroupRequest(…), JoinGroupResponse, 9)

`Swarm.run` starts the scripts in the order given and returns when all have ended. Where nobody is answered for
ANSWER_TIMEOUT_S although somebody waits, it is a TimeoutError.
"""

import heapq
import select
import socket
import struct
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from penstock.wire.codec import decode, encode
from penstock.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.wire.schema import Message

ANSWER_TIMEOUT_S = 30.0
RECEIVE_BYTES = 256 * 1024
CLIENT_ID = b"bench"
CORRELATION_ID = 7  # a connection has one question open at a time
# Of connections that wait to be accepted the kernel keeps as many as socket.listen.backlog.size says, 50 in both
# servers, and lets the others try again after a second.
CONNECTIONS_AT_ONCE = 32


class Ask(NamedTuple):
    frame: bytes
    response: type[Message]
    version: int
    body_offset: int


class Pause(NamedTuple):
    seconds: float


Script = Generator[Ask | Pause, Any, None]


def ask(request: Message, response: type[Message], version: int) -> Ask:
    """May be yielded again: its bytes are made once."""
    is_flexible = version >= request.FLEXIBLE_FROM
    header = struct.pack(">hhih", request.API_KEY, version, CORRELATION_ID, len(CLIENT_ID)) + CLIENT_ID
    rest = header + (b"\0" if is_flexible else b"") + encode(request, version)
    # The response header ends with tagged fields in flexible versions; nobody sends any.
    return Ask(struct.pack(">i", len(rest)) + rest, response, version, 5 if is_flexible else 4)


class Connection:
    __slots__ = ("asked", "received", "script", "sock")

    def __init__(self, host: str, port: int) -> None:
        self.sock = socket.create_connection((host, port), timeout=ANSWER_TIMEOUT_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.script: Script | None = None
        self.asked: Ask | None = None

    def wait_until_accepted(self) -> None:
        self.sock.sendall(ask(ApiVersionsRequest(), ApiVersionsResponse, 0).frame)
        while self.receive() is None:
            pass

    def receive(self) -> bytes | None:
        """The whole answer without its size, or None while a part of it is missing."""
        chunk = self.sock.recv(RECEIVE_BYTES)
        if not chunk:
            raise ConnectionError("the broker closed a connection")
        data = self.received + chunk if self.received else chunk
        if len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            self.received = data
            return None
        self.received = b""
        return data[4:]


class Swarm:
    def __init__(self, bootstrap: str, connection_count: int) -> None:
        host, port = bootstrap.split(":")
        self.connections: list[Connection] = []
        for number in range(1, connection_count + 1):
            self.connections.append(Connection(host, int(port)))
            if number % CONNECTIONS_AT_ONCE == 0:
                self.connections[-1].wait_until_accepted()
        self._by_number = {each.sock.fileno(): each for each in self.connections}
        self._poll = select.epoll()
        for number in self._by_number:
            self._poll.register(number, select.EPOLLIN)
        self._pauses: list[tuple[float, int, Connection]] = []
        self._pause_count = 0
        self._running = 0
        self.request_count = 0

    def close(self) -> None:
        self._poll.close()
        for each in self.connections:
            each.sock.close()

    def run(self, scripts: Iterable[tuple[Connection, Script]]) -> None:
        for connection, script in scripts:
            connection.script = script
            self._running += 1
            self._go_on(connection, None)
        while self._running:
            self._wake_paused()
            if self._running:
                self._receive_ready()

    def _receive_ready(self) -> None:
        until_pause_s = max(0.0, self._pauses[0][0] - time.monotonic()) if self._pauses else ANSWER_TIMEOUT_S
        ready = self._poll.poll(until_pause_s)
        if not ready and not self._pauses:
            raise TimeoutError(f"{self._running} clients got no answer within {ANSWER_TIMEOUT_S:g} s")
        for number, _ in ready:
            connection = self._by_number[number]
            answer = connection.receive()
            if answer is not None:
                asked = connection.asked
                if asked is None:
                    raise ConnectionError("the broker answered what nobody asked")
                self._go_on(connection, decode(asked.response, asked.version, answer, asked.body_offset)[0])

    def _wake_paused(self) -> None:
        now = time.monotonic()
        while self._pauses and self._pauses[0][0] <= now:
            self._go_on(heapq.heappop(self._pauses)[2], None)

    def _go_on(self, connection: Connection, answer: Message | None) -> None:
        assert connection.script is not None
        connection.asked = None
        try:
            step = connection.script.send(answer)
        except StopIteration:
            connection.script = None
            self._running -= 1
            return
        if isinstance(step, Ask):
            connection.asked = step
            self.request_count += 1
            connection.sock.sendall(step.frame)
        else:
            self._pause_count += 1
            heapq.heappush(self._pauses, (time.monotonic() + step.seconds, self._pause_count, connection))


@contextmanager
def swarm(bootstrap: str, connection_count: int) -> Iterator[Swarm]:
    opened = Swarm(bootstrap, connection_count)
    try:
        yield opened
    finally:
        opened.close()
