"""TLS on our non-blocking sockets.

A connection reads and writes plain sockets in the loop's readiness callbacks. `TlsSocket` has the face of such a socket, with
OpenSSL behind it. OpenSSL never sees the socket itself: bytes go to it and come from it through memory (`ssl.MemoryBIO`). On a
socket of its own it asks the kernel twice for each record, for its five bytes of header and for the rest; here
many records are read at once (docs/decisions/0014). Three things differ from a plain socket:

- What has been read and nobody has taken yet makes no socket readable. `TlsConnection` asks again while there is more.
- What has been enciphered and the socket does not take yet is kept here. Nothing more is enciphered before it is gone, so a
  client that does not read costs one chunk of memory.
- Records of a file cannot go to the socket by sendfile; they are read from the page cache and enciphered.

A handshake costs a signature, a millisecond with RSA. Each step runs in a thread, so that others do not wait for it. Between
steps no thread is held, so a client that is slow, or sends nothing, costs a socket until its deadline and no more.
"""

import logging
import socket
import ssl
from asyncio import AbstractEventLoop, CancelledError, Future
from collections.abc import Callable, Sequence
from typing import Any, Final

from penstock.net.connection import Connection
from penstock.net.output import TURN_BYTES, Output, read_slice
from penstock.runtime.pools import Pool
from penstock.security.principals import ANONYMOUS, Principal

log = logging.getLogger("penstock.net")

RECORD_BYTES: Final = 16 * 1024
"""The most that one TLS record holds, and that OpenSSL takes or gives in one call."""
CHUNK_BYTES: Final = 4 * RECORD_BYTES
"""Of one system call. OpenSSL's memory grows to a third more than that and stays so, for each direction of a connection."""
READS_OF_A_TURN: Final = TURN_BYTES // CHUNK_BYTES + 1
"""Of the socket, before others get their turn: records of one byte each take long to decipher, and little of a buffer."""
MAX_LEFT_BYTES: Final = 4 * CHUNK_BYTES
"""Of what OpenSSL answers by itself. A client that asks for it (new keys, over and over) and does not read is cut off."""
_NOT_YET: Final = (ssl.SSLWantReadError, ssl.SSLWantWriteError)


class TlsOutput(Output):
    __slots__ = ()

    def send(self) -> bool:
        sock: Any = self._socket
        return sock.flush() and super().send() and sock.flush()

    def _send_slice(self, part: Any) -> bool:
        """A chunk at a time, so that a reader who is slow costs one chunk of memory."""
        self._parts.popleft()
        position, remaining = part.position, part.size_bytes
        while remaining:
            size = min(remaining, CHUNK_BYTES)
            try:
                if self._turn_bytes <= 0:
                    raise BlockingIOError
                sent = self._socket.send(read_slice(part._replace(position=position, size_bytes=size)))
            except BlockingIOError:
                self._parts.appendleft(part._replace(position=position, size_bytes=remaining))
                return False
            position += sent
            remaining -= sent
            self._turn_bytes -= sent
        return True


class Engine:
    """OpenSSL, and the memory through which it gets and gives the bytes of one socket."""

    __slots__ = ("_left", "_socket", "arriving", "leaving", "tls")

    def __init__(
        self, sock: socket.socket, context: ssl.SSLContext, *, server_side: bool, host: str | None = None
    ) -> None:
        self._socket = sock
        self.arriving, self.leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(
            self.arriving, self.leaving, server_side=server_side, server_hostname=host
        )
        self._left: memoryview | None = None
        """Enciphered, and not taken by the socket."""

    def receive(self) -> bool:
        """One read of the socket; False at its end. BlockingIOError where there is nothing."""
        data = self._socket.recv(CHUNK_BYTES)
        if data:
            self.arriving.write(data)
        else:
            self.arriving.write_eof()
        return bool(data)

    def flush(self) -> bool:
        """Whether the socket has taken all that was enciphered."""
        while self._left is not None or self.leaving.pending:
            left = self._left if self._left is not None else memoryview(self.leaving.read())
            try:
                sent = self._socket.send(left)
            except BlockingIOError:
                self._left = left
                return False
            self._left = left[sent:] if sent < len(left) else None
        return True


