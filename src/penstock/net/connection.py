"""One client's connection, on a plain non-blocking socket.

Sockets are read and written directly in the loop's readiness callbacks. Against asyncio's transports this halved the
time of a small request (21–33 µs against 44–58 µs a round trip), and it lets records go from the page cache to the socket
with sendfile, which a transport does not offer: nothing is copied, and nothing counts in the broker's memory.

Receiving: all connections share one scratch buffer, since a frame that arrived whole is handled before the loop reads
again. Only a frame that arrives in pieces gets a buffer of its own, which grows with what has really arrived, so that
a size of 100 MiB in the first four bytes reserves nothing. Used buffers go back to a small pool: a busy producer's
requests all arrive in pieces, and fresh memory for each of them cost as much as storing it.

Sending: replies leave in request order. A reply that is not ready yet (`Deferred`) holds back the later ones. When the
socket takes no more, reading stops until it does: a client that sends without receiving costs us one reply, not memory.
"""

import logging
import os
import socket
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from penstock.wire.framing import MIN_FRAME_BYTES, SIZE

log = logging.getLogger("penstock.net")

SCRATCH_BYTES: Final = 256 * 1024
FIRST_PARTIAL_BYTES: Final = 16 * 1024
GROWTH: Final = 8
"""A frame in pieces may reserve this many times what has arrived of it."""
MAX_POOLED_BYTES: Final = 8 * 1024 * 1024
MAX_UNANSWERED: Final = 128
"""Requests of one connection that may wait for their reply before we stop reading more of them."""
SMALL_SLICE_BYTES: Final = 16 * 1024
"""Up to this size a slice is read and sent together with its header: one system call less."""
JOINED_BYTES: Final = 8 * 1024
MAX_GATHER: Final = 512
TOO_MANY_PARTIAL_BYTES: Final = "too many bytes of unfinished requests (queued.max.request.bytes)"


