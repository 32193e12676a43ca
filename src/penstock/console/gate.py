"""The gate in front of the pages: nobody gets by without a session, from another site, or into a frame of another site.

An ASGI application around the pages' one. It decides who the visitor is, refuses what comes from elsewhere, and gives each answer
the headers that keep a browser from doing what these pages never do.

What it does not decide: what a visitor may do (`PageContext.act`, `.require`).
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

import orjson

from penstock.console.preferences import Preferences, cookies_of
from penstock.web.call import Receive, Scope, Send
from penstock.web.service import VISITOR as VISITOR_NAME

if TYPE_CHECKING:
    from penstock.console.access.doors import Access
    from penstock.web.service import App

VISITOR: Final = "penstock.visitor"
NONCE: Final = "penstock.nonce"
SOCKET_PATH: Final = "/_nicegui_ws/"
OPEN_PATHS: Final = ("/login", "/login/oidc", "/login/oidc/callback", "/favicon.ico")
_SAFE: Final = ("GET", "HEAD")
_DROPPED: Final = (b"x-forwarded-prefix", b"x-forwarded-host", b"x-forwarded-proto", b"forwarded")
"""Anybody may send these; NiceGUI would believe the first one."""

POLICY: Final = (
    "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' {sockets}; manifest-src 'self'; "
    "worker-src 'self' blob:; media-src 'none'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


class Gate:
    def __init__(
        self, app: App, access: Access, *, cookie: str, public_url: str, open_prefixes: tuple[str, ...]
    ) -> None:
        """`open_prefixes`: where the libraries of the pages are, the same for everybody."""
        self._app = app
        self._open_prefixes = open_prefixes
        self._access = access
        self._cookie = cookie
        self._public = urlsplit(public_url) if public_url else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(reversed(scope["headers"]))  # of several the first one
        host = headers.get(b"host", b"").decode("latin-1")
        if self._access.is_off and not is_loopback(host):
            # A name of another site that leads to this address: its pages would otherwise be of one origin with ours.
            await self._refuse(scope, send, 403, "Without a login this console answers to localhost only.")
            return
        told = scope
        scheme = "https" if scope["scheme"] in ("https", "wss") else "http"
        origins = self._origins(scheme, host)
        nonce = secrets.token_urlsafe(16)
        scope = {
            **scope,
            "headers": [pair for pair in scope["headers"] if pair[0] not in _DROPPED],
            NONCE: nonce,
        }
        if scope["type"] == "websocket":
            if not scope["path"].startswith(SOCKET_PATH) or not _is_from(headers, origins):
                await self._refuse(scope, send, 403, "This websocket is for the pages of this console only.")
                return
        elif scope["method"] not in _SAFE and not _is_from(headers, origins):
            await self._refuse(scope, send, 403, "This request does not come from a page of this console.")
            return
        elif scope["path"].startswith(SOCKET_PATH):
            await self._refuse(scope, send, 404, "There is only a websocket here.")
            return
        guarded = _with_headers(send, nonce, origins, is_secure=self.is_secure(scheme))
        if self._is_open(scope):
            await self._app(scope, receive, guarded)
            return
        cookies = cookies_of(headers.get(b"cookie", b""))
        visitor = self._access.visitor(
            cookies.get(self._cookie, ""),
            Preferences.read(cookies, headers.get(b"accept-language", b"")).language,
        )
        if visitor is None:
            await self._send_to_login(scope, headers, guarded)
            return
        told[VISITOR_NAME] = visitor.name
        await self._app({**scope, VISITOR: visitor}, receive, guarded)

    def is_secure(self, scheme: str) -> bool:
        """Whether the browser speaks TLS, to us or to a proxy before us."""
        return (self._public.scheme if self._public else scheme) == "https"

    def _origins(self, scheme: str, host: str) -> tuple[str, ...]:
        own = f"{scheme}://{host}".lower()
        return (own, f"{self._public.scheme}://{self._public.netloc}".lower()) if self._public else (own,)

    def _is_open(self, scope: Scope) -> bool:
        if scope["type"] != "http":
            return False
        path = scope["path"]
        return path in OPEN_PATHS or (scope["method"] in _SAFE and path.startswith(self._open_prefixes))

    async def _send_to_login(self, scope: Scope, headers: dict[bytes, bytes], send: Send) -> None:
        is_page = (
            scope["type"] == "http"
            and scope["method"] == "GET"
            and b"text/html" in headers.get(b"accept", b"")
        )
        if not is_page:
            await self._refuse(scope, send, 401, "Log in first.")
            return
        target = scope["path"] + (
            f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""
        )
        where = "/login" if target == "/" else f"/login?next={quote(target, safe='')}"
        if self._cookie.encode() in headers.get(b"cookie", b""):
            where += ("&" if "?" in where else "?") + "why=expired"
        await send(
            {
                "type": "http.response.start",
                "status": 303,
                "headers": [(b"location", where.encode("latin-1")), (b"content-length", b"0")],
            }
        )
        await send({"type": "http.response.body", "body": b""})

    async def _refuse(self, scope: Scope, send: Send, status: int, message: str) -> None:
        kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
        body = orjson.dumps({"error_code": status, "message": message})
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": f"{kind}.start", "status": status, "headers": headers})
        await send({"type": f"{kind}.body", "body": body})


def is_loopback(host: str) -> bool:
    """Of a Host header, or an address to listen on.

    >>> is_loopback("127.0.0.1:8000"), is_loopback("[::1]:8000"), is_loopback("localhost.evil.example")
    (True, True, False)
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _is_from(headers: dict[bytes, bytes], origins: Iterable[str]) -> bool:
    """Browsers say where a POST and a websocket come from. What does not say it is not a browser, or an old trick."""
    return headers.get(b"origin", b"").decode("latin-1").lower() in origins


def _with_headers(send: Send, nonce: str, origins: Iterable[str], *, is_secure: bool) -> Send:
    sockets = " ".join("ws" + origin.removeprefix("http") for origin in origins)
    own = {
        b"content-security-policy": POLICY.format(nonce=nonce, sockets=sockets).encode("latin-1"),
        b"x-frame-options": b"DENY",
        b"x-content-type-options": b"nosniff",
        b"referrer-policy": b"same-origin",
        b"cross-origin-opener-policy": b"same-origin",
        b"cross-origin-resource-policy": b"same-origin",
        b"permissions-policy": b"camera=(), microphone=(), geolocation=()",
    }
    if is_secure:
        own[b"strict-transport-security"] = b"max-age=31536000"

    async def guarded(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            given = [(name.lower(), value) for name, value in message.get("headers", ())]
            names = {name for name, _ in given}
            # An answer that has a policy of its own (a stricter one) keeps it.
            message = {**message, "headers": given + [pair for pair in own.items() if pair[0] not in names]}
        await send(message)

    return guarded
