"""The ends of a simulated connection, as far as the broker and the simulation's clients ask of a socket."""

import errno
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from simulation.seeds.loop import VirtualLoop

if TYPE_CHECKING:
    from simulation.seeds.network import Network

BUFFER_BYTES: Final = 128 * 1024
"""What a connection holds in one direction, on its way and unread together."""
SPLIT_CHANCE: Final = 0.05
"""Of a piece of data to arrive in two."""

Address = tuple[str, int]


class FakeListener:
    """A listening socket, as far as `net.listener` asks."""

    def __init__(self, network: "Network", loop: VirtualLoop, address: Address) -> None:
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

    def __init__(self, network: "Network", loop: VirtualLoop, *, local: Address, remote: Address) -> None:
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
