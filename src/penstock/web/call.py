"""What a handler gets (`Call`) and what it may give back (any JSON value, `Answer`, `Stream`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

import orjson

from penstock.security.principals import ANONYMOUS, Principal
from penstock.web.errors import HttpError, not_found

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

MAX_QUERY_FIELDS: Final = 1000
INT_MAX: Final = 2**31 - 1


class Answer:
    """A status, the body's bytes and its type; None is the type that was negotiated."""

    __slots__ = ("body", "content_type", "headers", "status")

    def __init__(
        self,
        body: bytes = b"",
        *,
        status: int = 200,
        content_type: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.body = body
        self.content_type = content_type
        self.headers = headers

    @classmethod
    def json(cls, value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
        return cls(orjson.dumps(value), status=status, headers=headers)


class Stream:
    """An answer that is sent while it is made. The client's pace holds the iterator back."""

    __slots__ = ("chunks", "content_type", "status")

    def __init__(
        self, chunks: AsyncIterator[bytes], *, status: int = 200, content_type: str | None = None
    ) -> None:
        self.status = status
        self.chunks = chunks
        self.content_type = content_type


class ClientGone(Exception):
    """The client closed the connection before its request was complete."""


class Call:
    """One request. `values` are the parts of the path that the route names."""

    __slots__ = (
        "_headers", "_query", "_receive", "_received_bytes", "answer_type", "body_timeout_s", "content_type", "max_body_bytes",
        "principal", "request_id", "scope", "values",
    )  # fmt: skip

    def __init__(self, scope: Scope, receive: Receive, *, max_body_bytes: int) -> None:
        self.scope = scope
        self._receive = receive
        self._headers: dict[bytes, bytes] = dict(scope["headers"])
        self._query: list[tuple[str, str]] | None = None
        self._received_bytes = 0
        self.max_body_bytes = max_body_bytes
        self.body_timeout_s: float | None = None
        """How long `body` waits; None where the whole request has a time."""
        self.values: Mapping[str, str] = {}
        self.principal: Principal = ANONYMOUS
        self.request_id = ""
        self.content_type = ""
        self.answer_type = ""

    def __getitem__(self, name: str) -> str:
        return self.values[name]

    @property
    def method(self) -> str:
        return str(self.scope["method"])

    @property
    def target(self) -> str:
        """The path and the query as the client sent them."""
        query: bytes = self.scope["query_string"]
        raw: bytes = self.scope["raw_path"]
        return (raw + b"?" + query if query else raw).decode("latin-1")

    @property
    def client_host(self) -> str:
        client = self.scope["client"]
        return str(client[0]) if client else "-"

    @property
    def certificate(self) -> bytes | None:
        """That of the client, in DER."""
        found: bytes | None = self.scope.get("penstock.certificate")
        return found

    def header(self, name: str, default: str = "") -> str:
        found = self._headers.get(name.lower().encode("latin-1"))
        return default if found is None else found.decode("latin-1")

    def query(self, name: str, default: str | None = None) -> str | None:
        """The first value, where there are several."""
        return next((value for key, value in self._pairs() if key == name), default)

    def queries(self, name: str) -> list[str]:
        return [value for key, value in self._pairs() if key == name]

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.query(name)
        return default if value is None else value.strip().lower() == "true"

    def number(self, name: str, default: int) -> int:
        """What is not a number is not found, as in Confluent's services."""
        value = self.query(name)
        return default if value is None else to_int(value)

    def path_number(self, name: str) -> int:
        return to_int(self.values[name])

    def _pairs(self) -> list[tuple[str, str]]:
        if self._query is None:
            text = self.scope["query_string"].decode("latin-1")
            try:
                self._query = (
                    parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_QUERY_FIELDS) if text else []
                )
            except ValueError:
                raise HttpError(400, "The query has too many fields.") from None
        return self._query

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, up to the limit; HttpError 413 behind it."""
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            chunk: bytes = message.get("body", b"")
            size += len(chunk)
            if size > self.max_body_bytes:
                raise self._too_large()
            if chunk:
                yield chunk
            if not message.get("more_body", False):
                return

    async def bounded_receive(self) -> dict[str, Any]:
        """For another application that reads the body itself; HttpError 413 behind the limit."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._received_bytes += len(message.get("body", b""))
            if self._received_bytes > self.max_body_bytes:
                raise self._too_large()
        return message

    async def body(self) -> bytes:
        declared = self._headers.get(b"content-length")
        if declared is not None and declared.isdigit() and int(declared) > self.max_body_bytes:
            raise self._too_large()
        if self.body_timeout_s is None:
            found = [chunk async for chunk in self.chunks()]
        else:
            async with asyncio.timeout(self.body_timeout_s):
                found = [chunk async for chunk in self.chunks()]
        return found[0] if len(found) == 1 else b"".join(found)

    async def left(self) -> None:
        """Until the client has closed the connection. Only behind the whole body."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def json(self) -> Any:
        """HttpError 400 for what is no JSON."""
        return self.parsed_json(await self.body())

    @staticmethod
    def parsed_json(data: bytes) -> Any:
        """The same of a body that has been read."""
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise HttpError(400, f"The body is not JSON: {error}") from None

    def _too_large(self) -> HttpError:
        # The rest of the body is not read: the connection ends with the answer.
        return HttpError(
            413, f"The body is larger than {self.max_body_bytes} bytes.", headers={"Connection": "close"}
        )


def to_int(text: str) -> int:
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 10 or int(digits) > INT_MAX:
        raise not_found()
    return int(text)
