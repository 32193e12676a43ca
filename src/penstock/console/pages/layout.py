"""The frame around each screen: header with the cluster and the visitor, menu, search by `/`, help by `?`, dark and light.

The service enters `framed` and calls the screen's `build` inside it. A screen begins with `heading`, and wraps what can fail in
`complaints`, which shows the error as a notification. All data are given to elements as text.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from nicegui import ui

from penstock.client.errors import Refused, Unreachable, UserError, one_line
from penstock.console.access.actions import Action
from penstock.console.pages.screens import Screen, screens
from penstock.console.words import LANGUAGES

if TYPE_CHECKING:
    from penstock.console.context import PageContext

log = logging.getLogger("penstock.console")

_SECTIONS: Final = {
    **dict.fromkeys(("schemas", "connect", "sql", "pipelines"), 1),
    **dict.fromkeys(("dead-letters", "dead_letters", "security", "cluster", "plan", "audit"), 2),
}
"""Of the menu, with a line between them; what is not here is in the first one."""
BUILD_TIMEOUT_S: Final = 20.0
AUDIT: Final = "audit"
"""The screen that is in the menu of admins only, and only where there is such a log."""
SEARCH: Final = "data-search"
"""The prop of the field that `/` goes to: `ui.input(…).props(layout.SEARCH)`."""


def link(context: PageContext, path: str = "", **query: object) -> str:
    """An address in the cluster of this page; `path` as in a Screen, its values from keywords that are in it.

    >>> link(context, "/{cluster}/topics/{topic}", topic="a b")   # in the cluster `local`
    '/local/topics/a%20b'
    """
    values = {"cluster": context.cluster.name, **query}
    used, out = set(), []
    for part in (path or "/{cluster}").split("/"):
        if part.startswith("{") and part.endswith("}"):
            name = part[1:-1].partition(":")[0]
            used.add(name)
            out.append(quote(str(values[name]), safe=""))
        else:
            out.append(part)
    rest = "&".join(
        f"{quote(name)}={quote(str(value), safe='')}"
        for name, value in query.items()
        if name not in used and value is not None
    )
    return "/".join(out) + (f"?{rest}" if rest else "")


@contextmanager
def heading(title: str, subtitle: str = "") -> Iterator[None]:
    """The first line of a screen; buttons that belong to all of it are made inside."""
    with ui.row().classes("console-heading w-full items-center justify-between gap-3"):
        with ui.column().classes("gap-0 min-w-0"):
            ui.label(title).classes("console-title").props('role=heading aria-level=1 data-testid="title"')
            if subtitle:
                ui.label(subtitle).classes("console-subtitle")
        with ui.row().classes("items-center gap-2"):
            yield


@contextmanager
def complaints(context: PageContext) -> Iterator[None]:
    """What goes wrong inside becomes a notification, and the page goes on."""
    try:
        yield
    except Exception as error:
        complain_of(context, error)


def complain_of(context: PageContext, error: Exception) -> None:
    """Also of what escapes from the handler of an event. A bug is logged, and the visitor is not told its text."""
    if isinstance(error, UserError | Refused | Unreachable):
        complain(context, str(error))
    elif is_of_a_browser_that_left(error):
        log.debug("a browser has left: %s", error)
    else:
        log.error("A bug in a page of %s", context.cluster.name, exc_info=error)
        complain(context, context.t("common.bug"))


def is_of_a_browser_that_left(error: Exception) -> bool:
    """A question to a browser that was not answered in time."""
    return isinstance(error, TimeoutError) and str(error).startswith("JavaScript")


def complain(context: PageContext, message: str) -> None:
    ui.notify(
        one_line(message), type="negative", position="top", multi_line=True, close_button=context.t("common.close"),
        timeout=12_000, classes="console-complaint",
    )  # fmt: skip


def tell(message: str) -> None:
    """That something was done."""
    ui.notify(one_line(message), type="positive", position="top", timeout=4000)


@contextmanager
def framed(context: PageContext, screen: Screen, *, dark: bool | None) -> Iterator[None]:
    mode = ui.dark_mode(dark)
    drawer = _drawer(context, screen)
    _header(context, screen, drawer, mode)
    _help(context)
    with ui.column().classes("console-page w-full gap-4").props('role=main data-testid="page"'):
        yield


def _header(context: PageContext, screen: Screen, drawer: ui.left_drawer, mode: ui.dark_mode) -> None:
    with ui.header().classes("console-header items-center no-wrap gap-2").props("height-hint=48"):
        _icon_button("menu", context.t("frame.menu"), drawer.toggle, "menu-button").classes("console-burger")
        with ui.link(target=link(context)).classes("console-brand"):
            ui.label("Penstock")
        _cluster_switch(context, screen)
        ui.space()
        _icon_button("help_outline", context.t("frame.help"), "consoleHelp()", "help-button").classes(
            "console-wide"
        )
        _icon_button("contrast", context.t("frame.theme"), "consoleTheme()", "theme-button")
        with _icon_button("translate", context.t("frame.language"), None, "language-button"), ui.menu():
            for code, name in LANGUAGES.items():
                item = ui.menu_item(name).props(f'data-testid="language-{code}" lang={code}')
                item.on("click", js_handler=f"() => consoleLanguage('{code}')")
                if code == context.visitor.language:
                    item.classes("text-primary")
        if context.visitor.name:
            _visitor_menu(context)


def _cluster_switch(context: PageContext, screen: Screen) -> None:
    """Another cluster, on the same screen where it is one of the menu."""
    clusters = [name for name in context.console.clusters if context.visitor.may_somewhere(Action.VIEW, name)]
    if len(clusters) < 2:
        with ui.row().classes("console-cluster items-center no-wrap gap-1"):
            ui.icon("hub").props("aria-hidden=true")
            ui.label(context.cluster.name).classes("block")
        return
    button = ui.button(context.cluster.name).props(
        'flat no-caps no-wrap dense color=white icon=hub icon-right=arrow_drop_down data-testid="cluster-switch"'
    )
    with button.classes("console-cluster"), ui.menu():
        for name in clusters:
            is_there = screen.in_menu and context.console.clusters[name].has(screen.needs)
            target = (screen.path if is_there else "/{cluster}").replace("{cluster}", quote(name, safe=""))
            item = ui.menu_item(name, on_click=lambda target=target: ui.navigate.to(target))
            item.props["data-testid"] = f"cluster-{name}"


def _visitor_menu(context: PageContext) -> None:
    with ui.button(context.visitor.name).props(
        'flat no-caps no-wrap dense color=white icon=person data-testid="visitor"'
    ) as button:
        button.classes("console-visitor")
        with ui.menu().props("auto-close"):
            roles = ", ".join(role.name for role in context.visitor.roles) or context.t("frame.no_roles")
            ui.menu_item(context.t("frame.roles", roles=roles)).props("disable")
            ui.separator()
            item = ui.menu_item(context.t("frame.logout")).props('data-testid="logout"')
            item.on("click", js_handler="() => consoleLogout()")


def _drawer(context: PageContext, screen: Screen) -> ui.left_drawer:
    client = ui.context.client
    known = len(client.connect_handlers)
    drawer = ui.left_drawer()
    # It would ask the browser whether it is open: nobody here wants to know, and a browser that has left would be an error.
    del client.connect_handlers[known:]
    drawer.classes("console-drawer").props("width=208 breakpoint=1023 role=navigation")
    listed = [each for each in screens() if _is_listed(context, each)]
    here = _place_of(screen, listed)
    section = 0
    with drawer:
        for each in listed:
            if _SECTIONS.get(each.name, 0) != section:
                section = _SECTIONS.get(each.name, 0)
                ui.separator().classes("console-section")
            with ui.link(target=link(context, each.path)).classes("console-item") as item:
                item.props(f'data-testid="menu-{each.name}"')
                if each is here:
                    item.classes("console-here").props("aria-current=page")
                ui.icon(each.icon).classes("console-item-icon").props("aria-hidden=true")
                ui.label(context.t(each.title_key))
    return drawer


def _is_listed(context: PageContext, screen: Screen) -> bool:
    if screen.name == AUDIT:
        return bool(context.console.audit.topic) and context.may(Action.EDIT_SECURITY)
    return screen.in_menu and context.cluster.has(screen.needs)


def _place_of(screen: Screen, listed: Sequence[Screen]) -> Screen | None:
    """Itself, or the one whose address its own begins with: of `/{cluster}` and `/{cluster}/topics` the longer one."""
    if screen in listed:
        return screen
    around = [each for each in listed if screen.path.startswith((each.path + "/", each.path + "-"))]
    return max(around, key=lambda each: len(each.path), default=None)


def _help(context: PageContext) -> None:
    keys: Mapping[str, str] = {"/": "help.search", "?": "help.help", "g t": "help.topics", "g g": "help.groups",
                               "g o": "help.overview", "Esc": "help.close"}  # fmt: skip
    with ui.dialog().props('data-testid="help"') as dialog, ui.card().classes("min-w-72"):
        ui.label(context.t("help.title")).classes("console-title")
        with ui.grid(columns="auto 1fr").classes("gap-x-4 gap-y-2 items-center"):
            for key, words in keys.items():
                ui.label(key).classes("console-key")
                ui.label(context.t(words))
        ui.button(context.t("common.close"), on_click=dialog.close).props("flat no-caps").classes("self-end")
    opener = ui.element("div").props("id=console-help-opener aria-hidden=true").classes("hidden")
    opener.on("open", dialog.open, [])


def _icon_button(icon: str, label: str, on_click: Callable[[], Any] | str | None, testid: str) -> ui.button:
    button = ui.button(icon=icon).props(
        f'flat round dense color=white aria-label="{label}" data-testid="{testid}"'
    )
    if isinstance(on_click, str):
        button.on("click", js_handler=f"() => {on_click}")
    elif on_click is not None:
        button.on_click(on_click)
    return button.tooltip(label)
