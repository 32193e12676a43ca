"""uvicorn's HTTP protocol with what it leaves out: a bound on connections, on the size of headers, on the time they may take, and
the client's certificate for the login.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\nconnection: close\r\n"
    b"content-length: 74\r\n\r\n"
    b'{"error_code":431,"message":"HTTP 431 Request Header Fields Too Large"}   '
)


PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""How a client begins that knows of HTTP/2 at the other end."""


class BoundedProtocol(HttpToolsProtocol):
    """The class attributes are set by `with_bounds`."""

    max_connections: int
    max_header_bytes: int
    header_timeout_s: float
    has_http2: bool

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._header_bytes = 0
        self._certificate: bytes | None = None
        self._header_timer: asyncio.TimerHandle | None = None
        self._first: bytes | None = b"" if self.has_http2 else None
        if len(self.connections) > self.max_connections:
            transport.abort()
            return
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        if tls is not None:
            self._certificate = tls.getpeercert(binary_form=True)
            if self.has_http2 and tls.selected_alpn_protocol() == "h2":
                self._become_http2(b"")
                return
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        if self._first is not None:
            data, self._first = self._first + data, None
            if data.startswith(PREFACE):
                self._become_http2(data)
                return
            if PREFACE.startswith(data):
                self._first = data  # not all of it has come
                return
        super().data_received(data)

    def _become_http2(self, data: bytes) -> None:
        from penstock.web.http2 import Http2Protocol

        self._headers_are_there()
        self._unset_keepalive_if_required()
        self.connections.discard(self)
        successor = Http2Protocol(
            self.config,
            self.server_state,
            max_header_bytes=self.max_header_bytes,
            idle_timeout_s=self.header_timeout_s,
            certificate=self._certificate,
        )
        self.transport.set_protocol(successor)
        successor.connection_made(self.transport)
        if data:
            successor.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._headers_are_there()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._header_bytes = 0
        if self._certificate is not None:
            self.scope["penstock.certificate"] = self._certificate  # type: ignore[typeddict-unknown-key]
        self._expect_headers()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._headers_are_there()
        if not self.transport.is_closing():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self.cycle is not None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self.cycle is not None:
            super().on_message_complete()

    def _count(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > self.max_header_bytes and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def _expect_headers(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(self.header_timeout_s, self.transport.abort)

    def _headers_are_there(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None


def with_bounds(
    *, max_connections: int, max_header_bytes: int, header_timeout_s: float, has_http2: bool = False
) -> type[Any]:
    return type(
        "HttpProtocol",
        (BoundedProtocol,),
        {
            "max_connections": max_connections,
            "max_header_bytes": max_header_bytes,
            "header_timeout_s": header_timeout_s,
            "has_http2": has_http2,
        },
    )
