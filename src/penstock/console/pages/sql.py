"""SQL: statements are written and run, and rows come as they are made. What streams, tables and queries there are."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from nicegui import ui

from penstock.client.errors import UserError
from penstock.console.access.actions import Action
from penstock.console.actions import sql as actions
from penstock.console.context import PageContext
from penstock.console.pages import layout, sql_catalog
from penstock.console.pages.parts.editor import complete, editor
from penstock.console.pages.parts.section import Section, banner
from penstock.console.pages.parts.tabbed import Tab, tabbed
from penstock.console.pages.screens import Screen
from penstock.console.pages.sql_results import Results
from penstock.console.upstream.asking import asked
from penstock.console.upstream.servers import servers
from penstock.console.upstream.sql import Catalog
from penstock.console.upstream.sql_run import SqlRun
from penstock.sql.client.statements import is_complete

REFRESH_S: Final = 5.0
LOOK_S: Final = 0.2
"""How often a run is asked what it has said."""
AT_ONCE: Final = 500
"""Parts of an answer that are drawn at one look."""
MAX_TEXT_CHARS: Final = 200_000
EXAMPLE: Final = "SHOW STREAMS;\n"


class _Sql:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._sql = servers(context.cluster).sql
        self._run: SqlRun | None = None
        self._is_starting = False
        self._tab = "results"
        self._catalog: Catalog | None = None
        self._functions: tuple[str, ...] = ()
        self._may_run = context.may(Action.RUN_SQL)

    def draw(self) -> None:
        context, t = self._context, self._context.t
        with layout.heading(t("sql.title"), t("sql.subtitle")):
            pass
        self._section = Section(context, self._look, self._show, every_s=REFRESH_S)
        with ui.grid().classes("w-full gap-4 grid-cols-1 lg:grid-cols-[minmax(0,1fr)_17rem]"):
            with ui.column().classes("w-full min-w-0 gap-3"):
                self._draw_editor()
            with ui.column().classes("w-full min-w-0 gap-1 max-h-80 overflow-auto"):
                self._names = ui.column().classes("w-full gap-0").props('data-testid="names"')
        if actions.has_masked_fields(context):
            banner(context, t("sql.masked"), kind="warning")
        draws = {
            "results": self._draw_results,
            "queries": self._box,
            "sources": self._box,
            "graph": self._box,
        }
        self._boxes: dict[str, ui.column] = {}
        tabs = [Tab(name, t(f"sql.tab_{name}"), partial(draw, name)) for name, draw in draws.items()]
        self._strip = tabbed(tabs, shown=self._tab, on_turn=self._turned)
        ui.context.client.on_delete(self._stop)
        self._timer = ui.timer(LOOK_S, self._take, active=False)

    def _draw_editor(self) -> None:
        context, t = self._context, self._context.t
        text = context.query.get("text", "") or EXAMPLE
        self._editor = editor(
            context,
            text,
            language="SQL",
            testid="editor",
            label=t("sql.title"),
            keys={"Mod-Enter": self._start},
        )
        self._editor.classes("h-52")
        with ui.row().classes("w-full items-center gap-2"):
            self._run_button = ui.button(t("sql.run"), icon="play_arrow", on_click=self._start)
            self._run_button.props('unelevated no-caps data-testid="run"').tooltip("Ctrl+Enter")
            self._stop_button = ui.button(t("common.stop"), icon="stop", on_click=self._stop)
            self._stop_button.props('outline no-caps data-testid="stop"')
            self._stop_button.set_enabled(False)
            choices = {"earliest": t("sql.from_earliest"), "latest": t("sql.from_latest")}
            self._reset = ui.select(choices, value="earliest", label=t("sql.read_from"))
            self._reset.props('outlined dense options-dense data-testid="read-from"').classes("w-44")
            self._told = ui.label().classes("console-soft").props('data-testid="told" aria-live=polite')
        if not self._may_run:
            self._run_button.disable()
            self._told.text = t("sql.may_not_run")

    def _draw_results(self, _: str) -> None:
        self._results = Results(self._context)

    def _box(self, name: str) -> None:
        self._boxes[name] = ui.column().classes("w-full gap-3")

    def _turned(self, name: str) -> None:
        self._tab = name

    # ------------------------------------------------------------------ a run

    async def _start(self) -> None:
        with layout.complaints(self._context):
            if self._run is not None or self._is_starting:
                raise UserError(self._context.t("sql.running_already"))
            text = str(self._editor.value or "").strip()
            if len(text) > MAX_TEXT_CHARS:
                raise UserError(self._context.t("sql.too_long", most=MAX_TEXT_CHARS))
            if text and not is_complete(text):
                text += "\n;"
            properties = {"auto.offset.reset": str(self._reset.value)}
            client, self._is_starting = ui.context.client, True
            try:
                self._run = await actions.run(self._context, text, properties)
            finally:
                self._is_starting = False
            if client.is_deleted:  # the browser left meanwhile
                self._stop()
                return
            self._results.begin()
            self._strip.value = "results"
            self._run_button.set_enabled(False)
            self._stop_button.set_enabled(True)
            self._timer.activate()

    async def _take(self) -> None:
        run = self._run
        if run is None:
            return
        has_ended = self._results.tell(run.take(AT_ONCE))
        self._told.text = self._results.summary()
        if has_ended or (run.is_stopped and not run.is_alive):
            self._run = None
            self._timer.deactivate()
            self._run_button.set_enabled(self._may_run)
            self._stop_button.set_enabled(False)
            self._told.text = self._results.summary(is_over=True)
            await self._section.refresh()

    def _stop(self) -> None:
        if self._run is not None:
            self._run.stop()

    # ------------------------------------------------------------------ what there is

    async def _look(self) -> Catalog:
        if not self._functions:
            self._functions = tuple(await asked(self._sql.functions))
        return sql_catalog.seen_by(self._context, await asked(self._sql.catalog))

    def _show(self, found: Catalog) -> None:
        self._catalog = found
        complete(self._editor, self._words(found))
        self._names.clear()
        with self._names:
            ui.label(self._context.t("sql.names")).classes("console-soft text-sm pb-1")
            for source in found.sources:
                self._name(source.name, source.kind)
            if not found.sources:
                ui.label(self._context.t("sql.no_sources")).classes("console-soft")
        view = sql_catalog.CatalogView(self._context, found, self._section)
        for name, draw in (("queries", view.queries), ("sources", view.sources), ("graph", view.graph)):
            self._boxes[name].clear()
            with self._boxes[name]:
                draw()

    def _words(self, found: Catalog) -> list[tuple[str, str]]:
        words = [(each.name, each.kind.lower()) for each in found.sources]
        words += [(each.id, "query") for each in found.queries]
        return words + [(each, "function") for each in self._functions]

    def _name(self, name: str, kind: str) -> None:
        with ui.expansion(name).classes("w-full").props("dense dense-toggle") as box:
            # Never within a string of props: a quote in it would begin another one, which the browser runs.
            box.props["data-testid"] = f"name-{name}"
            box.props("header-class=px-1 expand-separator").props["caption"] = kind.lower()
            inside = ui.column().classes("gap-0 pl-2 pb-2 w-full")

        async def fill(event: Any) -> None:
            if not event.value or list(inside):
                return
            with layout.complaints(self._context):
                columns = await asked(partial(self._sql.columns, name))
                with inside:
                    for each in columns:
                        key = f" · {each.role.lower()}" if each.role else ""
                        ui.label(f"{each.name}  {each.type}{key}").classes("font-mono text-xs break-all")

        box.on_value_change(fill)


async def build(context: PageContext) -> None:
    _Sql(context).draw()


SCREENS: Final = (Screen("sql", "/{cluster}/sql", "sql.title", "terminal", build, needs="sql"),)
