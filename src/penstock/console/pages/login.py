"""The login: a plain page that works without anything else, and the routes that begin and end sessions.

It is HTML of our own, in which each value is escaped: nothing of NiceGUI is loaded for strangers, and no page of theirs is kept.
"""

from __future__ import annotations

import asyncio
import html
import logging
import time
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import quote, urlsplit

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

import penstock
from penstock.client.errors import one_line
from penstock.console.access.oidc import OidcFailed, OidcLogins
from penstock.console.access.passwords import CannotCheck, Passwords, StartPassword
from penstock.console.access.sessions import id_of
from penstock.console.preferences import Preferences
from penstock.console.words import text

if TYPE_CHECKING:
    from penstock.console.context import Console

log = logging.getLogger("penstock.console")

STATIC_PATH: Final = f"/_console/{penstock.__version__}"
MAX_NAME: Final = 256
MAX_PASSWORD: Final = 1024
MAX_FORM_FIELDS: Final = 5
MAX_FORM_BYTES: Final = 8192
OIDC_PATH: Final = "/login/oidc"
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_REASONS: Final = {"expired": "login.expired", "out": "login.out"}


def add(app: FastAPI, console: Console, passwords: Passwords | None, *, cookie: str) -> None:
    desk = _Desk(console, passwords, cookie)
    app.get("/login", response_class=HTMLResponse)(desk.page)
    app.post("/login", response_class=HTMLResponse)(desk.enter)
    app.post("/logout")(desk.leave)
    if console.settings.login.oidc is not None and passwords is None and not console.access.is_off:
        app.get(OIDC_PATH)(desk.begin_oidc)
        app.get(f"{OIDC_PATH}/callback", response_class=HTMLResponse)(desk.end_oidc)


