"""Requests over one connection that stays open, with a token where the endpoint wants one."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, urlencode, urlsplit

from penstock.connect.errors import ConnectError, Hopeless, InvalidConfig, RetriableError
from penstock.connect.settings import HIGH, LOW, Kind, Setting, Settings, at_least, one_of

NONE, STATIC, OAUTH2, APIKEY = "none", "static", "oauth2", "apikey"
MOST_ANSWER_BYTES: Final = 64 << 20
SHOWN_CHARACTERS: Final = 500
RETRIABLE: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
EARLY_S: Final = 10
"""So long before its end a token is asked for again."""

AUTHORIZATION: Final = Settings(
    Setting("http.url", Kind.STRING, "Where to send to, or to ask: http:// or https://.", importance=HIGH),
    Setting("http.authorization.type", Kind.STRING, "`none`; `static` sends http.headers.authorization; `oauth2` asks for a "
            "token with the client's credentials; `apikey` does that with a key and a secret as JSON.", default=NONE,
            importance=HIGH, check=one_of(NONE, STATIC, OAUTH2, APIKEY, any_case=True)),
    Setting("http.headers.authorization", Kind.PASSWORD, "The header Authorization, with `static`.", default=None),
    Setting("http.headers.additional", Kind.LIST, "More headers, as name:value, with commas between them.", default=[],
            importance=LOW),
    Setting("http.timeout", Kind.INT, "How long an answer may take, in seconds.", default=30, check=at_least(1),
            importance=LOW),
    Setting("oauth2.access.token.url", Kind.STRING, "Where tokens come from.", default=None, importance=HIGH),
    Setting("oauth2.client.id", Kind.STRING, "The client, or the API key.", default=None, importance=HIGH),
    Setting("oauth2.client.secret", Kind.PASSWORD, "Its secret.", default=None, importance=HIGH),
    Setting("oauth2.client.authorization.mode", Kind.STRING, "Whether the credentials are sent as a header or in the form: "
            "HEADER, URL.", default="HEADER", check=one_of("HEADER", "URL", any_case=True)),
    Setting("oauth2.client.scope", Kind.STRING, "The scope of the token.", default=None, importance=LOW),
    Setting("oauth2.response.token.property", Kind.STRING, "Where in its answer the token is.", default="access_token",
            importance=LOW),
)  # fmt: skip


class Answer(NamedTuple):
    status: int
    body: bytes
    retry_after_s: float | None = None

    @property
    def is_good(self) -> bool:
        return self.status < 300

    def __str__(self) -> str:
        return f"{self.status}: {self.body[:SHOWN_CHARACTERS].decode('utf-8', 'replace')}".rstrip(": ")


class Endpoint:
    """RetriableError where nobody answers."""

    def __init__(self, values: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        self.url: str = values["http.url"]
        self._values = values
        self._headers = {**headers, **additional_of(values["http.headers.additional"])}
        self._kind: str = values["http.authorization.type"].lower()
        self._timeout_s: float = values["http.timeout"]
        self._connection: http.client.HTTPConnection | None = None
        self._to: tuple[str, str] | None = None
        self._token: str | None = None
        self._token_end_s = 0.0
        if self._kind == STATIC:
            self._headers["Authorization"] = values["http.headers.authorization"]

    def send(self, method: str, body: bytes | None = None, url: str | None = None) -> Answer:
        """With a new token, once, where the old one is not taken any more. Hopeless where the login is refused."""
        answer = self._send_once(method, url or self.url, body)
        if answer.status == 401 and self._kind in (OAUTH2, APIKEY):
            self._token = None
            answer = self._send_once(method, url or self.url, body)
        if answer.status in (401, 403):
            raise Hopeless(f"{self.url} refuses the login: {answer}")
        return answer

    def _send_once(self, method: str, url: str, body: bytes | None) -> Answer:
        headers = self._headers
        if self._kind in (OAUTH2, APIKEY):
            headers = {**headers, "Authorization": f"Bearer {self._fresh_token()}"}
        return self._exchange(method, url, body, headers)

    def _fresh_token(self) -> str:
        if self._token is None or time.monotonic() >= self._token_end_s:
            self._token = self._ask_for_token()
        return self._token

    def _ask_for_token(self) -> str:
        values = self._values
        url, name, secret = (
            values[f"oauth2.{each}"] for each in ("access.token.url", "client.id", "client.secret")
        )
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        if self._kind == APIKEY:
            headers["Content-Type"] = "application/json"
            body = json.dumps({"type": "api-key", "key": name, "secret": secret}).encode()
        else:
            form = {"grant_type": "client_credentials"}
            if values["oauth2.client.scope"]:
                form["scope"] = values["oauth2.client.scope"]
            if values["oauth2.client.authorization.mode"].upper() == "URL":
                form |= {"client_id": name, "client_secret": secret}
            else:
                words = base64.b64encode(f"{name}:{secret}".encode()).decode()
                headers["Authorization"] = f"Basic {words}"
            body = urlencode(form).encode()
        answer = self._exchange("POST", url, body, headers)
        if answer.status in RETRIABLE:
            raise RetriableError(f"{url} gives no token: {answer}")
        if not answer.is_good:
            raise Hopeless(f"{url} gives no token: {answer}")
        try:
            said = json.loads(answer.body)
            token = str(said[values["oauth2.response.token.property"]])
            lives_s = float(said.get("expires_in") or 3600)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ConnectError(
                f"{url} answers without {values['oauth2.response.token.property']}, which is to be the token"
            ) from None
        self._token_end_s = time.monotonic() + max(1.0, lives_s - EARLY_S)
        return token

    def _exchange(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        parts = urlsplit(url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        for is_again in (False, True):
            was_open = self._connection is not None and self._to == (parts.scheme, parts.netloc)
            connection = self._opened(parts)
            try:
                connection.request(method, path, body=body, headers=dict(headers))
                return _read(connection.getresponse())
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as error:
                self.close()
                # A connection that was left open is closed by the other side at any time.
                if is_again or not was_open:
                    raise RetriableError(f"{url}: {error}") from error
            except (OSError, http.client.HTTPException) as error:
                self.close()
                raise RetriableError(f"{url}: {error or type(error).__name__}") from error
        raise AssertionError

    def _opened(self, parts: SplitResult) -> http.client.HTTPConnection:
        to = (parts.scheme, parts.netloc)
        if self._connection is None or self._to != to:
            self.close()
            host = parts.hostname or ""
            if parts.scheme == "https":
                self._connection = http.client.HTTPSConnection(
                    host, parts.port, timeout=self._timeout_s, context=ssl.create_default_context()
                )
            else:
                self._connection = http.client.HTTPConnection(host, parts.port, timeout=self._timeout_s)
            self._to = to
            try:
                self._connection.connect()
            except OSError as error:
                self.close()
                raise RetriableError(f"{parts.scheme}://{parts.netloc}: {error}") from error
            self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _read(response: http.client.HTTPResponse) -> Answer:
    body = response.read(MOST_ANSWER_BYTES + 1)
    if len(body) > MOST_ANSWER_BYTES:
        raise ConnectError(f"an answer has more than {MOST_ANSWER_BYTES} bytes")
    if response.will_close:
        response.close()
    said = response.headers.get("Retry-After", "")
    return Answer(response.status, body, float(said) if said.isdigit() else None)


def additional_of(listed: list[str]) -> dict[str, str]:
    """InvalidConfig."""
    found: dict[str, str] = {}
    for each in listed:
        name, colon, value = each.partition(":")
        if not colon or not name.strip():
            raise InvalidConfig(
                f"Invalid value {each} for configuration http.headers.additional: it must be name:value"
            )
        if name.strip().lower() in map(str.lower, found):
            raise InvalidConfig(f"http.headers.additional: {name.strip()} is there twice")
        found[name.strip()] = value.strip()
    return found


def mistakes_of(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """What does not go together."""
    found: dict[str, list[str]] = {}
    kind = values["http.authorization.type"].lower()
    for name in ("http.url", "oauth2.access.token.url"):
        parts = urlsplit(values[name] or "http://none")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            found[name] = ["It must be an address that begins with http:// or https://"]
    if kind == STATIC and not values["http.headers.authorization"]:
        found["http.headers.authorization"] = [
            "http.authorization.type=static sends this header: it must be set"
        ]
    if kind != STATIC and values["http.headers.authorization"]:
        found["http.headers.authorization"] = ["This header is sent with http.authorization.type=static only"]
    if kind in (OAUTH2, APIKEY):
        for name in ("oauth2.access.token.url", "oauth2.client.id", "oauth2.client.secret"):
            if not values[name]:
                found.setdefault(name, []).append(f"http.authorization.type={kind} needs it")
    try:
        additional_of(values["http.headers.additional"])
    except InvalidConfig as error:
        found["http.headers.additional"] = [str(error)]
    return found
