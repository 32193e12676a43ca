"""The ASGI application around the handlers: request id, limits, login, route, form of the answer, access log, metrics."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from typing import TYPE_CHECKING, Any, Final

import orjson

from penstock.web import openapi
from penstock.web.access_log import AccessLog
from penstock.web.call import Answer, Call, ClientGone, Receive, Scope, Send, Stream
from penstock.web.content_types import PLAIN_JSON, ContentTypes
from penstock.web.errors import HttpError
from penstock.web.logins import Logins
from penstock.web.metrics import WebMetrics
from penstock.web.options import WebOptions
from penstock.web.routes import Route, Routes
from penstock.web.service import VISITOR, App, WebService

if TYPE_CHECKING:
    from penstock.web.sockets import Socket

log = logging.getLogger("penstock.web")

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_NO_ROUTE: Final = "(none)"
_HEADERS: Final = (
    (b"cache-control", b"no-cache, no-store, must-revalidate"),
    (b"x-xss-protection", b"1; mode=block"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
_CORS: Final = ("origin", "methods", "headers")


class Frame:
    def __init__(self, service: WebService, options: WebOptions, metrics: WebMetrics) -> None:
        self._service = service
        self._metrics = metrics
        self._logins = Logins(options)
        self._max_body_bytes: int = options["penstock.request.max.bytes"]
        self._timeout_s: float = options["penstock.request.timeout.ms"] / 1000
        self._limit: int = options["penstock.request.limit"]
        self._in_flight = 0
        metrics.in_flight.set_function(lambda: self._in_flight)
        self.access_log = AccessLog(is_on=options["penstock.access.log"])
        self._next_id = 0
        self._id_prefix = os.urandom(4).hex()
        self._headers = [*_HEADERS]
        for part in _CORS:
            value = options[f"access.control.allow.{part}"]
            if value:
                self._headers.append((f"access-control-allow-{part}".encode(), value.encode("latin-1")))
        self._routes = self._all_routes()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._on_socket(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        started_s = time.perf_counter()
        call = Call(scope, receive, max_body_bytes=self._max_body_bytes)
        call.request_id = self._request_id(call)
        self._in_flight += 1
        path, status, size = _NO_ROUTE, 499, 0
        try:
            route: Route | None = None
            try:
                if self._in_flight > self._limit:
                    raise HttpError(503, headers={"Retry-After": "1"})
                route, call.values = self._routes.find(
                    scope["method"], self._service.rewrite(scope["raw_path"].decode("latin-1"))
                )
                path = route.pattern
                answer = await self._answered(route, call)
            except HttpError as error:
                other = self._service.other_paths
                if route is None and error.status == 404 and other is not None:
                    status, size = await self._on_other_path(other, call, scope, send)
                    return
                answer = self._refused(error, call)
            except ClientGone:
                return
            except TimeoutError:
                answer = self._refused(HttpError(408, headers={"Connection": "close"}), call)
            except Exception as error:
                known = self._service.refusal(error)
                if known is None:
                    log.exception("A bug at %s %s (request %s)", call.method, path, call.request_id)
                    known = HttpError(500, "Internal Server Error")
                answer = self._refused(known, call)
            status = answer.status
            size = await self._send(answer, call, send)
        finally:
            self._in_flight -= 1
            seconds = time.perf_counter() - started_s
            self._metrics.count(scope["method"], path, status, seconds)
            if self.access_log.is_on and path != "/health":
                self.access_log.tell(
                    client=call.client_host, principal=scope.get(VISITOR) or call.principal.name, method=call.method,
                    target=call.target, status=status, size=size, seconds=seconds, request_id=call.request_id,
                )  # fmt: skip

    async def _on_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The bounds, the login and the log of a request; what goes through the socket is the handler's."""
        from penstock.web.sockets import OPENED, Socket, request_scope

        started_s = time.perf_counter()
        call = Call(request_scope(scope), receive, max_body_bytes=0)
        call.request_id = self._request_id(call)
        socket = Socket(receive, send)
        handler = self._service.sockets.get(scope["path"])
        if handler is None and self._service.other_paths is not None:
            await self._on_other_socket(self._service.other_paths, call, scope, socket)
            return
        self._in_flight += 1
        status = OPENED
        try:
            if self._in_flight > self._limit:
                raise HttpError(503)
            if handler is None:
                raise HttpError(404)
            call.principal = await self._logins.principal(call)
            self._logins.check(call.principal, "WEBSOCKET")  # what is asked for there is not known before
            await handler(call, socket)
        except HttpError as error:
            status = error.status
            await socket.refuse(error, orjson.dumps(self._service.form(error)))
        except ClientGone:
            pass
        except Exception:
            log.exception("A bug in the websocket %s (request %s)", scope["path"], call.request_id)
            status = 500
            await socket.close(1011, "Internal Server Error")
        finally:
            self._in_flight -= 1
            seconds = time.perf_counter() - started_s
            path = scope["path"] if handler is not None else _NO_ROUTE
            self._metrics.count("GET", path, status, seconds)
            if self.access_log.is_on:
                self.access_log.tell(
                    client=call.client_host, principal=call.principal.name, method="GET", target=path, status=status,
                    size=socket.sent_bytes, seconds=seconds, request_id=call.request_id,
                )  # fmt: skip

    async def _on_other_socket(self, app: App, call: Call, scope: Scope, socket: Socket) -> None:
        """One of the pages' own, which lives as long as a browser looks: it takes no place of a request while it does.
        `server.connection.limit` bounds these."""
        from penstock.web.sockets import OPENED

        started_s = time.perf_counter()
        status = OPENED
        try:
            if self._in_flight >= self._limit:
                raise HttpError(503)
            call.principal = await self._logins.principal(call)
            status = await socket.passed_on(app, scope)
        except HttpError as error:
            status = error.status
            await socket.refuse(error, orjson.dumps(self._service.form(error)))
        except Exception:
            log.exception("A bug in the websocket %s (request %s)", scope["path"], call.request_id)
            status = 500
            await socket.close(1011, "Internal Server Error")
        finally:
            seconds = time.perf_counter() - started_s
            self._metrics.count("GET", _NO_ROUTE, status, seconds)
            if self.access_log.is_on:
                self.access_log.tell(
                    client=call.client_host, principal=scope.get(VISITOR) or call.principal.name, method="GET",
                    target=scope["path"], status=status, size=socket.sent_bytes, seconds=seconds, request_id=call.request_id,
                )  # fmt: skip

    async def _answered(self, route: Route, call: Call) -> Answer | Stream:
        content = route.content or self._service.content
        call.answer_type = content.offered[0]
        if not route.is_open and not self._logins.is_skipped(route.pattern):
            # Most logins are known: a step into a coroutine for each would be for nothing.
            known = self._logins.at_once(call)
            call.principal = known if known is not None else await self._logins.principal(call)
            self._logins.check(call.principal, call.method)
        call.answer_type = content.of_answer(call.header("accept"))
        if route.body is not None:
            call.content_type = content.of_request(call.header("content-type"))
        if route.is_long:
            call.body_timeout_s = self._timeout_s  # a client that is slow to ask is no reason to take long
            found = await route.handler(call)
        else:
            async with asyncio.timeout(self._timeout_s):
                found = await route.handler(call)
        return found if isinstance(found, Answer | Stream) else Answer(orjson.dumps(found))

    async def _on_other_path(self, app: App, call: Call, scope: Scope, send: Send) -> tuple[int, int]:
        try:
            call.principal = await self._logins.principal(call)
        except HttpError as error:
            return error.status, await self._send(self._refused(error, call), call, send)
        return await self._passed_on(app, call, scope, send)

    async def _passed_on(self, app: App, call: Call, scope: Scope, send: Send) -> tuple[int, int]:
        """Status and size of what the other application answers. It gets the bound of a body; its answers get the headers of all
        answers that it does not set itself."""
        status, size = 499, 0

        async def watched(message: dict[str, Any]) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                given = list(message.get("headers", ()))
                names = {name.lower() for name, _ in given}
                own = [(b"x-request-id", call.request_id.encode()), *self._headers]
                message = {**message, "headers": given + [pair for pair in own if pair[0] not in names]}
            elif message["type"] == "http.response.body":
                size += len(message.get("body", b""))
            try:
                async with asyncio.timeout(self._timeout_s):
                    await send(message)
            except TimeoutError:  # it reads no more: a download would take its place for ever
                raise ClientGone from None

        try:
            await app(scope, call.bounded_receive, watched)
        except ClientGone:
            pass
        except Exception as error:
            refusal = error if isinstance(error, HttpError) else HttpError(500, "Internal Server Error")
            if refusal is not error:
                log.exception("A bug at %s %s (request %s)", call.method, call.target, call.request_id)
            if status == 499:
                status = refusal.status
                size = await self._send(self._refused(refusal, call), call, send)
        return status, size

    def _refused(self, error: HttpError, call: Call) -> Answer:
        call.answer_type = call.answer_type or self._service.content.offered[0]
        if error.status == 200:  # OPTIONS
            return Answer(headers=error.headers)
        return Answer(orjson.dumps(self._service.form(error)), status=error.status, headers=error.headers)

    async def _send(self, answer: Answer | Stream, call: Call, send: Send) -> int:
        content_type = (answer.content_type or call.answer_type).encode()
        headers = [
            (b"content-type", content_type),
            (b"x-request-id", call.request_id.encode()),
            *self._headers,
        ]
        if isinstance(answer, Stream):
            return await self._send_stream(answer, headers, send)
        headers.append((b"content-length", str(len(answer.body)).encode()))
        if answer.headers:
            headers += [
                (name.lower().encode(), text.encode("latin-1")) for name, text in answer.headers.items()
            ]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        body = b"" if call.method == "HEAD" else answer.body
        await send({"type": "http.response.body", "body": body})
        return len(answer.body)

    async def _send_stream(self, answer: Stream, headers: list[tuple[bytes, bytes]], send: Send) -> int:
        size = 0
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        try:
            async for chunk in answer.chunks:
                size += len(chunk)
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except ClientGone:
            pass
        await send({"type": "http.response.body", "body": b""})
        return size

    def _request_id(self, call: Call) -> str:
        """The client's own, where it may stand in a log."""
        given = call.header("x-request-id")
        if given and _REQUEST_ID.fullmatch(given):
            return given
        self._next_id += 1
        return f"{self._id_prefix}-{self._next_id}"

    def _all_routes(self) -> Routes:
        """Those of the service, and behind them those of the frame."""
        routes = Routes()
        routes.include(self._service.routes)
        for pattern, handler, summary, is_open in (
            ("/health", self._health, "Whether the service can do its work.", True),
            ("/metrics", self._metrics_page, "Numbers for Prometheus.", False),
            ("/openapi.json", self._document, "This service as an OpenAPI document.", False),
            ("/docs", self._page, "This service as a page.", False),
        ):
            routes.add(
                "GET", pattern, handler, summary, content=_ANY_CONTENT, is_open=is_open, is_hidden=True
            )
        return routes

    async def _health(self, call: Call) -> Answer:
        problem = self._service.health()
        if problem is None:
            return Answer.json({"status": "UP"})
        return Answer.json({"status": "DOWN", "problem": problem}, status=503)

    async def _metrics_page(self, call: Call) -> Answer:
        body, content_type = self._metrics.page()
        return Answer(body, content_type=content_type)

    async def _document(self, call: Call) -> object:
        return openapi.document(self._service)

    async def _page(self, call: Call) -> Answer:
        return Answer(openapi.page(self._service).encode(), content_type="text/html; charset=utf-8")


class _AnyContent(ContentTypes):
    """Pages have the one form that they have, whatever a browser would rather take."""

    def of_answer(self, header: str) -> str:
        return self.offered[0]


_ANY_CONTENT: Final = _AnyContent(accepted=PLAIN_JSON.accepted, offered=PLAIN_JSON.offered)
