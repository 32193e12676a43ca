"""What statements answered, as it comes: texts as they are, rows of queries as a table."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

from nicegui import ui

from penstock.console.context import PageContext
from penstock.console.pages.parts.grid import Col, grid
from penstock.console.pages.parts.section import banner
from penstock.console.upstream.sql_run import Ended, Failed, Heads, Row, Said, Told

MAX_ROWS: Final = 500
"""The newest of a query that are kept."""
MAX_SHOWN_CHARS: Final = 400_000
"""Of all rows together, and of one text: what goes to the browser again and again."""
MAX_TEXTS: Final = 60
MAX_LINES: Final = 1000
"""Of one text, and of the lines of PRINT."""


class Results:
    """One run after another; `tell` draws, `summary` says how far it is."""

    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._box = ui.column().classes("w-full gap-3").props('data-testid="results"')
        with self._box:
            ui.label(context.t("sql.nothing_run")).classes("console-soft")
        self._table: ui.table | None = None
        self._rows: deque[dict[str, Any]] = deque()
        self._text: ui.label | None = None
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._count = self._chars = 0
        self._began_s = 0.0

    def begin(self) -> None:
        self._box.clear()
        self._table = self._text = None
        self._rows.clear()
        self._lines.clear()
        self._count = self._chars = 0
        self._began_s = time.monotonic()

    def tell(self, told: Iterable[Told]) -> bool:
        """Whether the run has ended."""
        has_ended = has_rows = has_lines = False
        for each in told:
            match each:
                case Said(lines):
                    self._lines.extend(line for line in lines[:MAX_LINES] if line)
                    has_lines = True
                case Heads(names):
                    self._end_text(has_lines)
                    self._show_rows(has_rows)
                    has_lines = has_rows = False
                    self._begin_table(names)
                case Row(cells):
                    self._count += 1
                    self._keep(cells)
                    has_rows = True
                case Failed(message):
                    self._end_text(has_lines)
                    has_lines = False
                    with self._box:
                        banner(self._context, message)
                case Ended():
                    has_ended = True
        self._show_rows(has_rows)
        if has_lines:
            self._write()
        return has_ended

    def _show_rows(self, are_new: bool) -> None:
        if are_new and self._table is not None:
            self._table.rows = list(self._rows)
            self._table.update()

    def summary(self, *, is_over: bool = False) -> str:
        t, seconds = self._context.t, time.monotonic() - self._began_s
        words = "sql.ended" if is_over else "sql.under_way"
        said = t(words, seconds=f"{seconds:.1f}")
        if self._table is not None:
            said = t("sql.rows", count=f"{self._count:,}") + " · " + said
        return said

    def _keep(self, cells: Sequence[str]) -> None:
        """As the newest row; the oldest go where there are too many, or they are too long together."""
        if len(self._rows) == MAX_ROWS:
            self._forget()
        self._rows.append({"number": self._count, **{f"c{at}": cell for at, cell in enumerate(cells)}})
        self._chars += sum(map(len, cells))
        while self._chars > MAX_SHOWN_CHARS and len(self._rows) > 1:
            self._forget()

    def _forget(self) -> None:
        gone = self._rows.popleft()
        self._chars -= sum(len(cell) for cell in gone.values() if isinstance(cell, str))

    def _begin_table(self, names: tuple[str, ...]) -> None:
        self._rows.clear()
        self._count = self._chars = 0
        columns = [
            Col("number", "#", "number"),
            *(Col(f"c{at}", name, "mono", is_wide=True) for at, name in enumerate(names)),
        ]
        with self._box:
            self._table = grid(
                self._context, columns, [], key="number", testid="rows", empty=self._context.t("sql.no_rows")
            )
            self._table.props(remove="hide-pagination")
            self._table.pagination = {"rowsPerPage": 25, "sortBy": "number", "descending": True}

    def _write(self) -> None:
        if self._text is None:
            if len(list(self._box)) >= MAX_TEXTS:
                self._lines.clear()
                return
            with self._box:
                self._text = ui.label().classes(
                    "font-mono text-xs whitespace-pre overflow-auto console-card p-3 w-full"
                )
                self._text.classes("max-h-[60vh]").props('data-testid="text" tabindex=0')
        self._text.text = "\n".join(self._lines)[-MAX_SHOWN_CHARS:]

    def _end_text(self, has_lines: bool) -> None:
        if has_lines:
            self._write()
        self._text = None
        self._lines.clear()
