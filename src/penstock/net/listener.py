"""Listening sockets: accept, bound the number of connections, and close those that have been idle too long."""

import errno
import logging
import math
import socket
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from penstock.net.admission import UNLIMITED, Admission
from penstock.net.buffers import ReceiveBuffers
from penstock.net.connection import Connection, Receiver, plain_host
from penstock.net.outbox import Outbox
from penstock.runtime.pools import Pool
from penstock.security.principals import ANONYMOUS, Principal

if TYPE_CHECKING:
    import ssl

    from penstock.net.tls import Handshake, TlsSocket

log = logging.getLogger("penstock.net")

BACKLOG: Final = 512
ACCEPTS_PER_WAKE: Final = 64
ACCEPT_PAUSE_SECONDS: Final = 1.0
"""How long we wait before accepting again when the process has no file descriptor left."""
IDLE_SWEEP_SECONDS: Final = 10.0
MUTED_IDLE_SECONDS: Final = 600.0
"""A connection that is muted may be idle for so long at least. Nothing is read from it, so nobody notices that its client has
gone, and who has changed many topics is muted for days."""


class ListenLimits(NamedTuple):
    max_frame_bytes: int
    max_connections: int
    max_connections_per_ip: int
    max_idle_seconds: float
    send_buffer_bytes: int
    receive_buffer_bytes: int
    overrides_per_ip: Mapping[str, int] = {}
    creation_rate: int = UNLIMITED
    """New connections per second."""
    broker_max_connections: int = UNLIMITED
    """Of all listeners together."""
    broker_creation_rate: int = UNLIMITED
    is_protected: bool = False
    """Other brokers come in here: connections do not wait for those of other listeners."""
    login_seconds: float | None = None
    """Within which a client must have logged in; None: nobody asks for a login here."""


class Tls(NamedTuple):
    """What a listener that speaks TLS needs. The context is asked for with each connection: certificates are renewed."""

    context: "Callable[[], ssl.SSLContext]"
    identify: Callable[[bytes | None], Principal]
    pool: Pool
    timeout_s: float


