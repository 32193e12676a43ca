"""A network of fake sockets: bytes arrive in order, after a while, or not before somebody heals the link.

A host is the name of a simulated process. Each direction between two hosts is a link with its own delay. TCP does not lose
bytes, so neither does a link: one that is blocked keeps what is sent until it is healed, as retransmission would, and one
that is cut resets its connections. What a socket has not taken yet is bounded, so a receiver that is held back holds back
its sender.
"""

import errno
from asyncio import Future
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from penstock.testing.simulation.loop import Schedule, VirtualLoop

BUFFER_BYTES: Final = 128 * 1024
"""What a connection holds in one direction, on its way and unread together."""
DELAY_SECONDS: Final = 0.0005
MAX_DELAY_SECONDS: Final = 0.002
RESENT_WITHIN_SECONDS: Final = 0.5
"""How soon after healing what was held back arrives."""
SILENT_SECONDS: Final = 3.0
"""Within this time a peer learns that a machine has lost its power."""
SPLIT_CHANCE: Final = 0.05
"""Of a piece of data to arrive in two."""
FIRST_FD: Final = 1_000_000
FIRST_CLIENT_PORT: Final = 40_000

Address = tuple[str, int]


class Link:
    """One direction between two hosts."""

    __slots__ = ("held", "is_blocked", "is_healing", "max_delay_seconds")

    def __init__(self) -> None:
        self.is_blocked = False
        self.is_healing = False
        self.max_delay_seconds = MAX_DELAY_SECONDS
        self.held: list[Callable[[], None]] = []
        """Sends again what was sent while the link was blocked."""

    def block(self) -> None:
        self.is_blocked = True
        self.is_healing = False

    def release(self) -> None:
        if self.is_healing:
            self.is_blocked = self.is_healing = False
            held, self.held = self.held, []
            for send in held:
                send()


class Network:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.loop = schedule.new_loop("network")
        self.resets = 0
        self._links: dict[tuple[str, str], Link] = {}
        self._listeners: dict[Address, FakeListener] = {}
        self._sockets: dict[int, FakeSocket] = {}
        self._last_fd = FIRST_FD
        self._last_port = FIRST_CLIENT_PORT

    # --- for programs

    def listen(self, loop: VirtualLoop, host: str, port: int) -> "FakeListener":
        if (host, port) in self._listeners:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        listener = FakeListener(self, loop, (host, port))
        self._listeners[host, port] = listener
        return listener

    async def connect(self, loop: VirtualLoop, host: str, port: int) -> "FakeSocket":
        """As a blocking connect without a deadline: that is the caller's."""
        connected: Future[FakeSocket] = loop.create_future()
        self._last_port += 1
        here = (loop.name, self._last_port)

        def arrive() -> None:
            listener = self._listeners.get((host, port))
            if listener is None:
                self.carry(host, loop.name, refuse)
                return
            ours, theirs = self._pair(loop, here, listener)
            listener.add(theirs)
            self.carry(host, loop.name, lambda: welcome(ours))

        def refuse() -> None:
            if not connected.done():
                connected.set_exception(ConnectionRefusedError(errno.ECONNREFUSED, f"{host}:{port}"))

        def welcome(ours: FakeSocket) -> None:
            if connected.done() or loop.is_dead:
                ours.close()
            else:
                connected.set_result(ours)

        self.carry(loop.name, host, arrive)
        return await connected

    # --- for faults

    def link(self, source: str, target: str) -> Link:
        link = self._links.get((source, target))
        if link is None:
            link = self._links[source, target] = Link()
        return link

    def block(self, source: str, target: str) -> None:
        self.link(source, target).block()

    def split(self, one: Iterable[str], other: Iterable[str]) -> None:
        """Nothing passes between the two sets, either way."""
        others = list(other)
        for a in one:
            for b in others:
                self.block(a, b)
                self.block(b, a)

    def heal(self) -> None:
        """All links are free and fast again; what was held back is sent again."""
        for link in self._links.values():
            link.max_delay_seconds = MAX_DELAY_SECONDS
            if link.is_blocked:
                link.is_healing = True
                self.loop.call_later(self.schedule.random.random() * RESENT_WITHIN_SECONDS, link.release)

    @property
    def is_whole(self) -> bool:
        return not any(link.is_blocked for link in self._links.values())

    @property
    def hosts(self) -> list[str]:
        """That have sent or been sent anything."""
        return sorted({host for pair in self._links for host in pair})

    def reset_all(self, host: str) -> None:
        """Every connection of a host breaks."""
        for sock in list(self._sockets.values()):
            if sock.local[0] == host:
                sock.break_now()
                if sock.peer is not None:
                    sock.peer.break_now()

    def kill(self, host: str, *, silently: bool = False) -> None:
        """The process of that host is gone: its connections end; `silently`, as with its power, only after a while."""
        for address in [address for address in self._listeners if address[0] == host]:
            self._listeners.pop(address).close()
        for sock in [sock for sock in self._sockets.values() if sock.local[0] == host]:
            if silently:
                self.loop.call_later(self.schedule.random.random() * SILENT_SECONDS, sock.abandon)
                sock.mute()
            else:
                sock.close()

    # --- inside

    def carry(self, source: str, target: str, act: Callable[[], None]) -> None:
        """Have something happen at the target after the link's delay, or once it is healed."""
        link = self.link(source, target)
        if link.is_blocked:
            link.held.append(lambda: self.carry(source, target, act))
        else:
            self.loop.call_later(self.delay(link), act)

    def delay(self, link: Link) -> float:
        return DELAY_SECONDS + self.schedule.random.random() * link.max_delay_seconds

    def new_fd(self) -> int:
        self._last_fd += 1
        return self._last_fd

    def add(self, sock: "FakeSocket") -> None:
        self._sockets[sock.fd] = sock
        self.schedule.descriptors[sock.fd] = sock

    def forget(self, fd: int) -> None:
        self._sockets.pop(fd, None)
        self.schedule.descriptors.pop(fd, None)

    def forget_listener(self, address: Address) -> None:
        self._listeners.pop(address, None)

    def _pair(
        self, loop: VirtualLoop, here: Address, listener: "FakeListener"
    ) -> tuple["FakeSocket", "FakeSocket"]:
        ours = FakeSocket(self, loop, local=here, remote=listener.address)
        theirs = FakeSocket(self, listener.loop, local=listener.address, remote=here)
        ours.peer, theirs.peer = theirs, ours
        return ours, theirs


