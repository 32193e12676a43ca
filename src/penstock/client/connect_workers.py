"""A client of Connect's REST API, for the command line and the console: of ours and of Kafka's workers."""

from __future__ import annotations

import base64
import http.client
import json
from typing import Any, Final
from urllib.parse import quote, urlsplit

from penstock.client.errors import Refused, Unreachable, UserError

TIMEOUT_S: Final = 90.0
MAX_ANSWER_BYTES: Final = 64 << 20
DEFAULT_URL: Final = "http://localhost:8083"


class ConnectWorkers:
    """`url` may hold a login: http://NAME:PASSWORD@HOST:PORT. The certificate of https is checked by `authority`, a PEM file, or
    by what the system trusts."""

    def __init__(self, url: str, *, authority: str | None = None, timeout_s: float = TIMEOUT_S) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UserError(f"'{url}' is not http://HOST:PORT")
        self._scheme, self._host = parts.scheme, parts.hostname
        self._port = parts.port or 8083
        self._path = parts.path.rstrip("/")
        self._authority = authority
        self._timeout_s = timeout_s
        self._headers = {"Accept": "application/json"}
        if parts.username:
            login = f"{parts.username}:{parts.password or ''}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"

    def get(self, path: str) -> Any:
        return self.ask("GET", path)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What is answered, as JSON; None for nothing. Refused, with the worker's words; Unreachable."""
        headers = dict(self._headers)
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        connection = self._connection()
        try:
            connection.request(method, self._path + path, body=data, headers=headers)
            answer = connection.getresponse()
            text = answer.read(MAX_ANSWER_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(
                f"no Connect worker answers at {self._scheme}://{self._host}:{self._port}: {error}"
            ) from None
        finally:
            connection.close()
        try:
            found = json.loads(text) if text else None
        except ValueError:
            found = {"message": text.decode(errors="replace")[:500]}
        if answer.status >= http.client.BAD_REQUEST:
            said = found.get("message") if isinstance(found, dict) else None
            raise Refused(said or f"HTTP {answer.status}", code=answer.status, exception_name="HttpError")
        return found

    def _connection(self) -> http.client.HTTPConnection:
        if self._scheme == "http":
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)
        import ssl

        context = ssl.create_default_context(cafile=self._authority)
        return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout_s, context=context)


def path_of(name: str, *rest: str) -> str:
    return "/".join(("/connectors", quote(name, safe=""), *rest))
