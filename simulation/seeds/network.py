"""A network of fake sockets (`sockets`): bytes arrive in order, after a while, or not before somebody heals the link.

A host is the name of a simulated process. Each direction between two hosts is a link with its own delay. TCP does not lose
bytes, so neither does a link: one that is blocked keeps what is sent until it is healed, as retransmission would, and one
that is cut resets its connections. What a socket has not taken yet is bounded, so a receiver that is held back holds back
its sender.
"""

import errno
from asyncio import Future
from collections.abc import Callable, Iterable
from typing import Final

from simulation.seeds.loop import Schedule, VirtualLoop
from simulation.seeds.sockets import Address, FakeListener, FakeSocket

DELAY_SECONDS: Final = 0.0005
MAX_DELAY_SECONDS: Final = 0.002
RESENT_WITHIN_SECONDS: Final = 0.5
"""How soon after healing what was held back arrives."""
SILENT_SECONDS: Final = 3.0
"""Within this time a peer learns that a machine has lost its power."""
FIRST_FD: Final = 1_000_000
FIRST_CLIENT_PORT: Final = 40_000


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

    def listen(self, loop: VirtualLoop, host: str, port: int) -> FakeListener:
        if (host, port) in self._listeners:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        listener = FakeListener(self, loop, (host, port))
        self._listeners[host, port] = listener
        return listener

    async def connect(self, loop: VirtualLoop, host: str, port: int) -> FakeSocket:
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

    def add(self, sock: FakeSocket) -> None:
        self._sockets[sock.fd] = sock
        self.schedule.descriptors[sock.fd] = sock

    def forget(self, fd: int) -> None:
        self._sockets.pop(fd, None)
        self.schedule.descriptors.pop(fd, None)

    def forget_listener(self, address: Address) -> None:
        self._listeners.pop(address, None)

    def _pair(
        self, loop: VirtualLoop, here: Address, listener: FakeListener
    ) -> tuple[FakeSocket, FakeSocket]:
        ours = FakeSocket(self, loop, local=here, remote=listener.address)
        theirs = FakeSocket(self, listener.loop, local=listener.address, remote=here)
        ours.peer, theirs.peer = theirs, ours
        return ours, theirs