class TlsSocket:
    """After the handshake. What a plain socket would raise as BlockingIOError, this does too."""

    __slots__ = ("_arriving", "_engine", "_is_over", "_leaving", "_socket", "_tls", "flush", "has_more")
    output = TlsOutput

    def __init__(self, sock: socket.socket, engine: Engine) -> None:
        self._socket = sock
        self._engine = engine
        self._tls = engine.tls
        self._arriving = engine.arriving
        self._leaving = engine.leaving
        self.flush = engine.flush
        self._is_over = False
        """The client said goodbye, or was cut off."""
        self.has_more = bool(engine.arriving.pending)
        """There may be more that was read already, of which the loop will not tell. A client's first request may come together
        with the end of its handshake."""

    def fileno(self) -> int:
        return self._socket.fileno()

    def getpeername(self) -> Any:
        return self._socket.getpeername()

    def getsockname(self) -> Any:
        return self._socket.getsockname()

    def recv_into(self, buffer: bytearray | memoryview) -> int:
        """As much as there is, up to a turn's worth."""
        view = memoryview(buffer)[:TURN_BYTES]
        taken = self._decipher(view, 0) if self.has_more else 0
        reads = 0
        while taken < len(view) and reads < READS_OF_A_TURN and not self._is_over:
            reads += 1
            try:
                self._engine.receive()
            except BlockingIOError:
                break
            before = self._arriving.pending
            taken = self._decipher(view, taken)
            if (
                before < CHUNK_BYTES or not taken
            ):  # the socket had no more than this, or it may be without an end
                break
        # At the end, what came before it is handled first.
        self.has_more = taken == len(view) or (self._is_over and taken > 0)
        if not taken and not self._is_over:
            raise BlockingIOError
        return taken

    def _decipher(self, view: memoryview, taken: int) -> int:
        """How much of the view is filled then."""
        read, arriving, pending = self._tls.read, self._arriving, self._tls.pending
        try:
            while taken < len(view) and (arriving.pending or arriving.eof or pending()):
                count: int = read(len(view) - taken, view[taken:])  # type: ignore[assignment]  # with a buffer it is a count
                if not count:
                    self._is_over = True
                    break
                taken += count
        except _NOT_YET:
            pass
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            self._is_over = True
        if self._leaving.pending and not self.flush() and self._leaving.pending > MAX_LEFT_BYTES:
            raise ConnectionError("it asks for new keys, and does not read the answers")
        return taken

    def send(self, data: Any, flags: int = 0) -> int:
        """What is enciphered counts as sent, also where the socket does not take it yet; see `flush`."""
        if not self.flush():
            raise BlockingIOError
        write = self._tls.write
        view = memoryview(data)[:TURN_BYTES]
        sent = 0
        while sent < len(view):
            end = min(len(view), sent + CHUNK_BYTES)
            while sent < end:
                sent += write(view[sent:end])
            if flags & socket.MSG_MORE and sent == len(view) == len(data):
                break  # it leaves together with what follows
            if not self.flush():
                break
        return sent

    def sendmsg(self, parts: Sequence[Any], ancillary: Any = (), flags: int = 0) -> int:
        """A turn's worth of them: what is not sent comes again, and would be joined again."""
        taken, size = [], 0
        for part in parts:
            taken.append(part)
            size += len(part)
            if size >= TURN_BYTES:
                break
        return self.send(b"".join(taken), flags)

    def close(self) -> None:
        try:
            if self.flush():
                self._tls.unwrap()  # says goodbye; the answer is not waited for
        except (OSError, ValueError):
            pass
        try:
            self.flush()
        except OSError:
            pass
        self._socket.close()

    # --- while it is still a blocking socket: logins at other brokers

    def sendall(self, data: bytes) -> None:
        sent = 0
        while sent < len(data):
            sent += self.send(memoryview(data)[sent:])

    def recv(self, size: int) -> bytes:
        buffer = bytearray(size)
        while True:
            try:
                return bytes(buffer[: self.recv_into(buffer)])
            except BlockingIOError:  # only a part of a record has come; the next read waits
                continue


def enter(sock: socket.socket, context: ssl.SSLContext, host: str) -> TlsSocket:
    """A client's handshake, on a socket with a timeout: in a thread."""
    engine = Engine(sock, context, server_side=False, host=host)
    while True:
        try:
            engine.tls.do_handshake()
            engine.flush()
            return TlsSocket(sock, engine)
        except ssl.SSLWantReadError:
            engine.flush()
            engine.receive()


