"""The table of a service's routes, and which of them a path leads to.

    routes = Routes()

    @routes.get("/subjects/{subject}/versions", "The versions of a subject.", query={"deleted": "also soft-deleted ones"})
    async def versions(call: Call) -> list[int]: ...

A path is matched as it was sent, part by part, and only then decoded: `/subjects/a%2Fb` names the subject `a/b`. A part in
words wins over a part in braces. The table is also what `openapi` describes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from penstock.web.call import Call
from penstock.web.content_types import ContentTypes
from penstock.web.errors import HttpError, not_found

Handler = Callable[[Call], Awaitable[object]]
NO_QUERY: Final[Mapping[str, str]] = MappingProxyType({})
MAX_PARTS: Final = 32


class Route(NamedTuple):
    method: str
    pattern: str
    handler: Handler
    summary: str
    query: Mapping[str, str]
    """Its parameters, each with a few words."""
    body: str | None
    """What the body is, in a few words; None where there is none."""
    content: ContentTypes | None
    """Other types than the service's."""
    is_open: bool
    """Answered without a login."""
    is_long: bool
    """May take longer than a request may: a stream, or a wait that the client asked for and that has its own bound."""
    is_hidden: bool
    """Not in the description."""


class _Node:
    __slots__ = ("by_method", "child", "name", "words")

    def __init__(self) -> None:
        self.words: dict[str, _Node] = {}
        self.child: _Node | None = None
        self.by_method: dict[str, tuple[Route, tuple[str, ...]]] = {}


class Routes:
    def __init__(self) -> None:
        self._root = _Node()
        self._all: list[Route] = []

    def __iter__(self) -> Iterator[Route]:
        return iter(self._all)

    def add(
        self,
        method: str,
        pattern: str,
        handler: Handler,
        summary: str,
        *,
        query: Mapping[str, str] = NO_QUERY,
        body: str | None = None,
        content: ContentTypes | None = None,
        is_open: bool = False,
        is_long: bool = False,
        is_hidden: bool = False,
    ) -> None:
        """Of two handlers for the same method and path the first stays."""
        route = Route(method, pattern, handler, summary, query, body, content, is_open, is_long, is_hidden)
        node, names = self._root, []
        for part in _parts(pattern):
            if part.startswith("{"):
                names.append(part[1:-1])
                node.child = node.child or _Node()
                node = node.child
            else:
                node = node.words.setdefault(part, _Node())
        if method not in node.by_method:
            node.by_method[method] = (route, tuple(names))
            self._all.append(route)

    def include(self, others: Routes) -> None:
        for route in others:
            self.add(**route._asdict())

    def get(self, pattern: str, summary: str, **more: object) -> Callable[[Handler], Handler]:
        return self._decorator("GET", pattern, summary, more)

    def post(self, pattern: str, summary: str, **more: object) -> Callable[[Handler], Handler]:
        return self._decorator("POST", pattern, summary, more)

    def put(self, pattern: str, summary: str, **more: object) -> Callable[[Handler], Handler]:
        return self._decorator("PUT", pattern, summary, more)

    def delete(self, pattern: str, summary: str, **more: object) -> Callable[[Handler], Handler]:
        return self._decorator("DELETE", pattern, summary, more)

    def _decorator(
        self, method: str, pattern: str, summary: str, more: dict[str, object]
    ) -> Callable[[Handler], Handler]:
        def declare(handler: Handler) -> Handler:
            self.add(method, pattern, handler, summary, **more)  # type: ignore[arg-type]
            return handler

        return declare

    def find(self, method: str, raw_path: str) -> tuple[Route, dict[str, str]]:
        """HttpError 404 for a path that nobody has, 405 for a method that this path has not."""
        parts = _parts(raw_path)
        if len(parts) > MAX_PARTS:
            raise not_found()
        values: list[str] = []
        node = _descended(self._root, parts, 0, values)
        if node is None:
            raise not_found()
        found = node.by_method.get(method)
        if found is None and method == "HEAD":
            found = node.by_method.get("GET")
        if found is None:
            allowed = sorted({"OPTIONS", *node.by_method})
            if method == "OPTIONS":
                raise HttpError(200, "", headers={"Allow": ",".join(allowed)})
            raise HttpError(405, headers={"Allow": ",".join(allowed)})
        route, names = found
        return route, dict(zip(names, map(_decoded, values), strict=True))


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _descended(node: _Node, parts: list[str], at: int, values: list[str]) -> _Node | None:
    if at == len(parts):
        return node if node.by_method else None
    word = node.words.get(parts[at])
    if word is not None:
        found = _descended(word, parts, at + 1, values)
        if found is not None:
            return found
    if node.child is not None:
        values.append(parts[at])
        found = _descended(node.child, parts, at + 1, values)
        if found is not None:
            return found
        values.pop()
    return None


def _decoded(part: str) -> str:
    if "%" not in part:
        return part
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise HttpError(400, "The path is not UTF-8.") from None
