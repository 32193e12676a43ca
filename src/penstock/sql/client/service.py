"""The server's REST API, asked with the standard library."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from penstock.client.errors import BadOption, Unreachable

V1: Final = "application/vnd.ksql.v1+json"
TIMEOUT_S: Final = 60.0
CHUNK_BYTES: Final = 65536
LEAST_WAIT_S: Final = 0.001


class ServerRefused(Exception):
    """`document` is what the server said: `error_code`, `message`, `entities`."""

    def __init__(self, document: Mapping[str, Any], status: int) -> None:
        super().__init__(str(document.get("message") or f"HTTP {status}"))
        self.document = document
        self.status = status


class SqlServer:
    """`context`: whom https trusts; without it whom this machine trusts."""

    def __init__(
        self,
        url: str,
        *,
        user: str | None = None,
        password: str | None = None,
        token: str | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        found = urlsplit(url if "://" in url else f"http://{url}")
        port: int | None
        try:
            port = found.port
        except ValueError:
            port = -1
        if port == -1 or found.scheme not in ("http", "https") or not found.hostname:
            raise BadOption(f"'{url}' is no address of a server: http://HOST:PORT")
        self.url = f"{found.scheme}://{found.netloc.rpartition('@')[2]}"
        self._host, self._is_tls = found.hostname, found.scheme == "https"
        self._port = port or (443 if self._is_tls else 8088)
        self._base = found.path.rstrip("/")
        self._context = context
        self._streaming: set[socket.socket] = set()
        self._is_closed = False
        self._headers = {"Content-Type": f"{V1}; charset=utf-8", "Accept": V1}
        user, password = user or found.username, password or found.password
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        elif user:
            secret = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
            self._headers["Authorization"] = f"Basic {secret}"

    def close(self) -> None:
        """Ends the answers that come at this moment, which other threads read, as if they were at their end."""
        self._is_closed = True
        for each in list(self._streaming):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(each, socket.SHUT_RDWR)

    def info(self) -> dict[str, Any]:
        found: dict[str, Any] = self._call("GET", "/info", None)["KsqlServerInfo"]
        return found

    def statements(
        self, text: str, properties: Mapping[str, str], variables: Mapping[str, str], sequence: int | None
    ) -> list[dict[str, Any]]:
        """ServerRefused, Unreachable."""
        body = {
            "ksql": text,
            "streamsProperties": dict(properties),
            "sessionVariables": dict(variables),
            "commandSequenceNumber": sequence,
        }
        found = self._call("POST", "/ksql", body)
        return found if isinstance(found, list) else [found]

    def rows(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        deadline_s: float | None = None,
    ) -> Iterator[dict[str, Any]]:
        """The elements of the answer to a query as they come, until `deadline_s` (of the monotonic clock). Closing the iterator
        ends the query."""
        body = {"ksql": text, "streamsProperties": dict(properties), "sessionVariables": dict(variables)}
        for text_of_one in elements(self._stream("/query", body, deadline_s)):
            yield json.loads(text_of_one)

    def lines(
        self, text: str, properties: Mapping[str, str], deadline_s: float | None = None
    ) -> Iterator[str]:
        """Of PRINT, until `deadline_s`."""
        rest = b""
        body = {"ksql": text, "streamsProperties": dict(properties)}
        for chunk in self._stream("/query", body, deadline_s):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line.decode(errors="replace") for line in lines)
        if rest:
            yield rest.decode(errors="replace")

    def _call(self, method: str, path: str, body: Any) -> Any:
        connection = self._connection(TIMEOUT_S)
        try:
            answer = self._asked(connection, method, path, body)
            data = answer.read()
        except OSError as error:
            raise self._unreachable(error) from None
        finally:
            connection.close()
        return _document(data)

    def _stream(self, path: str, body: Any, deadline_s: float | None) -> Iterator[bytes]:
        """It ends with the answer, or at the deadline, also while nothing comes."""
        connection = self._connection(None if deadline_s is None else _left_s(deadline_s))
        connected: socket.socket | None = None
        try:
            connection.connect()
            connected = connection.sock  # of an answer that closes it the connection has none any more
            self._streaming.add(connected)
            if self._is_closed:
                return
            answer = self._asked(connection, "POST", path, body)
            while chunk := answer.read1(CHUNK_BYTES):
                yield chunk
                if deadline_s is not None:
                    connected.settimeout(_left_s(deadline_s))
        except TimeoutError:
            return
        except (OSError, http.client.HTTPException, Unreachable) as error:
            if self._is_closed:
                return
            if isinstance(error, Unreachable):
                raise
            raise self._unreachable(error) from None
        finally:
            if connected is not None:
                self._streaming.discard(connected)
            connection.close()

    def _asked(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Any
    ) -> http.client.HTTPResponse:
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, self._base + path, data, self._headers)
            answer = connection.getresponse()
        except TimeoutError:
            raise
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None
        if answer.status >= 400:
            document = _document(answer.read())
            raise ServerRefused(document if isinstance(document, dict) else {}, answer.status)
        return answer

    def _connection(self, timeout_s: float | None) -> http.client.HTTPConnection:
        if self._is_tls:
            context = self._context or ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout_s, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)

    def _unreachable(self, error: Exception) -> Unreachable:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        if isinstance(error, ssl.SSLCertVerificationError):
            return Unreachable(
                f"the SQL server at {self.url} shows a certificate that is not trusted: {error.verify_message}. "
                "Whom to trust stands in a file: --config-file, with ssl.truststore.location"
            )
        return Unreachable(
            f"cannot reach the SQL server at {self.url}: {why.lower()}. Start one: penstock sql-server"
        )


def _left_s(deadline_s: float) -> float:
    return max(deadline_s - time.monotonic(), LEAST_WAIT_S)


def _document(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return {"message": data[:1000].decode(errors="replace")}


def elements(chunks: Iterator[bytes]) -> Iterator[str]:
    """The elements of a JSON array, or the lines of KSQL 5.1, each as soon as it is whole."""
    text, depth, start, is_text, is_escaped = "", 0, 0, False, False
    at = 0
    for chunk in chunks:
        text += chunk.decode(errors="replace")
        while at < len(text):
            char = text[at]
            if is_text:
                if is_escaped:
                    is_escaped = False
                elif char == "\\":
                    is_escaped = True
                elif char == '"':
                    is_text = False
            elif char == '"':
                is_text = True
            elif char == "{":
                if depth == 0:
                    start = at
                depth += 1
            elif char == "}":
                depth -= 1
                if depth == 0:
                    yield text[start : at + 1]
                    text, at = text[at + 1 :], -1
            at += 1
