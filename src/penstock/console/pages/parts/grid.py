"""Tables of a page: all data as text, one element however many rows, wide ones scroll in their own box."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nicegui import ui
from nicegui.events import GenericEventArguments

from penstock.console.context import PageContext

Rows = Sequence[Mapping[str, Any]]
PAGE_ROWS: Final = 25
PAGE_SIZES: Final = "[10, 25, 50, 100]"

_LINK: Final = """
<q-td :props="props"><a v-if="props.row.{0}_href" :href="props.row.{0}_href"
 class="text-primary font-medium">{{{{ props.value }}}}</a><span v-else>{{{{ props.value }}}}</span></q-td>
"""
_CHIP: Final = """
<q-td :props="props"><q-badge v-if="props.value" outline :color="props.row.{0}_color || 'grey'" :label="props.value"
 class="q-px-sm q-py-xs" /></q-td>
"""
NO_DATA: Final = '<div class="console-soft q-py-xs">{{ props.message }}</div>'
_MONO: Final = """
<q-td :props="props"><span class="font-mono text-xs whitespace-pre-wrap [overflow-wrap:anywhere]"
>{{{{ props.value }}}}</span></q-td>
"""
_BUTTONS: Final = """
<q-td :props="props" auto-width><q-btn v-for="one in props.row.{0}" :key="one.name" flat round dense size="sm"
 :icon="one.icon" :aria-label="one.label" :title="one.label" :data-testid="one.testid"
 @click.stop="$parent.$emit('act', [one.name, props.row.{1}])" /></q-td>
"""


@dataclass(frozen=True)
class Col:
    """`kind`: text, number, link (to the row's NAME_href), chip (coloured by NAME_color), mono, or buttons (see `button`)."""

    name: str
    label: str
    kind: str = "text"
    is_sortable: bool = True
    is_wide: bool = False
    """May break into lines."""


def button(name: str, icon: str, label: str, testid: str = "") -> dict[str, str]:
    """One of a cell of buttons: `on_act` gets its name and the row's key."""
    return {"name": name, "icon": icon, "label": label, "testid": testid or name}


def grid(
    context: PageContext,
    columns: Sequence[Col],
    rows: Rows,
    *,
    key: str,
    testid: str,
    empty: str = "",
    on_act: Callable[[str, Any], Any] | None = None,
    rows_per_page: int = PAGE_ROWS,
    total: int | None = None,
    on_request: Callable[[int, int], Any] | None = None,
) -> ui.table:
    """With `total` and `on_request` (page, rows of a page) the rows are those of one page, and the others come when asked for."""
    pagination: dict[str, Any] = {"rowsPerPage": rows_per_page, "page": 1}
    if total is not None:
        pagination["rowsNumber"] = total
    table = ui.table(
        columns=[_column(one, is_paged=total is not None) for one in columns], rows=[dict(row) for row in rows],
        row_key=key, pagination=pagination,
    )  # fmt: skip
    table.classes("w-full console-grid").mark(testid)
    table.props(
        f'flat bordered dense wrap-cells :rows-per-page-options="{PAGE_SIZES}" data-testid="{testid}"'
    )
    table.props["no-data-label"] = empty or context.t("common.nothing")
    table.add_slot("no-data", NO_DATA)
    if total is None and len(rows) <= rows_per_page:
        table.props("hide-pagination")
        table.pagination = {"rowsPerPage": 0}
    for one in columns:
        slot = {"link": _LINK, "chip": _CHIP, "mono": _MONO, "buttons": _BUTTONS}.get(one.kind)
        if slot is not None:
            table.add_slot(f"body-cell-{one.name}", slot.format(one.name, key))
    if on_act is not None:
        table.on("act", lambda event: on_act(*_two(event)))
    if on_request is not None:

        async def requested(event: GenericEventArguments) -> None:
            asked = event.args.get("pagination") or {}
            await on_request(int(asked.get("page") or 1), int(asked.get("rowsPerPage") or rows_per_page))

        table.on("request", requested)
    return table


def fill(table: ui.table, rows: Rows, *, empty: str = "") -> None:
    """Other rows in a table that was made without `total`. What the person chose of it stays: page, order, the focus."""
    if table.is_deleted:
        return
    has_pages = len(rows) > PAGE_ROWS
    if has_pages != ("hide-pagination" not in table.props):
        table.props(**{"remove" if has_pages else "add": "hide-pagination"})
        table.pagination = {**(table.pagination or {}), "rowsPerPage": PAGE_ROWS if has_pages else 0}
    if empty and table.props.get("no-data-label") != empty:
        table.props["no-data-label"] = empty
    plain = [dict(row) for row in rows]
    if table.rows != plain:
        table.rows = plain


def _column(one: Col, *, is_paged: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": one.name,
        "label": one.label,
        "field": one.name,
        "align": "right" if one.kind == "number" else "left",
        "headerClasses": "whitespace-nowrap",
        "sortable": one.is_sortable and one.kind != "buttons" and not is_paged,
    }
    if not one.is_wide:
        found["classes"] = "whitespace-nowrap"
        found["style"] = "max-width: 28rem; overflow: hidden; text-overflow: ellipsis"
    return found


def _two(event: GenericEventArguments) -> tuple[str, Any]:
    args = event.args
    while isinstance(args, list) and len(args) == 1 and isinstance(args[0], list):
        args = args[0]
    name, row = args
    return str(name), row
