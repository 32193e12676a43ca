"""A client's connection to a broker over the fake network: requests in order, answers in order."""

import struct
from asyncio import Future
from collections import deque
from typing import Any, Final, TypeVar

from penstock.model.api_keys import ApiKey
from penstock.wire import codec
from penstock.wire.schema import Message
from simulation.seeds.process import Process
from simulation.seeds.sockets import FakeSocket

Response = TypeVar("Response", bound=Message)

_HEADER: Final = struct.Struct(">hhih")
_SIZE: Final = struct.Struct(">i")
RECEIVE_BYTES: Final = 256 * 1024


class Unanswered(ConnectionError):
    """The connection ended, or could not be made; the request may have been done or not."""


class Wire:
    def __init__(self, process: Process, sock: FakeSocket) -> None:
        self._loop = process.loop
        self._client_id = process.name.encode()
        self._socket = sock
        self._waiting: deque[tuple[int, type[Message], int, Future[Any]]] = deque()
        self._received = bytearray()
        self._unsent = bytearray()
        self._last_correlation_id = 0
        self.is_closed = False
        self._loop.add_reader(sock.fd, self._on_readable)

    def send(self, request: Message, response: type[Response], version: int) -> "Future[Response]":
        """The answer to come; Unanswered when the connection ends first."""
        future: Future[Response] = self._loop.create_future()
        if self.is_closed:
            future.set_exception(Unanswered("the connection is closed"))
            return future
        self._last_correlation_id += 1
        is_flexible = version >= request.FLEXIBLE_FROM
        head = _HEADER.pack(request.API_KEY, version, self._last_correlation_id, len(self._client_id))
        body = head + self._client_id + (b"\0" if is_flexible else b"") + codec.encode(request, version)
        self._waiting.append((self._last_correlation_id, response, version, future))
        self._unsent += _SIZE.pack(len(body)) + body
        self._flush()
        return future

    def close(self, reason: str = "closed") -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self._loop.remove_reader(self._socket.fd)
        self._loop.remove_writer(self._socket.fd)
        self._socket.close()
        while self._waiting:
            future = self._waiting.popleft()[3]
            if not future.done():
                future.set_exception(Unanswered(reason))
                future.exception()  # some have nobody left to look at them

    def _flush(self) -> None:
        try:
            while self._unsent:
                sent = self._socket.send(self._unsent)
                del self._unsent[:sent]
        except BlockingIOError:
            self._loop.add_writer(self._socket.fd, self._flush)
        except OSError as error:
            self.close(str(error))
        else:
            self._loop.remove_writer(self._socket.fd)

    def _on_readable(self) -> None:
        try:
            data = self._socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self.close(str(error))
            return
        if not data:
            self.close("the broker closed the connection")
            return
        self._received += data
        while len(self._received) >= 4:
            (size,) = _SIZE.unpack_from(self._received)
            if len(self._received) < 4 + size:
                return
            frame = bytes(self._received[4 : 4 + size])
            del self._received[: 4 + size]
            self._take(frame)

    def _take(self, frame: bytes) -> None:
        correlation_id, response, version, future = self._waiting.popleft()
        (answered,) = _SIZE.unpack_from(frame)
        if answered != correlation_id:
            raise AssertionError(f"answer {answered} where {correlation_id} was expected")
        is_flexible = version >= response.FLEXIBLE_FROM and response.API_KEY != ApiKey.API_VERSIONS
        message, _ = codec.decode(response, version, frame, 5 if is_flexible else 4)
        if not future.done():
            future.set_result(message)


async def open_wire(process: Process, host: str, port: int) -> Wire:
    return Wire(process, await process.connect(host, port))
