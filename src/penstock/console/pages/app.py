"""The pages as one ASGI application: NiceGUI inside FastAPI, a route for each screen, and the files that all pages load."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import nicegui
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse
from nicegui import Client, core, ui
from starlette.responses import Response

from penstock.client.errors import NoSuchTopic, Refused, Unreachable, UserError, one_line
from penstock.console.access.actions import Action
from penstock.console.asking import NoSuchCluster, context_of, visitor_of
from penstock.console.context import Forbidden
from penstock.console.gate import VISITOR
from penstock.console.pages import layout, login, template
from penstock.console.pages.screens import Screen, routes, screens
from penstock.console.preferences import Preferences
from penstock.console.words import text

if TYPE_CHECKING:
    from penstock.console.access.passwords import Passwords
    from penstock.console.context import Console, PageContext

log = logging.getLogger("penstock.console")

STATIC: Final = Path(__file__).parent / "static"
RECONNECT_S: Final = 10.0
"""How long a page is kept whose browser has gone: a phone that sleeps for a moment finds it as it was."""
KEPT_MESSAGES: Final = 200


OPEN_PREFIXES: Final = (
    f"{login.STATIC_PATH}/",
    *(
        f"/_nicegui/{nicegui.__version__}/{each}/"
        for each in ("static", "libraries", "components", "resources", "esm")
    ),
)
"""Only what is there or is refused: a page that says so would be kept for a while, for whoever asks."""
_STATUS: Final[dict[type[Exception], int]] = {
    Forbidden: 403, NoSuchCluster: 404, NoSuchTopic: 404, UserError: 400, Refused: 502, Unreachable: 502,
}  # fmt: skip


def make(console: Console, passwords: Passwords | None, *, cookie: str) -> FastAPI:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    login.add(app, console, passwords, cookie=cookie)
    app.get("/favicon.ico")(_icon)
    for kind, status in _STATUS.items():
        app.exception_handler(kind)(partial(_refused, status))
    for router in routes(console):
        app.include_router(router)
    _guard_sockets(console)
    for screen in screens():
        ui.page(screen.path, response_timeout=layout.BUILD_TIMEOUT_S)(_page(console, screen))
    core.app.add_static_files(login.STATIC_PATH, STATIC)
    ui.page("/")(_home(console))
    ui.page("/{path:path}")(_nowhere)
    core.app.config.socket_io_js_transports = ["websocket"]
    core.app.config.quasar_config["brand"] = {
        "primary": "#1f6f8b",
        "negative": "#b3261e",
        "positive": "#2e7d4f",
    }
    ui.add_head_html(template.head(login.STATIC_PATH), shared=True)
    template.give_nonces()
    _log_quietly()
    ui.run_with(
        app,
        title="Penstock",
        favicon=STATIC / "icon.svg",
        dark=None,
        reconnect_timeout=RECONNECT_S,
        message_history_length=KEPT_MESSAGES,
        show_welcome_message=False,
        binding_refresh_interval=0.25,
    )
    return app


def _refused(status: int, request: Request, error: Exception) -> Response:
    """Of a route; a page tells it in the page."""
    return JSONResponse({"error_code": status, "message": one_line(error)}, status_code=status)


def _icon() -> FileResponse:
    return FileResponse(STATIC / "icon.svg", headers={"Cache-Control": "public, max-age=86400"})


def _page(console: Console, screen: Screen) -> Callable[[], Awaitable[Response | None]]:
    async def page() -> Response | None:
        client = ui.context.client
        visitor = visitor_of(client.request)
        try:
            context = context_of(console, client.request)
        except (NoSuchCluster, Forbidden) as error:
            _empty(str(error), visitor.language, status=403 if isinstance(error, Forbidden) else 404)
            return None
        client.session_id = context.visitor.session_id  # type: ignore[attr-defined]
        client.on_exception(lambda error: layout.complain_of(context, error))
        client.title = f"{_title(context, screen)} · Penstock"
        dark = Preferences.read(client.request.cookies).is_dark
        with layout.framed(context, screen, dark=dark):
            try:
                await screen.build(context)
            except Exception as error:
                layout.complain_of(context, error)
                if isinstance(error, UserError):
                    ui.label(str(error)).classes("console-title").props("data-testid=problem")
        return None

    return page


def _title(context: PageContext, screen: Screen) -> str:
    named = [value for name, value in context.path.items() if name != "cluster"]
    return " · ".join([*named, context.t(screen.title_key), context.cluster.name])


def _home(console: Console) -> Callable[[], Response | None]:
    def home() -> Response | None:
        visitor = visitor_of(ui.context.client.request)
        for name in console.clusters:
            if visitor.may_somewhere(Action.VIEW, name):
                return RedirectResponse(f"/{quote(name, safe='')}", status_code=303)
        _empty(text(visitor.language, "login.no_roles"), visitor.language, status=403)
        return None

    return home


def _nowhere() -> None:
    """Also for strangers who guess at the files of pages."""
    request = ui.context.client.request
    language = Preferences.read(request.cookies).language
    _empty(text(language, "frame.no_page"), language, status=404)


def _empty(message: str, language: str, *, status: int) -> None:
    client = ui.context.client
    client.status_code = status
    visitor = client.request.scope.get(VISITOR)
    client.session_id = visitor.session_id if visitor is not None else ""  # type: ignore[attr-defined]
    ui.dark_mode(Preferences.read(client.request.cookies).is_dark)
    with ui.column().classes("console-page items-center gap-4").props("role=main data-testid=page"):
        ui.label(message).classes("console-title").props("data-testid=problem")
        ui.link(text(language, "frame.home"), "/")


async def leave_ended(console: Console) -> None:
    """Pages of sessions that have ended go to the login. Those that are still there the next time are cut off."""
    for client in list(Client.instances.values()):
        session_id = getattr(client, "session_id", None)
        if not session_id or console.access.is_alive(session_id):
            continue
        if getattr(client, "is_ended", False):
            for sid in list(client._socket_to_document_id):
                await core.sio.disconnect(sid)
        else:
            client.run_javascript("consoleEnded()")
            client.is_ended = True  # type: ignore[attr-defined]


def _guard_sockets(console: Console) -> None:
    """A websocket speaks for the pages of its own session only, whatever page it names."""

    def is_own(sid: str, client_id: object) -> bool:
        client = Client.instances.get(client_id) if isinstance(client_id, str) else None
        environ = core.sio.get_environ(sid)
        if client is None or environ is None:
            return False
        visitor = environ["asgi.scope"].get(VISITOR)
        session_id = getattr(client, "session_id", "")
        if visitor is None or visitor.session_id != session_id:
            return False
        return console.access.is_alive(session_id)

    handlers = core.sio.handlers["/"]
    handlers["log"] = _log_of_browser
    for event in ("handshake", "event", "javascript_response", "ack", "log"):
        handlers[event] = _guarded(handlers[event], is_own)
    handlers["connect"] = _guarded_connect(handlers["connect"], is_own)


def _log_of_browser(_: str, message: dict[str, object]) -> None:
    """NiceGUI would write it into our log as it is, with lines that look like those of others."""
    log.debug("a browser says: %s", one_line(message.get("message", "")))


def _log_quietly() -> None:
    """What a page's own handler could not do was told by `layout.complain_of`; what is wrong with a message of a websocket is no
    bug of ours, and no reason for a trace in the log."""

    def told(error: Exception) -> None:
        if _is_page() or layout.is_of_a_browser_that_left(error):
            return
        log.error("A bug outside of a page", exc_info=error)

    core.app._exception_handlers[:] = [told]
    for name in ("engineio.server", "socketio.server"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _is_page() -> bool:
    try:
        return bool(ui.context.client._exception_handlers)
    except RuntimeError:
        return False


def _guarded(handler: object, is_own: Callable[[str, object], bool]) -> object:
    import inspect

    async def guarded(sid: str, message: dict[str, object]) -> object:
        if not isinstance(message, dict) or not is_own(sid, message.get("client_id")):
            return False
        try:
            found = handler(sid, message)  # type: ignore[operator]
            return await found if inspect.isawaitable(found) else found
        except Exception as error:
            log.warning("a message of a page cannot be read: %r", error)
            return False

    return guarded


def _guarded_connect(handler: object, is_own: Callable[[str, object], bool]) -> object:
    async def guarded(sid: str, data: dict[str, object], auth: object = None) -> object:
        from urllib.parse import parse_qs

        asked = parse_qs(str(data.get("QUERY_STRING", ""))).get("client_id", [""])[0]
        if asked and not is_own(sid, asked):
            return False
        return await handler(sid, data, auth)  # type: ignore[operator]

    return guarded