class _Desk:
    def __init__(self, console: Console, passwords: Passwords | None, cookie: str) -> None:
        self._console = console
        self._passwords = passwords
        self._cookie = cookie
        self._binding_cookie = f"{cookie}_oidc"
        oidc = console.settings.login.oidc
        self._oidc = OidcLogins(oidc) if oidc is not None and passwords is None else None

    async def page(self, request: Request) -> Response:
        if self._console.access.is_off:
            return RedirectResponse("/", status_code=303)
        why = _REASONS.get(request.query_params.get("why", ""), "")
        return self._shown(request, message_key=why, next_path=request.query_params.get("next", ""))

    async def enter(self, request: Request) -> Response:
        if self._passwords is None:
            return Response(status_code=404)
        form = await _form(request)
        name, password = form.get("name", "").strip()[: MAX_NAME + 1], form.get("password", "")
        next_path = form.get("next", "")
        if isinstance(self._passwords, StartPassword) and not name:
            name = "admin"  # the only one there is
        address = request.client.host if request.client else "-"
        access = self._console.access
        wait_s = access.attempts.wait_s(address, name, time.monotonic())
        if wait_s > 0:
            return self._shown(
                request,
                message_key="login.too_many",
                next_path=next_path,
                name=name,
                status=429,
                seconds=int(wait_s) + 1,
            )
        # Counted before it is checked: many at once are no way around the wait. And also what is no name at all: each is told to
        # the audit log, which a stranger must not fill.
        access.attempts.failed(address, name, time.monotonic())
        if len(name) > MAX_NAME or len(password) > MAX_PASSWORD or not name.isprintable():
            roles = None
        else:
            try:
                roles = await self._passwords.roles(name, password)
            except CannotCheck as error:
                access.attempts.undone(address, name)
                return self._shown(
                    request, message_key="login.unavailable", next_path=next_path, name=name, status=503,
                    error=one_line(error),
                )  # fmt: skip
        if roles is None:
            self._tell(name, address, "refused")
            return self._shown(request, message_key="login.wrong", next_path=next_path, name=name, status=401)
        access.attempts.succeeded(address, name)
        roles = tuple(dict.fromkeys((*roles, *access.roles_of(name))))
        if not roles:
            self._tell(name, address, "refused")
            return self._shown(
                request, message_key="login.no_roles", next_path=next_path, name=name, status=403
            )
        self._tell(name, address, "done")
        answer = RedirectResponse(_safe_next(next_path), status_code=303)
        self._begin(request, answer, name, roles)
        return answer

    async def leave(self, request: Request) -> Response:
        word = request.cookies.get(self._cookie, "")
        if word:
            self._console.access.sessions.end(id_of(word))
        from penstock.console.pages.app import leave_ended

        await leave_ended(self._console)
        answer = Response(status_code=204)
        answer.delete_cookie(
            self._cookie,
            path="/",
            httponly=True,
            samesite="strict",
            secure=_is_secure(request, self._console),
        )
        return answer

    async def begin_oidc(self, request: Request) -> Response:
        assert self._oidc is not None
        base = (
            self._console.settings.public_url or f"{request.url.scheme}://{request.headers.get('host', '')}"
        )
        try:
            begun = await asyncio.to_thread(
                self._oidc.begin,
                redirect_url=f"{base}{OIDC_PATH}/callback",
                next_path=request.query_params.get("next", ""),
            )
        except OidcFailed as error:
            return self._shown(request, message_key="login.unavailable", status=503, error=one_line(error))
        answer = RedirectResponse(begun.url, status_code=303)
        # Lax: the way back begins at the provider's page, and a strict cookie would not be sent along.
        answer.set_cookie(
            self._binding_cookie, begun.binding, max_age=300, path=OIDC_PATH, httponly=True, samesite="lax",
            secure=_is_secure(request, self._console),
        )  # fmt: skip
        return answer

    async def end_oidc(self, request: Request) -> Response:
        assert self._oidc is not None
        address = request.client.host if request.client else "-"
        access = self._console.access
        try:
            known = await asyncio.to_thread(
                self._oidc.end,
                dict(request.query_params.items()),
                binding=request.cookies.get(self._binding_cookie, ""),
            )
        except OidcFailed as error:
            log.warning("a login by OpenID from %s failed: %s", address, one_line(error))
            return self._shown(request, message_key="login.unavailable", status=403, error=one_line(error))
        roles = access.roles_of(known.name, known.groups)
        if not roles:
            self._tell(known.name, address, "refused")
            return self._shown(request, message_key="login.no_roles", status=403)
        self._tell(known.name, address, "done")
        where = html.escape(_safe_next(known.next), quote=True)
        # A page, and not a redirect: the strict cookie is sent only when one of our own pages leads on.
        answer = HTMLResponse(
            f'<!doctype html><meta charset="utf-8"><title>Penstock</title>'
            f'<meta http-equiv="refresh" content="0;url={where}"><a href="{where}">Penstock</a>',
            headers={"Content-Security-Policy": _POLICY, "Cache-Control": "no-store"},
        )
        answer.delete_cookie(self._binding_cookie, path=OIDC_PATH)
        self._begin(request, answer, known.name, roles)
        return answer

    def _begin(self, request: Request, answer: Response, name: str, roles: tuple[str, ...]) -> None:
        """A new session, with a new word; one that the browser had before ends."""
        sessions = self._console.access.sessions
        old = request.cookies.get(self._cookie, "")
        if old:
            sessions.end(id_of(old))
        answer.set_cookie(
            self._cookie, sessions.begin(name, roles), path="/", httponly=True, samesite="strict",
            secure=_is_secure(request, self._console),
        )  # fmt: skip

    def _tell(self, name: str, address: str, outcome: str) -> None:
        self._console.audit.tell(
            cluster="", visitor=name[:MAX_NAME], action="log-in", resource="console", what=f"log in from {address}",
            outcome=outcome,
        )  # fmt: skip

    def _shown(
        self,
        request: Request,
        *,
        message_key: str = "",
        next_path: str = "",
        name: str = "",
        status: int = 200,
        **values: object,
    ) -> HTMLResponse:
        language = Preferences.read(
            request.cookies, request.headers.get("accept-language", "").encode("latin-1", "replace")
        ).language
        dark = Preferences.read(request.cookies).is_dark
        theme = "" if dark is None else "dark" if dark else "light"

        def t(key: str, **more: object) -> str:
            return html.escape(text(language, key, **more))

        message = (
            f'<p class="{_kind(message_key)}" role="alert" data-testid="login-message">{t(message_key, **values)}</p>'
            if message_key
            else ""
        )
        body = (
            self._password_form(t, name=name, next_path=next_path)
            if self._passwords
            else self._oidc_link(t, next_path)
        )
        page = _PAGE.format(
            language=language, title=t("login.title"), message=message, body=body, theme=theme,
            static=STATIC_PATH,
        )  # fmt: skip
        return HTMLResponse(
            page,
            status_code=status,
            headers={"Content-Security-Policy": _POLICY, "Cache-Control": "no-store"},
        )

    def _password_form(self, t: _Words, *, name: str, next_path: str) -> str:
        assert self._passwords is not None
        cluster = self._passwords.cluster
        hint = f'<p class="hint">{t("login.cluster", cluster=cluster)}</p>' if cluster else ""
        given = name or ("admin" if isinstance(self._passwords, StartPassword) else "")
        focus = ("", " autofocus") if given else (" autofocus", "")
        return _FORM.format(
            hint=hint, name_label=t("login.name"), name=html.escape(given[:MAX_NAME]),
            password_label=t("login.password"),
            static=STATIC_PATH, button=t("login.button"), next=html.escape(next_path[:2000]),
            name_focus=focus[0], password_focus=focus[1],
        )  # fmt: skip

    def _oidc_link(self, t: _Words, next_path: str) -> str:
        oidc = self._console.settings.login.oidc
        assert oidc is not None
        where = html.escape(f"{OIDC_PATH}?next={quote(next_path[:2000], safe='')}", quote=True)
        words = t("login.oidc", provider=oidc.provider)
        return f'<a class="button" href="{where}" data-testid="oidc">{words}</a>'


