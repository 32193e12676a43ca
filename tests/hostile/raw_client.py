"""A client without manners: any request in any version, and any bytes at all, over a plain socket."""

import socket
import struct
import time
from collections.abc import Iterator
from importlib import import_module
from types import TracebackType
from typing import Any, Self

from penstock.model.errors import ErrorCode
from penstock.wire import codec
from penstock.wire.apis import APIS, Api
from penstock.wire.messages.api_versions import ApiVersionsRequest
from penstock.wire.primitives import uvarint
from penstock.wire.schema import Message, Struct

ANSWER_TIMEOUT_S = 30.0
API_VERSIONS_KEY = 18
OFFERED = {key for key, api in APIS.items() if not api.between_brokers}
"""What a broker without a cluster offers."""

_HEADER = struct.Struct(">hhih")


class Closed(Exception):
    """The broker closed the connection instead of answering."""


class RawClient:
    def __init__(self, port: int, *, timeout_s: float = ANSWER_TIMEOUT_S, client_id: str = "raw") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0
        self._client_id = client_id

    def send_bytes(self, data: bytes) -> None:
        """As far as the broker takes them: it may have closed the connection already."""
        try:
            self.socket.sendall(data)
        except (ConnectionResetError, BrokenPipeError):
            pass

    def send_frame(self, frame: bytes) -> None:
        self.send_bytes(struct.pack(">i", len(frame)) + frame)

    def read_exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                part = self.socket.recv(size - len(data))
            except (ConnectionResetError, BrokenPipeError):
                raise Closed from None
            if not part:
                raise Closed
            data += part
        return data

    def read_frame(self) -> bytes:
        """The next answer; Closed when there will be none, TimeoutError when there is none yet."""
        (size,) = struct.unpack(">i", self.read_exactly(4))
        return self.read_exactly(size)

    def is_closed_by_the_broker(self) -> bool:
        """Waits for the end; False when something arrives instead, or nothing for the socket's timeout."""
        try:
            return not self.socket.recv(1)
        except (ConnectionResetError, BrokenPipeError):
            return True
        except TimeoutError:
            return False

    def send(self, request: Message, version: int) -> None:
        self._correlation_id += 1
        self.send_frame(frame_of(request, version, self._correlation_id, self._client_id))

    def receive(self, request: Message, version: int) -> Any:
        frame = self.read_frame()
        (correlation_id,) = struct.unpack_from(">i", frame)
        assert correlation_id == self._correlation_id
        return read_response(request.API_KEY, version, frame)

    def ask(self, request: Message, version: int) -> Any:
        self.send(request, version)
        return self.receive(request, version)

    def is_served(self) -> bool:
        return self.ask(ApiVersionsRequest(), 0).error_code == 0  # type: ignore[no-any-return]

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def header_of(api_key: int, version: int, correlation_id: int = 1, client_id: str | None = "raw") -> bytes:
    """A request header as the API's version wants it; without tagged fields where the API is unknown."""
    name = b"" if client_id is None else client_id.encode()
    header = _HEADER.pack(api_key, version, correlation_id, -1 if client_id is None else len(name)) + name
    api = APIS.get(api_key)
    return header + b"\x00" if api is not None and version >= api.flexible_from else header


def frame_of(request: Message, version: int, correlation_id: int = 1, client_id: str = "raw") -> bytes:
    return header_of(request.API_KEY, version, correlation_id, client_id) + codec.encode(request, version)


def read_response(api_key: int, version: int, frame: bytes) -> Any:
    """The response in a frame; it must be exactly that long."""
    api = APIS[api_key]
    offset = 4
    if version >= api.flexible_from and api_key != API_VERSIONS_KEY:
        assert frame[4:5] == b"\x00"
        offset = 5
    response, end = codec.decode(message_class(api, "Response"), version, frame, offset)
    assert end == len(frame), f"{len(frame) - end} bytes after the response"
    return response


def message_class(api: Api, kind: str) -> type[Message]:
    """`Request` or `Response` of an API, by its name in the table of APIs."""
    module = import_module(f"penstock.wire.messages.{api.name}")
    name = "".join(word.capitalize() for word in api.name.split("_")) + kind
    found: type[Message] = getattr(module, name)
    return found


def error_codes(message: Struct) -> Iterator[int]:
    """Every error code anywhere in a response."""
    for name in message.__slots__:
        value = getattr(message, name)
        if name == "error_code":
            yield value
        for inner in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(inner, Struct):
                yield from error_codes(inner)


def assert_sane_error_codes(response: Struct) -> None:
    for code in error_codes(response):
        assert ErrorCode(code) is not ErrorCode.UNKNOWN_SERVER_ERROR, response


def wait_until(condition: Any, *, timeout_s: float = 30.0, what: str = "the condition") -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come within {timeout_s:g} s"
        time.sleep(0.01)


def compact(value: int) -> bytes:
    """A count or length in its compact form, also one that is a lie."""
    return uvarint(value + 1)
