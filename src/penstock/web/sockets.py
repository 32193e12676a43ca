"""Websockets: what a handler may do with one, and uvicorn's protocol with the client's certificate."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qs

from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

from penstock.web.call import ClientGone, Receive, Scope, Send
from penstock.web.errors import HttpError
from penstock.web.service import App

OPENED: Final = 101
MAX_REASON_BYTES: Final = 123
TOKEN: Final = "access_token"


class SocketProtocol(WSProtocol):
    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        tls = self.transport.get_extra_info("ssl_object")
        certificate = None if tls is None else tls.getpeercert(binary_form=True)
        if certificate is not None:
            self.scope["penstock.certificate"] = certificate  # type: ignore[typeddict-unknown-key]


def request_scope(scope: Scope) -> Scope:
    """As one of a GET. A browser cannot send headers with a websocket, so a bearer token may stand in the query."""
    headers = list(scope["headers"])
    if not any(name == b"authorization" for name, _ in headers):
        token = parse_qs(scope["query_string"].decode("latin-1")).get(TOKEN)
        if token:
            headers.append((b"authorization", f"Bearer {token[0]}".encode()))
    return {**scope, "method": "GET", "headers": headers}


class Socket:
    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._is_open = False
        self._has_ended = False
        self.sent_bytes = 0

    async def accept(self) -> None:
        """ClientGone."""
        if (await self._receive())["type"] != "websocket.connect":
            raise ClientGone
        self._is_open = True
        await self._send({"type": "websocket.accept"})

    async def send(self, text: str) -> None:
        """It waits for a client that reads slowly. What is sent to one that has left is dropped."""
        if not self._has_ended:
            self.sent_bytes += len(text)
            await self._guarded({"type": "websocket.send", "text": text})

    async def left(self) -> None:
        """Until the client closes; what it sends before is not looked at."""
        while (await self._receive())["type"] != "websocket.disconnect":
            pass
        self._has_ended = True

    async def close(self, code: int, reason: str) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        text = reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
        await self._guarded({"type": "websocket.close", "code": code, "reason": text})

    async def passed_on(self, app: App, scope: Scope) -> int:
        """To another application, until it ends; how it answered: OPENED, or the status of its refusal."""
        status = OPENED

        async def watched(message: dict[str, Any]) -> None:
            nonlocal status
            kind = message["type"]
            if kind == "websocket.accept":
                self._is_open = True
            elif kind == "websocket.http.response.start":
                status = message["status"]
                self._has_ended = True
            elif kind == "websocket.close":
                status = OPENED if self._is_open else 403
                self._has_ended = True
            elif kind == "websocket.send":
                self.sent_bytes += len(message.get("text") or message.get("bytes") or b"")
            await self._send(message)

        await app(scope, self._receive, watched)
        return status

    async def refuse(self, error: HttpError, body: bytes) -> None:
        """In place of `accept`: an answer of HTTP."""
        if self._is_open or self._has_ended:
            await self.close(1008, error.message)
            return
        self._has_ended = True
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers += [(name.lower().encode(), text.encode("latin-1")) for name, text in error.headers.items()]
        await self._guarded(
            {"type": "websocket.http.response.start", "status": error.status, "headers": headers}
        )
        await self._guarded({"type": "websocket.http.response.body", "body": body})

    async def _guarded(self, message: dict[str, Any]) -> None:
        try:
            await self._send(message)
        except OSError:  # uvicorn's ClientDisconnected is one
            self._has_ended = True
