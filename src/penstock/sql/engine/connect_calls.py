"""Connect's REST API, asked with the standard library."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from penstock.client.errors import BadOption, Unreachable, reason

TIMEOUT_S: Final = 30.0
MAX_ANSWER_BYTES: Final = 64 << 20
CONNECT_URL: Final = "ksql.connect.url"


def connect_of(options: Mapping[str, Any], given: Mapping[str, str]) -> ConnectServer | None:
    """`given` are the server's properties: `ksql.connect.ssl.…` says whom https trusts. BadOption."""
    if not options[CONNECT_URL]:
        return None
    prefix = "ksql.connect."
    stores = {
        name.removeprefix(prefix): value for name, value in given.items() if name.startswith(f"{prefix}ssl.")
    }
    if not stores:
        return ConnectServer(options[CONNECT_URL])
    from penstock.client.security import security_of

    return ConnectServer(
        options[CONNECT_URL], security_of({"security.protocol": "SSL", **stores}).tls_context
    )


class ConnectRefused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ConnectServer:
    """`urls`: one address, or several with commas; each call takes the first that answers. A login may stand in them."""

    def __init__(self, urls: str, context: ssl.SSLContext | None = None) -> None:
        self._addresses = [urlsplit(each.strip()) for each in urls.split(",") if each.strip()]
        for address in self._addresses:
            if address.scheme not in ("http", "https") or not address.hostname:
                raise BadOption(
                    f"{CONNECT_URL}: '{address.geturl()}' is no address of Connect: http://HOST:PORT"
                )
        self._context = context

    def connectors(self) -> list[str]:
        return [str(each) for each in self._ask("GET", "/connectors", list)]

    def plugins(self) -> list[dict[str, Any]]:
        return list(self._ask("GET", "/connector-plugins", list))

    def create(self, name: str, config: Mapping[str, str]) -> dict[str, Any]:
        return dict(self._ask("POST", "/connectors", dict, {"name": name, "config": dict(config)}))

    def mistakes(self, config: Mapping[str, str]) -> list[str]:
        """What its class says against a configuration, each with the name of its property."""
        plugin = config["connector.class"]
        path = f"/connector-plugins/{quote(plugin, safe='')}/config/validate"
        said = self._ask("PUT", path, dict, dict(config))
        values = [each.get("value") or {} for each in said.get("configs") or ()]
        return [f"{each.get('name')} - {'. '.join(each['errors'])}" for each in values if each.get("errors")]

    def info(self, name: str) -> dict[str, Any]:
        return dict(self._ask("GET", self._path(name), dict))

    def status(self, name: str) -> dict[str, Any]:
        return dict(self._ask("GET", self._path(name) + "/status", dict))

    def topics(self, name: str) -> list[str]:
        said = self._ask("GET", self._path(name) + "/topics", dict)
        return [str(each) for each in (said.get(name) or {}).get("topics") or ()]

    def delete(self, name: str) -> None:
        self._ask("DELETE", self._path(name), object)

    @staticmethod
    def _path(name: str) -> str:
        return f"/connectors/{quote(name, safe='')}"

    def _ask(self, method: str, path: str, form: type, body: Any = None) -> Any:
        """ConnectRefused, Unreachable."""
        failure = ""
        for address in self._addresses:
            try:
                status, data = self._answer(address, method, path, body)
            except (OSError, http.client.HTTPException) as error:
                why = reason(error) if isinstance(error, OSError) else str(error)
                failure = (
                    f"cannot reach Connect at {address.scheme}://{address.hostname}:{address.port}: {why}"
                )
                continue
            if status >= 400:
                raise ConnectRefused(status, _message(data, status))
            if form is object:
                return None
            try:
                said = json.loads(data)
            except ValueError:
                said = None
            if isinstance(said, form):
                return said
            failure = f"{address.hostname}:{address.port}{path} does not answer as Connect does"
        raise Unreachable(f"{failure} ({CONNECT_URL})")

    def _answer(self, address: Any, method: str, path: str, body: Any) -> tuple[int, bytes]:
        connection: http.client.HTTPConnection
        if address.scheme == "https":
            context = self._context or ssl.create_default_context()
            connection = http.client.HTTPSConnection(
                address.hostname, address.port, timeout=TIMEOUT_S, context=context
            )
        else:
            connection = http.client.HTTPConnection(address.hostname, address.port, timeout=TIMEOUT_S)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if address.username:
            login = f"{address.username}:{address.password or ''}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, address.path.rstrip("/") + path, data, headers)
            answer = connection.getresponse()
            return answer.status, answer.read(MAX_ANSWER_BYTES)
        finally:
            connection.close()


def _message(data: bytes, status: int) -> str:
    try:
        return str(json.loads(data)["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {status}"
