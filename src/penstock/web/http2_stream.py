"""One request of an HTTP/2 connection and its answer, as ASGI wants them.

Nobody is sent more than he takes: the client may send more of a body when the application has taken what is there, and the
application waits for the client's windows.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol

_OF_HTTP1: Final = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)


class Connection(Protocol):
    """`http2.Http2Protocol`."""

    writable: asyncio.Event

    def room(self, stream_id: int) -> int: ...
    def begin(self, stream_id: int, headers: list[tuple[bytes, bytes]]) -> None: ...
    def send_data(self, stream_id: int, data: bytes) -> None: ...
    def finish(self, stream_id: int) -> None: ...
    def reset(self, stream_id: int) -> None: ...
    def taken(self, stream_id: int, size: int) -> None: ...


class Stream:
    def __init__(self, connection: Connection, stream_id: int) -> None:
        self._connection = connection
        self.id = stream_id
        self._body: list[tuple[bytes, int]] = []
        self._is_whole = False
        self._is_gone = False
        self._changed = asyncio.Event()
        self.may_send = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.has_ended = False

    def given(self, data: bytes, size: int) -> None:
        self._body.append((data, size))
        self._changed.set()

    def whole(self) -> None:
        self._is_whole = True
        self._changed.set()

    def gone(self) -> None:
        """The client has dropped it. Nobody waits for the answer, and to begin and drop many must not cost much."""
        self._is_gone = True
        if self.task is not None:
            self.task.cancel()
        self._changed.set()
        self.may_send.set()

    async def receive(self) -> dict[str, Any]:
        while True:
            if self._body:
                data, size = self._body.pop(0)
                self._connection.taken(self.id, size)
                return {
                    "type": "http.request",
                    "body": data,
                    "more_body": bool(self._body) or not self._is_whole,
                }
            if self._is_whole:
                self._is_whole = False
                return {"type": "http.request", "body": b"", "more_body": False}
            if self._is_gone or self.has_ended:
                return {"type": "http.disconnect"}
            self._changed.clear()
            await self._changed.wait()

    async def send(self, message: dict[str, Any]) -> None:
        if self._is_gone:
            return
        if message["type"] == "http.response.start":
            headers = [(b":status", str(message["status"]).encode())]
            headers += [each for each in message["headers"] if each[0] not in _OF_HTTP1]
            self._connection.begin(self.id, headers)
            return
        data = memoryview(message.get("body", b""))
        while data and not self._is_gone:
            room = self._connection.room(self.id)
            if room <= 0 or not self._connection.writable.is_set():
                self.may_send.clear()
                await (self.may_send if room <= 0 else self._connection.writable).wait()
                continue
            self._connection.send_data(self.id, bytes(data[:room]))
            data = data[room:]
        if not message.get("more_body", False) and not self._is_gone:
            self.has_ended = True
            self._connection.finish(self.id)
            self._changed.set()

    def finished(self) -> None:
        """The application has ended, perhaps without an answer, or without having read all."""
        for _, size in self._body:
            self._connection.taken(self.id, size)
        if not self.has_ended and not self._is_gone:
            self._connection.reset(self.id)
