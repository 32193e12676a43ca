"""Schemas: the subjects of the registry."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from penstock.console.access.actions import Action
from penstock.console.actions import schemas as actions
from penstock.console.context import PageContext
from penstock.console.pages import layout, schema_register, schema_subject
from penstock.console.pages.parts.grid import PAGE_ROWS, Col, grid
from penstock.console.pages.parts.section import Section
from penstock.console.pages.screens import Screen
from penstock.console.upstream.asking import asked
from penstock.console.upstream.registry import LEVELS, RegistryServer, SubjectRow
from penstock.console.upstream.servers import servers

SUBJECT: Final = schema_subject.PATH
KIND_COLORS: Final = {"AVRO": "primary", "JSON": "teal", "PROTOBUF": "purple"}


class Listed(NamedTuple):
    """What a look at the list found."""

    names: tuple[str, ...]
    """All that match, of which `rows` are one page."""
    total: int
    level: str
    rows: tuple[SubjectRow, ...]


class _List:
    def __init__(self, context: PageContext, registry: RegistryServer) -> None:
        self._context, self._registry = context, registry
        self._search = context.query.get("search", "")
        self._page, self._size = 1, PAGE_ROWS
        self._with_deleted = False

    def draw(self) -> None:
        context, t = self._context, self._context.t
        with layout.heading(t("schemas.title"), t("schemas.subtitle")):
            if context.may_somewhere(Action.EDIT_SCHEMAS):
                target = layout.link(context, schema_register.PATH)
                ui.button(t("schemas.register"), icon="add", on_click=lambda: ui.navigate.to(target)).props(
                    'unelevated no-caps data-testid="register"'
                )
        with ui.row().classes("w-full items-center gap-3"):
            field = ui.input(placeholder=t("schemas.search"), value=self._search, on_change=self._searched)
            field.props(f'dense outlined clearable debounce=250 data-testid="search" {layout.SEARCH}')
            field.props(f'aria-label="{t("schemas.search")}"').classes("grow max-w-md")
            ui.switch(t("schemas.with_deleted"), on_change=self._switched).props('data-testid="with-deleted"')
        self._section = Section(context, self._look, self._show)

    async def _look(self) -> Listed:
        search, page, size, deleted = self._search.lower(), self._page, self._size, self._with_deleted
        context = self._context

        def ask() -> Listed:
            names = [
                each for each in self._registry.subjects(deleted=deleted) if context.may(Action.VIEW, each)
            ]
            found = tuple(each for each in names if search in each.lower())
            begin = (page - 1) * size
            rows = self._registry.rows(found[begin : begin + size] if size else found[:1000])
            return Listed(found, len(names), self._registry.global_level(), tuple(rows))

        return await asked(ask)

    def _show(self, found: Listed) -> None:
        context, t = self._context, self._context.t
        with ui.row().classes("w-full items-center gap-2"):
            shown = t("schemas.count", shown=len(found.names), total=found.total)
            ui.label(shown).classes("opacity-80").props('data-testid="count"')
            ui.space()
            ui.label(t("schemas.global_level")).classes("opacity-80")
            _level_choice(context, found.level, self._section)
        columns = [
            Col("subject", t("schemas.subject"), "link", is_wide=True),
            Col("kind", t("schemas.kind"), "chip"),
            Col("version", t("schemas.newest"), "number"),
            Col("versions", t("schemas.versions"), "number"),
            Col("id", t("schemas.id"), "number"),
            Col("problem", "", is_wide=True),
        ]
        if not any(row.problem for row in found.rows):
            columns.pop()
        rows = [
            {
                "subject": row.subject,
                "subject_href": layout.link(context, SUBJECT, subject=row.subject),
                "kind": row.kind or t("schemas.deleted"),
                "kind_color": KIND_COLORS.get(row.kind, "grey"),
                "version": row.version or "",
                "versions": row.versions or "",
                "id": row.id or "",
                "problem": row.problem,
            }
            for row in found.rows
        ]
        empty = t("schemas.none") if not found.total else t("schemas.none_match")
        table = grid(
            context, columns, rows, key="subject", testid="subjects", empty=empty, total=len(found.names),
            rows_per_page=self._size, on_request=self._turn,
        )  # fmt: skip
        table.pagination = {"page": self._page, "rowsPerPage": self._size, "rowsNumber": len(found.names)}

    async def _turn(self, page: int, size: int) -> None:
        self._page, self._size = page, size
        await self._section.refresh()

    async def _searched(self, event: ValueChangeEventArguments[Any]) -> None:
        self._search, self._page = str(event.value or ""), 1
        await self._section.refresh()

    async def _switched(self, event: ValueChangeEventArguments[Any]) -> None:
        self._with_deleted, self._page = bool(event.value), 1
        await self._section.refresh()


def _level_choice(context: PageContext, level: str, section: Section[Listed]) -> None:
    if not context.may(Action.EDIT_SCHEMAS):
        ui.label(level).props('data-testid="global-level"')
        return
    choices = list(LEVELS) if level in LEVELS else [level, *LEVELS]
    field = ui.select(choices, value=level).props('dense outlined options-dense data-testid="global-level"')

    async def change() -> None:
        with layout.complaints(context):
            await actions.set_level(context, None, str(field.value))
            layout.tell(context.t("schemas.level_set", level=field.value))
        await section.refresh()

    field.on_value_change(change)


async def build(context: PageContext) -> None:
    _List(context, servers(context.cluster).registry).draw()


SCREENS: Final = (
    Screen("schemas", "/{cluster}/schemas", "schemas.title", "schema", build, needs="registry"),
    Screen("schema", SUBJECT, "schemas.title", "schema", schema_subject.build, in_menu=False, needs="registry"),
    Screen(
        "schema-register", schema_register.PATH, "schemas.register", "schema", schema_register.build, in_menu=False,
        needs="registry",
    ),
)  # fmt: skip