class FakeListener:
    """A listening socket, as far as `net.listener` asks."""

    def __init__(self, network: Network, loop: VirtualLoop, address: Address) -> None:
        self.loop = loop
        self.address = address
        self._network = network
        self._fd = network.new_fd()
        self._waiting: deque[FakeSocket] = deque()
        network.schedule.descriptors[self._fd] = self

    @property
    def is_readable(self) -> bool:
        return bool(self._waiting)

    @property
    def is_writable(self) -> bool:
        return False

    def add(self, sock: "FakeSocket") -> None:
        self._waiting.append(sock)
        self.loop.poll(self._fd)

    def accept(self) -> "tuple[FakeSocket, Address]":
        if not self._waiting:
            raise BlockingIOError(errno.EAGAIN, "nobody waits")
        sock = self._waiting.popleft()
        return sock, sock.remote

    def getsockname(self) -> Address:
        return self.address

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        if self._fd >= 0:
            self._network.schedule.descriptors.pop(self._fd, None)
            self._network.forget_listener(self.address)
            self._fd = -1
            while self._waiting:
                self._waiting.popleft().close()


class FakeSocket:
    """A connected socket, as far as `net.connection`, `net.peers` and the simulation's clients ask."""

    def __init__(self, network: Network, loop: VirtualLoop, *, local: Address, remote: Address) -> None:
        self.fd = network.new_fd()
        self.local = local
        self.remote = remote
        self.peer: FakeSocket | None = None
        self._network = network
        self._loop = loop
        self._link = network.link(local[0], remote[0])
        self._last_arrival = 0.0
        self._incoming: deque[bytes] = deque()
        self._sent_bytes = 0  # that the peer has not read
        self._has_ended = False  # the peer sends no more
        self._is_broken = False
        self._is_closed = False
        self._is_mute = False
        network.add(self)

    # --- the socket

    @property
    def is_readable(self) -> bool:
        return bool(self._incoming) or self._has_ended or self._is_broken

    @property
    def is_writable(self) -> bool:
        return self._sent_bytes < BUFFER_BYTES or self._is_broken

    def fileno(self) -> int:
        return -1 if self._is_closed else self.fd

    def getpeername(self) -> Address:
        return self.remote

    def getsockname(self) -> Address:
        return self.local

    def setsockopt(self, *args: Any) -> None:
        pass

    def setblocking(self, flag: bool) -> None:
        assert not flag

    def recv_into(self, buffer: Any, size_bytes: int = 0) -> int:
        self._check()
        if not self._incoming:
            if self._has_ended:
                return 0
            raise BlockingIOError(errno.EAGAIN, "nothing has arrived")
        view = memoryview(buffer)
        room = size_bytes or len(view)
        taken = 0
        while self._incoming and taken < room:
            piece = self._incoming.popleft()
            if len(piece) > room - taken:
                self._incoming.appendleft(piece[room - taken :])
                piece = piece[: room - taken]
            view[taken : taken + len(piece)] = piece
            taken += len(piece)
        if self.peer is not None:
            self.peer._was_read(taken)
        return taken

    def recv(self, size_bytes: int) -> bytes:
        buffer = bytearray(size_bytes)
        return bytes(buffer[: self.recv_into(buffer)])

    def send(self, data: Any, flags: int = 0) -> int:
        self._check()
        room = BUFFER_BYTES - self._sent_bytes
        if room <= 0:
            raise BlockingIOError(errno.EAGAIN, "the buffer is full")
        piece = bytes(memoryview(data)[:room])
        self._sent_bytes += len(piece)
        random = self._network.schedule.random
        if len(piece) > 1 and random.random() < SPLIT_CHANCE:
            at = random.randrange(1, len(piece))
            self._transmit(piece[:at])
            self._transmit(piece[at:])
        else:
            self._transmit(piece)
        return len(piece)

    def sendmsg(self, buffers: Sequence[Any], ancillary: Any = (), flags: int = 0) -> int:
        return self.send(b"".join(buffers))

    def shutdown(self, how: int) -> None:
        self.close()

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        unread = bool(self._incoming)
        self._incoming.clear()
        self._network.forget(self.fd)
        peer = self.peer
        if peer is not None and not self._is_broken:
            # As the kernel: who closes with bytes unread has the connection reset.
            self._later(peer.break_now if unread else peer.end)

    # --- what happens to it

    def break_now(self) -> None:
        """The connection was reset."""
        if not self._is_closed and not self._is_broken:
            self._is_broken = True
            self._network.resets += 1
            self._incoming.clear()
            self._loop.poll(self.fd)

    def end(self) -> None:
        """The other side has closed."""
        if not self._is_closed:
            self._has_ended = True
            self._loop.poll(self.fd)

    def mute(self) -> None:
        """Without power: what it has sent and what is under way does not arrive."""
        self._is_mute = True

    def abandon(self) -> None:
        """At last the other side learns that nobody is here."""
        if self.peer is not None:
            self.peer.break_now()
        self._is_closed = True
        self._network.forget(self.fd)

    def _check(self) -> None:
        if self._is_closed:
            raise OSError(errno.EBADF, "the socket is closed")
        if self._is_broken:
            raise ConnectionResetError(errno.ECONNRESET, "the connection was reset")

    def _transmit(self, piece: bytes) -> None:
        self._later(lambda: self._arrive(piece))

    def _later(self, act: Callable[[], None]) -> None:
        """After all that was sent before."""
        network = self._network
        if self._link.is_blocked:
            self._link.held.append(lambda: self._later(act))
            return
        at = max(self._last_arrival + 1e-6, network.schedule.now + network.delay(self._link))
        self._last_arrival = at
        network.loop.call_at(at, act)

    def _arrive(self, piece: bytes) -> None:
        peer = self.peer
        if self._is_mute or peer is None:
            return
        if peer._is_closed:
            self.break_now()
            return
        if peer._is_broken:
            return
        self._network.schedule.note(piece)
        peer._incoming.append(piece)
        peer._loop.poll(peer.fd)

    def _was_read(self, size_bytes: int) -> None:
        was_full = self._sent_bytes >= BUFFER_BYTES
        self._sent_bytes -= size_bytes
        if was_full and not self._is_closed:
            self._loop.poll(self.fd)
