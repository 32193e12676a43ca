"""What asking a web server with secrets in hand has in common, whoever is asked."""

from __future__ import annotations

import http.client
import socket
import threading
import time
import urllib.request
from functools import partial
from types import TracebackType
from typing import Any, Self


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """urllib would take the secrets along to wherever it is sent."""

    def redirect_request(self, *_: object) -> None:
        return None


class Exchange:
    """One request and its answer, with an end: whatever the server does, it is over after so many seconds. Use as a context,
    which raises TimeoutError then.

    A timeout of a socket begins anew with each byte, so a server that sends the head of its answer, or a TLS handshake, little by
    little would hold us for ever. Here a timer shuts the connection down. Only the look-up of a host's name may take longer.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends_s = time.monotonic() + seconds
        self._is_over = False
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def open(self, request: str | urllib.request.Request) -> Any:
        """The answer, whose body is read within the context."""
        opener = urllib.request.build_opener(NoRedirects, _Http(self), _Https(self))
        return opener.open(request, timeout=self._seconds)

    def connect(
        self, address: tuple[str, int], _: object = None, source: tuple[str, int] | None = None
    ) -> socket.socket:
        """In place of socket.create_connection: to the first of a host's addresses that takes it."""
        failure: OSError | None = None
        for family, kind, protocol, _, place in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(max(self._ends_s - time.monotonic(), 0.001))
                if source:
                    sock.bind(source)
                sock.connect(place)
                self._watch(sock)
            except OSError as error:
                failure = error
                sock.close()
            else:
                return sock
        raise failure or OSError(f"{address[0]} has no address")

    def _watch(self, sock: socket.socket) -> None:
        # A second handle on the same connection: TLS takes the first one over.
        with self._lock:
            self._sockets.append(sock.dup())
            if self._is_over:
                self._shut_down()

    def _end(self) -> None:
        with self._lock:
            self._is_over = True
            self._shut_down()

    def _shut_down(self) -> None:
        for sock in self._sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the server was faster

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            while self._sockets:
                self._sockets.pop().close()
        # What came before it may be cut off anywhere, and look whole.
        if self._is_over and (error is None or isinstance(error, Exception)):
            raise TimeoutError from None


class _Http(urllib.request.HTTPHandler):
    def __init__(self, exchange: Exchange) -> None:
        super().__init__()
        self._exchange = exchange

    def http_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(partial(_connection, self._exchange, http.client.HTTPConnection), request)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, exchange: Exchange) -> None:
        super().__init__()
        self._exchange = exchange

    def https_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(partial(_connection, self._exchange, http.client.HTTPSConnection), request)


def _connection(exchange: Exchange, kind: Any, host: str, **given: Any) -> Any:
    connection = kind(host, **given)
    connection._create_connection = exchange.connect
    return connection


def reason_of(error: OSError | http.client.HTTPException) -> str:
    """Why nobody answered, in a few words."""
    cause = getattr(error, "reason", error)  # URLError has the error of the connection in it
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
