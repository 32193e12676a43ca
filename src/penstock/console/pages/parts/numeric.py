"""Columns of figures that are shown as text ("1,234", "1.5 KiB") and sorted by the number behind it."""

from __future__ import annotations

from typing import Any, Final

from nicegui import ui

SUFFIX: Final = "_n"
_SORT: Final = "(a, b, one, other) => (one.{0} ?? -1) - (other.{0} ?? -1)"


def figure(name: str, value: float | None, text: str) -> dict[str, Any]:
    """The two entries of a row.

    >>> figure("lag", 1234, "1,234")
    {'lag': '1,234', 'lag_n': 1234}
    """
    return {name: text, name + SUFFIX: value}


def sort_figures(table: ui.table, *names: str) -> None:
    """Tells the table that these columns come from `figure`."""
    columns = [dict(one) for one in table.columns]
    for one in columns:
        if one["name"] in names:
            one[":sort"] = _SORT.format(one["name"] + SUFFIX)
    table.columns = columns