class Slice(Protocol):
    """A part of a file that is to be sent as it is."""

    @property
    def size_bytes(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def file(self) -> Any: ...


Part = Any
"""Bytes-like, or a Slice."""


class Deferred:
    """The place of a reply that comes later. Resolve it once; None means that this request has no reply.

    `on_abandoned` is called instead when the connection ends before that: nobody waits for the reply any more.
    """

    __slots__ = ("_connection", "is_ready", "on_abandoned", "parts")

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self.is_ready = False
        self.on_abandoned: Callable[[], None] | None = None
        self.parts: Sequence[Part] | None = None

    def resolve(self, parts: Sequence[Part] | None) -> None:
        self.parts = parts
        self.is_ready = True
        self.on_abandoned = None  # it leads back to this object: keep no cycles for the collector
        self._connection.reply_ready()


Receiver = Callable[["Connection", memoryview], "Sequence[Part] | Deferred | None"]
"""Gets each whole frame; the view is only good during the call."""


class ReceiveBuffers:
    """What the connections of one broker share: the scratch buffer, and the buffers of frames that are still arriving."""

    __slots__ = ("_pool", "_pooled_bytes", "partial_bytes", "partial_bytes_limit", "scratch", "scratch_view")

    def __init__(self, partial_bytes_limit: int) -> None:
        self.scratch = bytearray(SCRATCH_BYTES)
        self.scratch_view = memoryview(self.scratch)
        self.partial_bytes = 0
        self.partial_bytes_limit = partial_bytes_limit
        self._pool: dict[int, list[bytearray]] = {}
        self._pooled_bytes = 0

    def take(self, size: int) -> bytearray | None:
        """A buffer of at least that size; None when the unfinished frames together are past their bound."""
        capacity = max(FIRST_PARTIAL_BYTES, 1 << (size - 1).bit_length())
        if self.partial_bytes + capacity > self.partial_bytes_limit:
            return None
        self.partial_bytes += capacity
        pooled = self._pool.get(capacity)
        if pooled:
            self._pooled_bytes -= capacity
            return pooled.pop()
        return bytearray(capacity)

    def give_back(self, buffer: bytearray) -> None:
        capacity = len(buffer)
        self.partial_bytes -= capacity
        if self._pooled_bytes + capacity <= MAX_POOLED_BYTES:
            self._pooled_bytes += capacity
            self._pool.setdefault(capacity, []).append(buffer)


class Connection:
    __slots__ = (
        "_buffers", "_have", "_is_flushing", "_is_reading", "_is_writing", "_loop", "_max_frame_bytes", "_need", "_on_close",
        "_out", "_partial", "_receiver", "_replies", "_socket", "fd", "is_closed", "is_closing", "last_active", "listener_name",
        "local_host", "local_port", "peer_host", "state",
    )  # fmt: skip

    def __init__(
        self,
        sock: socket.socket,
        loop: AbstractEventLoop,
        receiver: Receiver,
        buffers: ReceiveBuffers,
        *,
        listener_name: str,
        max_frame_bytes: int,
        on_close: Callable[["Connection"], None],
    ) -> None:
        self._socket = sock
        self._loop = loop
        self._receiver = receiver
        self._buffers = buffers
        self._max_frame_bytes = max_frame_bytes
        self._on_close = on_close
        self.fd = sock.fileno()
        self.listener_name = listener_name
        self.peer_host = plain_host(sock.getpeername()[0])
        local = sock.getsockname()
        self.local_host = plain_host(local[0])
        self.local_port = int(local[1])
        self.last_active = loop.time()
        self.is_closed = False
        self.is_closing = False
        self.state: dict[str, Any] | None = None
        self._partial: bytearray | None = None  # a frame in pieces, from its size on
        self._have = 0
        self._need = 0
        self._replies: deque[Sequence[Part] | Deferred] = deque()
        self._out: deque[Part] = deque()
        self._is_reading = True
        self._is_writing = False
        self._is_flushing = False
        loop.add_reader(self.fd, self._on_readable)

    # --- receiving ---

    def _on_readable(self) -> None:
        try:
            if self._partial is None:
                received = self._socket.recv_into(self._buffers.scratch)
                if received:
                    self._take_frames(self._buffers.scratch_view, received)
            else:
                received = self._fill_partial(self._partial)
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        if not received:
            self.close()
            return
        self.last_active = self._loop.time()
        self._is_flushing = False
        self._flush()

    def _take_frames(self, view: memoryview, end: int) -> None:
        """Handle the whole frames in view[:end] and keep what is left of the last one."""
        position = 0
        self._is_flushing = True  # replies collect and leave together after the last frame
        while end - position >= 4:
            (size,) = SIZE.unpack_from(view, position)
            if not MIN_FRAME_BYTES <= size <= self._max_frame_bytes:
                self.close(f"a request of {size} bytes (socket.request.max.bytes is {self._max_frame_bytes})")
                return
            frame_end = position + 4 + size
            if frame_end > end:
                break
            self._handle(view[position + 4 : frame_end])
            if self.is_closed:
                return
            position = frame_end
        if position < end:
            self._start_partial(view[position:end])

    def _start_partial(self, rest: memoryview) -> None:
        have = len(rest)
        need = 4 + SIZE.unpack_from(rest)[0] if have >= 4 else 4
        partial = self._buffers.take(min(need, GROWTH * have))
        if partial is None:
            self.close(TOO_MANY_PARTIAL_BYTES)
            return
        partial[:have] = rest
        self._partial = partial
        self._have = have
        self._need = need

    def _fill_partial(self, partial: bytearray) -> int:
        if self._have == len(partial):
            larger = self._buffers.take(min(self._need, GROWTH * self._have))
            if larger is None:
                self.close(TOO_MANY_PARTIAL_BYTES)
                return 0
            larger[: self._have] = partial
            self._buffers.give_back(partial)
            self._partial = partial = larger
        view = memoryview(partial)
        received = self._socket.recv_into(view[self._have : min(self._need, len(partial))])
        self._have += received
        if self._have < self._need or not received:
            return received
        if self._need == 4:
            (size,) = SIZE.unpack_from(view)
            if not MIN_FRAME_BYTES <= size <= self._max_frame_bytes:
                self.close(f"a request of {size} bytes (socket.request.max.bytes is {self._max_frame_bytes})")
            self._need = 4 + size
            return received
        self._partial = None
        self._is_flushing = True
        self._handle(view[4 : self._need])
        self._buffers.give_back(partial)
        return received

    def _handle(self, frame: memoryview) -> None:
        reply = self._receiver(self, frame)
        if reply is None:
            return
        if not self._replies and not isinstance(reply, Deferred):
            self._out.extend(reply)
            return
        self._replies.append(reply)
        if len(self._replies) >= MAX_UNANSWERED:
            self._pause_reading()

    def defer(self) -> Deferred:
        """For the receiver: return this now, resolve it later."""
        return Deferred(self)

    # --- sending ---

    def reply_ready(self) -> None:
        """A deferred reply was resolved: move the replies at the head of the line to the output."""
        replies = self._replies
        while replies:
            head = replies[0]
            if isinstance(head, Deferred):
                if not head.is_ready:
                    break
                if head.parts is not None:
                    self._out.extend(head.parts)
            else:
                self._out.extend(head)
            replies.popleft()
        if not self._is_flushing:
            self._flush()

    def _flush(self) -> None:
        if self.is_closed or self._is_writing:
            return
        try:
            done = self._send()
        except (BlockingIOError, InterruptedError):
            done = False
        except OSError:
            self.close()
            return
        if not done:
            self._is_writing = True
            self._loop.add_writer(self.fd, self._on_writable)
            self._pause_reading()
        elif self.is_closing and not self._replies:
            self.close()
        elif not self._is_reading and len(self._replies) < MAX_UNANSWERED // 2:
            self._resume_reading()

    def _on_writable(self) -> None:
        try:
            done = self._send()
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            return
        if done:
            self._is_writing = False
            self._loop.remove_writer(self.fd)
            self._flush()

    def _send(self) -> bool:
        """Send until the output is empty (True) or the socket is full (False or BlockingIOError)."""
        out = self._out
        while out:
            gathered: list[Any] = []
            size = 0
            slice_: Any = None
            while out and len(gathered) < MAX_GATHER:
                part = out[0]
                if isinstance(part, (bytes, bytearray, memoryview)):
                    gathered.append(part)
                    size += len(part)
                elif part.size_bytes <= SMALL_SLICE_BYTES:
                    part = part.file.read_at(part.position, part.size_bytes)
                    gathered.append(part)
                    size += len(part)
                else:
                    slice_ = part
                    break
                out.popleft()
            if gathered:
                flags = socket.MSG_MORE if slice_ is not None else 0
                # Below this size one copy and send() are cheaper than what Python spends on a gathering sendmsg().
                if size <= JOINED_BYTES:
                    gathered = [b"".join(gathered)]
                try:
                    if len(gathered) == 1:
                        sent = self._socket.send(gathered[0], flags)
                    else:
                        sent = self._socket.sendmsg(gathered, (), flags)
                except BlockingIOError:
                    sent = 0
                if sent < size:
                    self._keep_unsent(gathered, sent)
                    return False
            if slice_ is not None and not self._send_slice(slice_):
                return False
        return True

    def _send_slice(self, part: Any) -> bool:
        """sendfile what the socket takes; a slice that is not through goes back to the head of the output, shortened."""
        position, remaining = part.position, part.size_bytes
        source = part.file.fileno()
        self._out.popleft()
        while remaining:
            try:
                sent = os.sendfile(self.fd, source, position, remaining)
            except BlockingIOError:
                self._out.appendleft(part._replace(position=position, size_bytes=remaining))
                return False
            if sent == 0:
                raise OSError("the file ends before the slice that was promised from it")
            position += sent
            remaining -= sent
        return True

    def _keep_unsent(self, gathered: list[Any], sent: int) -> None:
        for index, part in enumerate(gathered):
            if sent < len(part):
                self._out.extendleft(reversed([memoryview(part)[sent:], *gathered[index + 1 :]]))
                return
            sent -= len(part)

    # --- the rest of its life ---

    def _pause_reading(self) -> None:
        if self._is_reading and not self.is_closed:
            self._is_reading = False
            self._loop.remove_reader(self.fd)

    def _resume_reading(self) -> None:
        if not self._is_reading and not self.is_closed:
            self._is_reading = True
            self._loop.add_reader(self.fd, self._on_readable)

    def close_when_sent(self) -> None:
        """Close after the replies that are on their way; nothing more is read."""
        self._pause_reading()
        self.is_closing = True
        if not self._is_flushing:
            self._flush()

    def close(self, reason: str | None = None) -> None:
        """Close now. A reason is a client's fault and gets one log line."""
        if self.is_closed:
            return
        if reason is not None:
            log.warning("closing the connection from %s: %s", self.peer_host, reason)
        self.is_closed = True
        if self._is_reading:
            self._loop.remove_reader(self.fd)
        if self._is_writing:
            self._loop.remove_writer(self.fd)
        if self._partial is not None:
            self._buffers.give_back(self._partial)
            self._partial = None
        self._out.clear()
        for reply in self._replies:
            if isinstance(reply, Deferred) and reply.on_abandoned is not None:
                reply.on_abandoned()
                reply.on_abandoned = None
        self._replies.clear()
        self._socket.close()
        self._on_close(self)


def plain_host(host: str) -> str:
    """IPv4 addresses reach a dual-stack socket as ::ffff:1.2.3.4; people and clients know them without the prefix."""
    return host.removeprefix("::ffff:")
