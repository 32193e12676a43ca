"""As much HTTP as a scraper of metrics needs: GET and HEAD of one path, an answer, and the end of the connection.

Everything is bounded: how long a request may be and may take, how many are served at once, and how long a client may take
to read. Not promised: keep-alive, bodies, compression, TLS.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

log = logging.getLogger("penstock.net")

MAX_REQUEST_BYTES: Final = 8192
REQUEST_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 10.0
FAREWELL_SECONDS: Final = 1.0
MAX_UNREAD_BYTES: Final = 65_536
MAX_CONNECTIONS: Final = 16

PLAIN: Final = "text/plain; charset=utf-8"
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
}


class Page(NamedTuple):
    content_type: str
    body: bytes


class HttpResponder:
    """Serves what `make_page` gives, newly made for each request, at one path."""

    def __init__(
        self,
        path: str,
        make_page: Callable[[], Awaitable[Page]],
        *,
        request_seconds: float = REQUEST_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._path = path
        self._make_page = make_page
        self._request_seconds = request_seconds
        self._answer_seconds = answer_seconds
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, sock: socket.socket) -> None:
        """`sock` is bound and listens."""
        self._server = await asyncio.start_server(self._connected, sock=sock, limit=MAX_REQUEST_BYTES)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(self._request_seconds):
                head = await _read_head(reader)
            if head is None:
                return
            status, page, with_body = await self._answer(head)
            async with asyncio.timeout(self._answer_seconds):
                writer.transport.set_write_buffer_limits(0)  # so that drain waits for all of it
                writer.write(_head(status, page))
                if with_body:
                    writer.write(page.body)  # by itself: it may be large, and the same for several clients
                await writer.drain()
            async with asyncio.timeout(FAREWELL_SECONDS):
                await _hear_out(reader, writer)
        except (OSError, TimeoutError):
            pass  # the client left, or is too slow
        finally:
            # An answer that could not be written in its time is not waited for.
            writer.transport.abort()

    async def _answer(self, head: bytes) -> tuple[int, Page, bool]:
        request = _parse(head)
        if request is None:
            return 400, _text("This is not an HTTP request."), True
        method, path = request
        if method not in ("GET", "HEAD"):
            return 405, _text("Only GET and HEAD are served."), True
        with_body = method == "GET"
        if path != self._path:
            return 404, _text(f"There is only {self._path} here."), with_body
        try:
            return 200, await self._make_page(), with_body
        except Exception:
            log.exception("cannot make %s", self._path)
            return 500, _text("See the broker's log."), with_body


async def _read_head(reader: asyncio.StreamReader) -> bytes | None:
    """All up to the empty line; what there is of it when the request is too long; None when nothing was asked."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        return error.partial or None
    except asyncio.LimitOverrunError:
        return b""


def _parse(head: bytes) -> tuple[str, str] | None:
    """Method and path of a request; None when it is none."""
    if not head.endswith(b"\r\n\r\n"):
        return None
    first, *fields = head[:-4].decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[0].isalpha() or parts[2] not in ("HTTP/1.0", "HTTP/1.1"):
        return None
    if not all(field.partition(":")[1] and field[:1] not in (" ", "\t", ":") for field in fields):
        return None
    target = parts[1]
    if target.lower().startswith("http://"):
        target = "/" + target[len("http://") :].partition("/")[2]
    if not target.startswith("/"):
        return None
    return parts[0].upper(), target.partition("?")[0]


def _text(line: str) -> Page:
    return Page(PLAIN, line.encode() + b"\n")


def _head(status: int, page: Page) -> bytes:
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\n"
        f"Content-Type: {page.content_type}\r\n"
        f"Content-Length: {len(page.body)}\r\n"
        + ("Allow: GET, HEAD\r\n" if status == 405 else "")
        + "Connection: close\r\n\r\n"
    )
    return head.encode("latin-1")


async def _hear_out(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Bytes that nobody reads would make the kernel reset the connection, and the client lose the answer."""
    if writer.can_write_eof():
        writer.write_eof()
    unread = 0
    while unread < MAX_UNREAD_BYTES:
        data = await reader.read(MAX_REQUEST_BYTES)
        if not data:
            return
        unread += len(data)
