"""A cluster over HTTP: one connection, to one server after the other."""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import orjson

from penstock.connect.errors import ConnectError, Hopeless, RetriableError

JSON: Final = "application/json"
LINES: Final = "application/x-ndjson"
AGAIN: Final = (408, 425, 429, 500, 502, 503, 504)
ANSWER_MAX_BYTES: Final = 256 * 1024 * 1024
_SHOWN: Final = 300


class Answer(NamedTuple):
    status: int
    body: Any


class Client:
    """`values`: the parsed settings. Use from one thread."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._urls = [urlsplit(url.rstrip("/")) for url in values["connection.url"]]
        self._place = 0
        self._connect_s = values["connection.timeout.ms"] / 1000
        self._read_s = values["read.timeout.ms"] / 1000
        self._headers: dict[str, str] = {}
        if values["connection.username"] is not None:
            word = f"{values['connection.username']}:{values['connection.password']}".encode()
            self._headers["Authorization"] = f"Basic {b64encode(word).decode()}"
        self._tls = _tls_of(values) if any(url.scheme == "https" for url in self._urls) else None
        self._connection: HTTPConnection | None = None

    def ask(self, method: str, path: str, body: bytes | None = None, kind: str = JSON) -> Answer:
        """RetriableError where another attempt may do; Hopeless for a login that is refused."""
        url = self._urls[self._place]
        try:
            connection = self._connection or self._open()
            connection.request(method, url.path + path, body, {**self._headers, "Content-Type": kind})
            answer = connection.getresponse()
            data = answer.read(ANSWER_MAX_BYTES)
        except (OSError, HTTPException) as error:
            self.close()
            self._place = (self._place + 1) % len(self._urls)
            raise RetriableError(
                f"{url.netloc} cannot be reached: {error or type(error).__name__}"
            ) from error
        try:
            found = orjson.loads(data) if data else None
        except orjson.JSONDecodeError:
            found = data.decode(errors="replace")
        if answer.status in (401, 403):
            raise Hopeless(f"{url.netloc} refuses the login: {answer.status} {str(found)[:_SHOWN]}")
        if answer.status in AGAIN:
            raise RetriableError(f"{url.netloc} answers {answer.status}: {str(found)[:_SHOWN]}")
        return Answer(answer.status, found)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> HTTPConnection:
        url = self._urls[self._place]
        host = url.hostname
        if not host:
            raise ConnectError(f"there is no host in {url.geturl()}")
        made: HTTPConnection
        if url.scheme == "https":
            made = HTTPSConnection(host, url.port or 443, timeout=self._connect_s, context=self._tls)
        else:
            made = HTTPConnection(host, url.port or 80, timeout=self._connect_s)
        made.connect()
        made.sock.settimeout(self._read_s)
        self._connection = made
        return made


def _tls_of(values: Mapping[str, Any]) -> ssl.SSLContext:
    try:
        made = ssl.create_default_context(cafile=values["elastic.https.ssl.truststore.location"])
    except (OSError, ssl.SSLError) as error:
        raise ConnectError(
            f"elastic.https.ssl.truststore.location cannot be used, it must be PEM: {error}"
        ) from error
    if not values["elastic.https.ssl.endpoint.identification.algorithm"]:
        made.check_hostname = False
    return made