class TlsConnection(Connection):
    __slots__ = ("_is_asked_again",)

    def __init__(self, sock: Any, *given: Any, **named: Any) -> None:
        self._is_asked_again = False
        super().__init__(sock, *given, **named)
        self._read_on()

    def _on_readable(self) -> None:
        super()._on_readable()
        self._read_on()

    def _resume_reading(self) -> None:
        super()._resume_reading()
        self._read_on()

    def _read_on(self) -> None:
        if self._is_reading and not self.is_closed and not self._is_asked_again and self._socket.has_more:
            self._is_asked_again = True
            self._loop.call_soon(self._again)

    def _again(self) -> None:
        self._is_asked_again = False
        if self._is_reading and not self.is_closed:
            self._on_readable()


class Handshake:
    """From a new socket to a TlsSocket, or to a reason why not, which is empty for a client that left without a word. `on_end` is
    called once, on the loop."""

    def __init__(
        self,
        sock: socket.socket,
        context: ssl.SSLContext,
        loop: AbstractEventLoop,
        pool: Pool,
        *,
        timeout_s: float,
        identify: Callable[[bytes | None], Principal],
        on_end: Callable[["Handshake", TlsSocket | None, Principal, str], None],
    ) -> None:
        """`identify` makes a principal of the client's certificate, in a thread; ValueError: it is not let in."""
        self._loop = loop
        self._pool = pool
        self._identify = identify
        self._on_end = on_end
        self._socket = sock
        self._engine = Engine(sock, context, server_side=True)
        self._fd = sock.fileno()
        self._is_over = False
        self._is_stepping = False
        self._has_heard = False
        self._timer = loop.call_later(timeout_s, self._end, "the TLS handshake took too long")
        loop.add_reader(self._fd, self._on_readable)

    def close(self) -> None:
        self._end("the listener closes")

    def _on_readable(self) -> None:
        try:
            is_there = self._engine.receive()
        except BlockingIOError:
            return
        except OSError as error:
            self._end(_reason(error) if self._has_heard else "")
            return
        if not is_there and not self._has_heard:
            self._end("")  # it only looked whether somebody listens
            return
        self._has_heard = True
        self._loop.remove_reader(self._fd)
        self._is_stepping = True
        self._pool.run(self._step).add_done_callback(self._stepped)

    def _step(self) -> Principal:
        if self._is_over:  # it waited for its turn until its time was over: nobody needs the signature
            raise TimeoutError
        self._engine.tls.do_handshake()
        return self._identify(self._engine.tls.getpeercert(binary_form=True))

    def _stepped(self, done: "Future[Principal]") -> None:
        self._is_stepping = False
        error = CancelledError() if done.cancelled() else done.exception()
        try:
            is_sent = self._engine.flush()  # an alert, too, which says what was wrong
        except OSError as failure:
            is_sent, error = True, error or failure
        if self._is_over or isinstance(error, CancelledError):
            self._socket.close()
        elif error is None:
            self._is_over = True
            self._timer.cancel()
            self._on_end(self, TlsSocket(self._socket, self._engine), done.result(), "")
        elif not isinstance(error, ssl.SSLWantReadError):
            self._end(_reason(error))
        elif is_sent:
            self._loop.add_reader(self._fd, self._on_readable)
        else:
            self._loop.add_writer(self._fd, self._on_writable)

    def _on_writable(self) -> None:
        try:
            is_sent = self._engine.flush()
        except OSError as error:
            self._end(_reason(error))
            return
        if is_sent:
            self._loop.remove_writer(self._fd)
            self._loop.add_reader(self._fd, self._on_readable)

    def _end(self, reason: str) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._timer.cancel()
        if not self._is_stepping:  # else the thread has it, and it is closed behind its step
            self._loop.remove_reader(self._fd)
            self._loop.remove_writer(self._fd)
            self._socket.close()
        self._on_end(self, None, ANONYMOUS, reason)


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        text = (error.reason or str(error)).replace("_", " ").lower()
        return f"the TLS handshake failed: {text}"
    return f"the TLS handshake failed: {error}"