def _kind(message_key: str) -> str:
    return "message calm" if message_key in _REASONS.values() else "message"


async def _form(request: Request) -> dict[str, str]:
    from urllib.parse import parse_qsl

    if (
        request.headers.get("content-type", "").partition(";")[0].strip()
        != "application/x-www-form-urlencoded"
    ):
        return {}
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            return {}
    try:
        return dict(
            parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)
        )
    except ValueError:
        return {}


def _safe_next(path: str) -> str:
    """A place in this console, or its first page.

    >>> _safe_next("/local/topics?q=a"), _safe_next("//evil.example"), _safe_next("https://evil.example")
    ('/local/topics?q=a', '/', '/')
    """
    try:
        parts = urlsplit(path)
    except ValueError:
        return "/"
    is_ours = (
        path.startswith("/") and not path.startswith(("//", "/\\")) and not parts.scheme and not parts.netloc
    )
    is_plain = "\\" not in path and path.isprintable()
    if not is_ours or not is_plain or path.startswith(("/login", "/logout")):
        return "/"
    return quote(path, safe="/?&=%:@+,;~.-_!*()'$")


def _is_secure(request: Request, console: Console) -> bool:
    return (urlsplit(console.settings.public_url).scheme or request.url.scheme) == "https"


class _Words(Protocol):
    def __call__(self, key: str, **values: object) -> str: ...


_FORM: Final = """\
{hint}<form method="post" action="/login" autocomplete="on">
<input type="hidden" name="next" value="{next}">
<label for="name">{name_label}</label>
<input id="name" name="name" value="{name}" autocomplete="username" autocapitalize="none" spellcheck="false" required
 data-testid="login-name"{name_focus}>
<label for="password">{password_label}</label>
<input id="password" name="password" type="password" autocomplete="current-password" required
 data-testid="login-password"{password_focus}>
<button type="submit" class="button" data-testid="login-button">{button}</button>
</form>
<script src="{static}/login.js" defer></script>"""

_PAGE: Final = """\
<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · Penstock</title>
<link rel="icon" href="{static}/icon.svg">
<link rel="stylesheet" href="{static}/login.css">
</head>
<body class="{theme}">
<main>
<img src="{static}/icon.svg" alt="" width="44" height="44">
<h1>Penstock</h1>
{message}
{body}
</main>
</body>
</html>
"""
