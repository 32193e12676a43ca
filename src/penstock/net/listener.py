"""Listening sockets: accept, bound the number of connections, and close those that have been idle too long."""

import errno
import logging
import socket
from asyncio import AbstractEventLoop, TimerHandle
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from penstock.net.buffers import ReceiveBuffers
from penstock.net.connection import Connection, Receiver, plain_host
from penstock.net.outbox import Outbox

log = logging.getLogger("penstock.net")

BACKLOG: Final = 512
ACCEPTS_PER_WAKE: Final = 64
ACCEPT_PAUSE_SECONDS: Final = 1.0
"""How long we wait before accepting again when the process has no file descriptor left."""
IDLE_SWEEP_SECONDS: Final = 10.0


class ListenLimits(NamedTuple):
    max_frame_bytes: int
    max_connections: int
    max_connections_per_ip: int
    max_idle_seconds: float
    send_buffer_bytes: int
    receive_buffer_bytes: int


class Listener:
    """One address the broker listens on, and the connections that came in through it. `limits` are asked for with each
    connection: they may change."""

    def __init__(
        self, name: str, sock: socket.socket, loop: AbstractEventLoop, receiver: Receiver, buffers: ReceiveBuffers,
        limits: Callable[[], ListenLimits],
    ) -> None:  # fmt: skip
        self.name = name
        self._socket = sock
        self._loop = loop
        self._receiver = receiver
        self._buffers = buffers
        self._outbox = Outbox(loop)
        self._limits = limits
        self.connections: set[Connection] = set()
        self._by_ip: Counter[str] = Counter()
        self._timer: TimerHandle | None = None
        self._is_accepting = False
        self._sweep_seconds = min(IDLE_SWEEP_SECONDS, max(limits().max_idle_seconds / 2, 0.1))
        address = sock.getsockname()
        self.host = str(address[0])
        self.port = int(address[1])

    def start(self) -> None:
        self._accept_again()
        if self._limits().max_idle_seconds >= 0:  # Kafka: a negative connections.max.idle.ms means for ever
            self._timer = self._loop.call_later(self._sweep_seconds, self._sweep)

    def stop_accepting(self) -> None:
        if self._is_accepting:
            self._is_accepting = False
            self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        self._outbox.send()
        for connection in list(self.connections):
            connection.close()

    def _accept_again(self) -> None:
        if self._socket.fileno() >= 0:
            self._is_accepting = True
            self._loop.add_reader(self._socket.fileno(), self._on_acceptable)

    def _on_acceptable(self) -> None:
        for _ in range(ACCEPTS_PER_WAKE):
            try:
                sock, address = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    log.error("cannot accept a connection: %s; trying again in a second", error.strerror)
                    self._is_accepting = False
                    self._loop.remove_reader(self._socket.fileno())
                    self._loop.call_later(ACCEPT_PAUSE_SECONDS, self._accept_again)
                    return
                continue
            self._welcome(sock, plain_host(address[0]))

    def _welcome(self, sock: socket.socket, host: str) -> None:
        limits = self._limits()
        if (
            len(self.connections) >= limits.max_connections
            or self._by_ip[host] >= limits.max_connections_per_ip
        ):
            log.warning(
                "refusing a connection from %s: max.connections or max.connections.per.ip is reached", host
            )
            sock.close()
            return
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if limits.send_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.send_buffer_bytes)
            if limits.receive_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, limits.receive_buffer_bytes)
            connection = Connection(
                sock, self._loop, self._receiver, self._buffers, self._outbox,
                listener_name=self.name, max_frame_bytes=limits.max_frame_bytes, on_close=self._farewell,
            )  # fmt: skip
        except OSError:  # the client was gone before we looked
            sock.close()
            return
        self.connections.add(connection)
        self._by_ip[host] += 1

    def _farewell(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._by_ip[connection.peer_host] -= 1
        if not self._by_ip[connection.peer_host]:
            del self._by_ip[connection.peer_host]

    def _sweep(self) -> None:
        oldest = self._loop.time() - self._limits().max_idle_seconds
        for connection in [c for c in self.connections if c.last_active < oldest]:
            connection.close()
        self._timer = self._loop.call_later(self._sweep_seconds, self._sweep)


def bind(host: str, port: int, *, backlog: int = BACKLOG) -> socket.socket:
    """A listening socket. An empty host means every interface, over IPv4 and IPv6 where the machine has both."""
    if host in ("", "0.0.0.0") and socket.has_ipv6:
        try:
            return _bind(socket.AF_INET6, "::", port, backlog=backlog, dual_stack=True)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return _bind(family, host or "0.0.0.0", port, backlog=backlog, dual_stack=False)


def _bind(
    family: socket.AddressFamily, host: str, port: int, *, backlog: int, dual_stack: bool
) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if dual_stack:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind((host, port))
        sock.listen(backlog)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock
