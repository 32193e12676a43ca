"""Long lists: the server sorts, searches and cuts; the browser gets one page.

The first page is in the first answer. Another page, order or search is one event and its answer; nobody asks a broker for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from nicegui import ui
from nicegui.events import GenericEventArguments, ValueChangeEventArguments

from penstock.console.access.actions import Action
from penstock.console.clusters.lists import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, Wanted
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts.asking_first import confirmed
from penstock.console.pages.parts.grid import NO_DATA, Col

SIZES: Final = [10, 25, 50, 100]
MAX_SEARCH: Final = 200

_LINK: Final = """
<q-td :props="props"><a :href="props.row.href" class="console-link" :data-testid="'row-' + props.row.name">{{ props.value }}</a>
<q-badge v-if="props.row.tag" outline color="grey" class="q-ml-sm" :label="props.row.tag" /></q-td>
"""
_CHIP: Final = """
<q-td :props="props"><q-badge v-if="props.value" outline :color="props.row.%s_color || 'grey'" :label="props.value"
 class="q-px-sm q-py-xs" /></q-td>
"""

Rows = Sequence[Mapping[str, Any]]
Look = Callable[[Wanted], tuple[Rows, int]]
"""The rows of a page, and how many there are on all pages."""
Delete = Callable[[PageContext, Sequence[str]], Awaitable[Sequence[object]]]
"""Of the things with these names; what is gone then."""


def visible(context: PageContext) -> Callable[[str], bool]:
    """Which names the visitor may see: asked for each row, so it is quick for those who may see all."""
    if context.may(Action.VIEW):
        return lambda name: True
    return lambda name: context.may(Action.VIEW, name)


class PagedList:
    """A search field and a table. Its columns are `Col` of `parts.grid`; a column `link` is the name, with the row's `href`."""

    def __init__(
        self,
        context: PageContext,
        look: Look,
        columns: Sequence[Col],
        *,
        wanted: Wanted,
        testid: str,
        placeholder: str,
        can_select: bool = False,
    ) -> None:
        self._context = context
        self._look = look
        self._wanted = wanted
        self._rows: list[dict[str, Any]] = []
        self._columns = columns
        self._testid, self._placeholder, self._can_select = testid, placeholder, can_select

    def draw_search(self) -> ui.input:
        field = ui.input(
            placeholder=self._placeholder, value=self._wanted.search, on_change=self._searched
        ).props(f'dense outlined clearable debounce=200 data-testid="search" {layout.SEARCH}')
        field.props["aria-label"] = self._placeholder
        return field.classes("grow max-w-md")

    def draw_table(self) -> ui.table:
        self._table = table = ui.table(
            columns=[_column(one) for one in self._columns],
            rows=[],
            row_key="name",
            selection="multiple" if self._can_select else None,
            pagination={"rowsPerPage": self._wanted.page_size},
        )
        table.classes("w-full console-grid").mark(self._testid)
        table.props(
            f'flat bordered dense binary-state-sort :rows-per-page-options="{SIZES}" data-testid="{self._testid}"'
        )
        table.props["rows-per-page-label"] = self._context.t("lists.rows")
        table.props["no-data-label"] = self._context.t("common.nothing")
        table.add_slot("no-data", NO_DATA)
        for one in self._columns:
            if one.kind == "link":
                table.add_slot(f"body-cell-{one.name}", _LINK)
            elif one.kind == "chip":
                table.add_slot(f"body-cell-{one.name}", _CHIP % one.name)
        table.on("request", self._requested)
        return table

    def draw_delete(self, delete: Delete) -> None:
        """Below the table: for what is selected. Its words are those of the list's `testid`."""
        ui.button(
            self._context.t(f"{self._testid}.delete_selected"),
            icon="delete",
            on_click=lambda: self._delete_selected(delete),
        ).props(
            'outline color=negative no-caps dense padding="4px 12px" data-testid="delete-selected"'
        ).bind_visibility_from(self._table, "selected", bool)

    async def _delete_selected(self, delete: Delete) -> None:
        names, t = [str(row["name"]) for row in self._table.selected], self._context.t
        if not names or not await confirmed(
            self._context,
            t(f"{self._testid}.delete_question", count=len(names)),
            ", ".join(names),
            button=t("common.delete"),
            typed=names[0] if len(names) == 1 else str(len(names)),
        ):
            return
        with layout.complaints(self._context):
            gone = await delete(self._context, names)
            layout.tell(t(f"{self._testid}.deleted", count=len(gone)))
        self._table.selected = []

    def change(self, **values: Any) -> None:
        """What is wanted: `kind`, `internal`. From the first page on."""
        self._wanted = replace(self._wanted, page=1, **values)
        self.refresh()

    def refresh(self) -> None:
        """Sends what is different."""
        rows, total = self._look(self._wanted)
        made = [dict(row) for row in rows]
        wanted = self._wanted
        pagination = {
            "page": min(wanted.page, max(1, -(-total // wanted.page_size))),
            "rowsPerPage": wanted.page_size,
            "rowsNumber": total,
            "sortBy": wanted.sort,
            "descending": wanted.descending,
        }
        if made != self._rows:
            self._rows = made
            self._table.rows = made
        if pagination != self._table.pagination:
            self._table.pagination = pagination

    def _searched(self, event: ValueChangeEventArguments[Any]) -> None:
        self.change(search=str(event.value or "")[:MAX_SEARCH])

    def _requested(self, event: GenericEventArguments) -> None:
        asked = event.args.get("pagination") if isinstance(event.args, dict) else None
        if not isinstance(asked, dict):
            return
        self._wanted = replace(
            self._wanted,
            page=_number(asked.get("page"), 1),
            page_size=min(MAX_PAGE_SIZE, _number(asked.get("rowsPerPage"), DEFAULT_PAGE_SIZE)),
            sort=str(asked.get("sortBy") or "name"),
            descending=bool(asked.get("descending")),
        )
        self.refresh()


def _number(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and value > 0 else otherwise


def _column(one: Col) -> dict[str, Any]:
    return {
        "name": one.name,
        "label": one.label,
        "field": one.name,
        "align": "right" if one.kind == "number" else "left",
        "sortable": one.is_sortable,
        "classes": "whitespace-nowrap",
        "style": "max-width: 28rem; overflow: hidden; text-overflow: ellipsis",
    }