class Listener:
    """One address the broker listens on, and the connections that came in through it. `limits` are asked for with each
    connection: they may change."""

    def __init__(
        self, name: str, sock: socket.socket, loop: AbstractEventLoop, receiver: Receiver, buffers: ReceiveBuffers,
        limits: Callable[[], ListenLimits], tls: Tls | None = None, admission: Admission | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self._socket = sock
        self._loop = loop
        self._receiver = receiver
        self._buffers = buffers
        self._outbox = Outbox(loop)
        self._limits = limits
        self._tls = tls
        self._handshakes: dict[Handshake, str] = {}
        """With the host of each."""
        self.connections: set[Connection] = set()
        self.served_count = 0
        """Connections that were served so far."""
        self.ended_count = 0
        self._late: dict[socket.socket, tuple[str, TimerHandle]] = {}
        """Accepted, and not served yet: their addresses make too many. With the host of each."""
        self._admission = admission or Admission()
        self._admission.listeners.append(self)
        self._next_accept: TimerHandle | None = None
        self._waits_for_room = False
        self._timer: TimerHandle | None = None
        self._is_accepting = False
        self._sweep_seconds = _sweep_seconds(limits())
        address = sock.getsockname()
        self.host = str(address[0])
        self.port = int(address[1])

    def start(self) -> None:
        self._accept_again()
        self._timer = self._loop.call_later(self._sweep_seconds, self._sweep)

    def stop_accepting(self) -> None:
        if self._is_accepting:
            self._is_accepting = False
            self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        if self._next_accept is not None:
            self._next_accept.cancel()
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        self._outbox.send()
        while self._late:
            sock, (host, timer) = self._late.popitem()
            timer.cancel()
            sock.close()
            self._forget_host(host)
        for handshake in list(self._handshakes):
            handshake.close()
        for connection in list(self.connections):
            connection.close()

    @property
    def connection_count(self) -> int:
        return len(self.connections) + len(self._handshakes) + len(self._late)

    @property
    def is_protected(self) -> bool:
        return self._limits().is_protected

    def look_for_room(self) -> None:
        """A connection has ended: one that waits may come in."""
        if self._waits_for_room:
            self._accept_again()

    def _pause_accepting(self, seconds: float) -> None:
        self._is_accepting = False
        self._loop.remove_reader(self._socket.fileno())
        self._next_accept = self._loop.call_later(seconds, self._accept_again)

    def _accept_again(self) -> None:
        self._waits_for_room = False
        if self._next_accept is not None:
            self._next_accept.cancel()
            self._next_accept = None
        if self._socket.fileno() >= 0:
            self._is_accepting = True
            self._loop.add_reader(self._socket.fileno(), self._on_acceptable)

    def _on_acceptable(self) -> None:
        for _ in range(ACCEPTS_PER_WAKE):
            limits = self._limits()
            if not self._admission.has_room(self, limits):
                if self._admission.make_room_of_strangers(self, limits, now_s=self._loop.time()):
                    continue
                self._pause_accepting(ACCEPT_PAUSE_SECONDS)  # the bound may be raised meanwhile
                self._waits_for_room = True
                return
            try:
                sock, address = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    log.error("cannot accept a connection: %s; trying again in a second", error.strerror)
                    self._admission.make_room_of_strangers(self, limits, now_s=self._loop.time())
                    self._pause_accepting(ACCEPT_PAUSE_SECONDS)
                    return
                continue
            now_s = self._loop.time()
            self._take_in(sock, plain_host(address[0]), limits, now_s)
            wait_s = self._admission.came(self, limits, now_s=now_s)
            if wait_s:
                self._pause_accepting(wait_s)
                return

    def _take_in(self, sock: socket.socket, host: str, limits: ListenLimits, now_s: float) -> None:
        """One that waits counts among those of its address: they have their bound, too."""
        late_s = self._admission.came_from(host, now_s=now_s)
        by_address = self._admission.by_address
        if by_address[host] >= limits.overrides_per_ip.get(host, limits.max_connections_per_ip):
            log.warning("refusing a connection from %s: max.connections.per.ip is reached", host)
            sock.close()
            return
        by_address[host] += 1
        if late_s:
            self._late[sock] = host, self._loop.call_later(late_s, self._welcome, sock, host)
        else:
            self._welcome(sock, host)

    def _welcome(self, sock: socket.socket, host: str) -> None:
        limits = self._limits()
        self._late.pop(sock, None)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if limits.send_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.send_buffer_bytes)
            if limits.receive_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, limits.receive_buffer_bytes)
            if self._tls is None:
                self._serve(Connection, sock, ANONYMOUS)
            else:
                self._begin_tls(self._tls, sock, host)
        except (OSError, ValueError):  # the client was gone before we looked
            sock.close()
            self._forget_host(host)
            return
        if limits.is_protected:
            self._admission.make_room(limits)

    def _serve(self, kind: type[Connection], sock: Any, principal: Principal) -> None:
        limits = self._limits()
        self.served_count += 1
        self.connections.add(
            kind(
                sock, self._loop, self._receiver, self._buffers, self._outbox, listener_name=self.name,
                max_frame_bytes=limits.max_frame_bytes, on_close=self._farewell, principal=principal,
                is_stranger=limits.login_seconds is not None,
            )
        )  # fmt: skip

    def _begin_tls(self, tls: Tls, sock: socket.socket, host: str) -> None:
        from penstock.net.tls import Handshake

        handshake = Handshake(
            sock, tls.context(), self._loop, tls.pool,
            timeout_s=tls.timeout_s, identify=tls.identify, on_end=self._end_handshake,
        )  # fmt: skip
        self._handshakes[handshake] = host

    def _end_handshake(
        self, handshake: "Handshake", sock: "TlsSocket | None", principal: Principal, reason: str
    ) -> None:
        from penstock.net.tls import TlsConnection

        host = self._handshakes.pop(handshake)
        if sock is not None:
            try:
                self._serve(TlsConnection, sock, principal)
                return
            except OSError:
                sock.close()
        elif reason:
            log.warning("closing the connection from %s: %s", host, reason)
        self._forget_host(host)

    def _farewell(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.ended_count += 1
        self._forget_host(connection.peer_host)

    def _forget_host(self, host: str) -> None:
        by_address = self._admission.by_address
        by_address[host] -= 1
        if by_address[host] <= 0:
            del by_address[host]
        self._admission.freed()

    def _sweep(self) -> None:
        now_s, limits = self._loop.time(), self._limits()
        # Kafka: a negative connections.max.idle.ms means for ever.
        max_idle_s = limits.max_idle_seconds if limits.max_idle_seconds >= 0 else math.inf
        oldest, oldest_muted = now_s - max_idle_s, now_s - max(max_idle_s, MUTED_IDLE_SECONDS)
        for connection in [
            c for c in self.connections if c.last_active < (oldest_muted if c.is_muted else oldest)
        ]:
            connection.close()
        if limits.login_seconds is not None:
            began_s = now_s - limits.login_seconds
            for connection in [c for c in self.connections if c.is_stranger and c.since < began_s]:
                connection.close(f"no login within {limits.login_seconds:g} seconds")
        self._timer = self._loop.call_later(self._sweep_seconds, self._sweep)


def _sweep_seconds(limits: ListenLimits) -> float:
    times_s = [limits.max_idle_seconds if limits.max_idle_seconds >= 0 else math.inf, limits.login_seconds]
    return min(IDLE_SWEEP_SECONDS, *(max(each / 2, 0.1) for each in times_s if each is not None))


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
