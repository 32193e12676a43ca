"""What an HTTP service is to the frame: a row with its name, routes, content types, and what it does while it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.web.call import Call, Receive, Scope, Send
from penstock.web.content_types import PLAIN_JSON, ContentTypes
from penstock.web.errors import HttpError
from penstock.web.options import Listen
from penstock.web.routes import Routes

if TYPE_CHECKING:
    from penstock.web.metrics import WebMetrics
    from penstock.web.sockets import Socket


class Running(NamedTuple):
    """What a service learns when it starts: where it listens (with the real ports), and where its numbers go."""

    listeners: tuple[Listen, ...]
    metrics: WebMetrics


VISITOR: Final = "penstock.visitor.name"
Lifecycle = Callable[[Running], AbstractAsyncContextManager[object]]
SocketHandler = Callable[[Call, "Socket"], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class WebService:
    name: str
    """The verb of the command line: `registry` in `penstock registry: listening on …`."""
    title: str
    routes: Routes
    content: ContentTypes = PLAIN_JSON
    lifecycle: Lifecycle = field(default=lambda running: nullcontext())
    """Entered before the first request is taken, left after the last one."""
    health: Callable[[], str | None] = field(default=lambda: None)
    """None when it can do its work, otherwise what is wrong; at once."""
    refusal: Callable[[Exception], HttpError | None] = field(default=lambda error: None)
    """How an exception of the service's own is answered; None: it is a bug."""
    form: Callable[[HttpError], dict[str, object]] = field(default=lambda error: error.document())
    """What is answered to a refusal, the frame's own (404, 405, 406, 500) among them."""
    rewrite: Callable[[str], str] = field(default=lambda raw_path: raw_path)
    """Another path for a path, before it is looked up."""
    has_http2: bool = False
    """Whether it is spoken beside HTTP/1.1. It needs the package h2."""
    sockets: Mapping[str, SocketHandler] = field(default_factory=dict)
    """Websockets by their paths. They need the package wsproto."""
    other_paths: App | None = None
    """An ASGI application for the paths that no route has, and the websockets that `sockets` does not have: pages, for example.
    Who logged in there it writes into the scope, as VISITOR, for the access log."""
