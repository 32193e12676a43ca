"""One connection to another broker: requests out, their answers in, in the order of the requests.

Like `connection` it works on a plain non-blocking socket in the loop's readiness callbacks. Small answers are cut out of a
scratch buffer that all connections share; a large one is received into one buffer of its size and handed on as it is.

What comes is checked against what was asked: an answer of another request, of impossible size, or without a request ends the
connection, and so does an answer that is late, since whatever came after it could not be matched any more. When a connection
ends, every request on it fails.
"""

import socket
from asyncio import AbstractEventLoop, Future, TimerHandle
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import Final

from penstock.net.output import Part, output_of
from penstock.wire.framing import SIZE

MAX_IN_FLIGHT: Final = 1000
MAX_UNSENT_BYTES: Final = 128 * 1024 * 1024
"""Of requests that a broker does not take from us; one request alone may be as large as it likes."""
MIN_ANSWER_BYTES: Final = 4
SCRATCH_BYTES: Final = 64 * 1024

Answer = bytes | bytearray


class PeerUnavailable(ConnectionError):
    """A broker that does not answer as it should; the text names its address and what is wrong, in one line."""


class Asked:
    """A request on its way, and who waits for its answer."""

    __slots__ = ("answer", "correlation_id", "timer")

    def __init__(self, correlation_id: int, answer: "Future[Answer]", timer: TimerHandle) -> None:
        self.correlation_id = correlation_id
        self.answer = answer
        self.timer = timer


class PeerConnection:
    def __init__(
        self,
        sock: socket.socket,
        loop: AbstractEventLoop,
        scratch: memoryview,
        *,
        address: str,
        max_answer_bytes: int,
        on_close: Callable[["PeerConnection"], None],
    ) -> None:
        self.address: Final = address
        self.is_closed = False
        self.has_answered = False
        self.was_given_up = False
        self.lasts_until = inf
        """By the loop's clock: later the other broker takes no request on it, since our login there is over."""
        self.on_idle: Callable[[], None] | None = None
        """Called when all that was asked is answered."""
        self._socket = sock
        self._fd = sock.fileno()
        self._loop = loop
        self._scratch = scratch
        self._max_answer_bytes = max_answer_bytes
        self._on_close = on_close
        self._asked: deque[Asked] = deque()
        self._correlation_id = 0
        self._out = output_of(sock)
        self._unsent_bytes = 0
        self._is_writing = False
        self._is_asked_again = False
        self._head = b""  # the first bytes of an answer, less than its size takes
        self._frame: bytearray | None = None  # a large answer, of which _have bytes have come
        self._have = 0
        loop.add_reader(self._fd, self._on_readable)

    # --- asking

    @property
    def was_asked(self) -> bool:
        """Anything, ever."""
        return self._correlation_id > 0

    @property
    def is_busy(self) -> bool:
        return bool(self._asked)

    def ask(
        self,
        prefix: Callable[[int], bytes],
        body: Sequence[Part],
        *,
        body_bytes: int,
        what: str,
        deadline: float,
    ) -> "Future[Answer]":
        """Send a request; `prefix` makes size and header for a correlation id. Fails with PeerUnavailable."""
        if self.is_closed:  # which may be between its beginning and the turn of the one who waited for it
            raise PeerUnavailable(f"{self.address}: the connection was lost at once")
        if len(self._asked) >= MAX_IN_FLIGHT:
            raise PeerUnavailable(f"{self.address}: {MAX_IN_FLIGHT} requests already wait for their answers")
        if self._unsent_bytes and self._unsent_bytes + body_bytes > MAX_UNSENT_BYTES:
            raise PeerUnavailable(
                f"{self.address}: {self._unsent_bytes} bytes of requests already wait to be sent"
            )
        self._correlation_id = correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        answer: Future[Answer] = self._loop.create_future()
        timer = self._loop.call_at(deadline, self.close, f"no answer to {what} in time")
        self._asked.append(Asked(correlation_id, answer, timer))
        head = prefix(correlation_id)
        self._out.extend((head, *body))
        self._unsent_bytes += len(head) + body_bytes
        if not self._is_writing:
            self._send()
        return answer

    def give_up(self, answer: "Future[Answer]") -> None:
        """Nobody waits for this answer any more. Where it is the only one, what is asked next need not wait for it either."""
        if len(self._asked) == 1 and self._asked[0].answer is answer:
            self.was_given_up = True
            self.close("its last request was given up")

    # --- sending

    def _send(self) -> None:
        try:
            is_done = self._out.send()
        except (BlockingIOError, InterruptedError):
            is_done = False
        except OSError as error:
            self.close(str(error))
            return
        if is_done:
            self._unsent_bytes = 0
        if is_done == self._is_writing:
            self._is_writing = not is_done
            if is_done:
                self._loop.remove_writer(self._fd)
            else:
                self._loop.add_writer(self._fd, self._send)

    # --- receiving

    def _on_readable(self) -> None:
        if self.is_closed:
            return
        try:
            received = self._receive()
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.close(str(error))
            return
        if not received:
            self.close("it closed the connection")
        elif (
            getattr(self._socket, "has_more", False) and not self._is_asked_again
        ):  # of TLS: the loop does not tell
            self._is_asked_again = True
            self._loop.call_soon(self._again)

    def _again(self) -> None:
        self._is_asked_again = False
        self._on_readable()

    def _receive(self) -> int:
        frame = self._frame
        if frame is not None:
            received = self._socket.recv_into(memoryview(frame)[self._have :])
            self._have += received
            if self._have == len(frame):
                self._frame = None
                self._take(frame)
            return received
        kept = len(self._head)
        self._scratch[:kept] = self._head
        received = self._socket.recv_into(self._scratch[kept:])
        if received:
            self._head = b""
            self._take_frames(kept + received)
        return received

    def _take_frames(self, end: int) -> None:
        """Hand on the whole answers in the scratch buffer, and keep what is left of the last one."""
        scratch = self._scratch
        position = 0
        while end - position >= SIZE.size:
            (size,) = SIZE.unpack_from(scratch, position)
            if not MIN_ANSWER_BYTES <= size <= self._max_answer_bytes:
                self.close(f"an answer of {size} bytes")
                return
            start = position + SIZE.size
            position = start + size
            if position > end:
                self._have = end - start
                self._frame = frame = bytearray(size)
                frame[: self._have] = scratch[start:end]
                return
            self._take(bytes(scratch[start:position]))
            if self.is_closed:
                return
        self._head = bytes(scratch[position:end])

    def _take(self, frame: Answer) -> None:
        if not self._asked:
            self.close("it answered without a question")
            return
        (correlation_id,) = SIZE.unpack_from(frame)
        asked = self._asked[0]
        if correlation_id != asked.correlation_id:
            self.close("it answered another request than ours")
            return
        self._asked.popleft()
        self.has_answered = True
        asked.timer.cancel()
        if not asked.answer.done():  # else whoever asked has gone
            asked.answer.set_result(frame)
        if not self._asked and self.on_idle is not None:
            self.on_idle()

    def close(self, reason: str) -> None:
        """Close now; what was asked and not answered fails for this reason."""
        if self.is_closed:
            return
        self.is_closed = True
        self._loop.remove_reader(self._fd)
        if self._is_writing:
            self._loop.remove_writer(self._fd)
        self._out.clear()
        self._frame = None
        self._socket.close()
        self.on_idle = None
        self._on_close(self)
        while self._asked:
            asked = self._asked.popleft()
            asked.timer.cancel()
            if not asked.answer.done():
                asked.answer.set_exception(PeerUnavailable(f"{self.address}: {reason}"))
