"""The difference between two texts, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nicegui import ui

from penstock.console.pages.parts.difference import Line

_BODY: Final = """
<q-tr :props="props" :class="{gone: 'bg-red-100 dark:bg-red-950', new: 'bg-green-100 dark:bg-green-950',
 skipped: 'opacity-60'}[props.row.kind]" class="font-mono text-xs">
<q-td auto-width class="text-right opacity-60">{{ props.row.old }}</q-td>
<q-td auto-width class="text-right opacity-60">{{ props.row.new }}</q-td>
<q-td auto-width>{{ {gone: '−', new: '+'}[props.row.kind] || '' }}</q-td>
<q-td class="whitespace-pre">{{ props.row.text }}</q-td></q-tr>
"""


def show_difference(lines: Sequence[Line], *, testid: str = "diff") -> None:
    """What `difference` has found. It may take a second for long texts: make it in a thread."""
    columns = [{"name": name, "label": "", "field": name} for name in ("old", "new", "kind", "text")]
    rows = [{"id": number, **line._asdict()} for number, line in enumerate(lines)]
    table = ui.table(columns=columns, rows=rows, row_key="id", pagination={"rowsPerPage": 0})
    table.props(f'flat bordered dense hide-header hide-pagination separator=none data-testid="{testid}"')
    table.classes("w-full").mark(testid).add_slot("body", _BODY)
