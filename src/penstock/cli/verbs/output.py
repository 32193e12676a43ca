"""Tables and JSON. rich is imported only when something is shown with it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

# Wide enough that nothing is wrapped where the output goes to a file or a pipe.
PIPE_WIDTH = 400


def show_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def console(*, stderr: bool = False) -> Any:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else PIPE_WIDTH, highlight=False)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None) -> None:
    console().print(table(columns, rows, title=title))


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None) -> Any:
    """Numbers stand to the right; the first column is what the row is about."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        header_style="bold cyan",
    )
    for position, name in enumerate(columns):
        is_number = bool(rows) and all(isinstance(row[position], int) for row in rows)
        made.add_column(
            name,
            justify="right" if is_number else "left",
            style="green" if position == 0 else None,
            overflow="fold",
        )
    for row in rows:
        made.add_row(*(Text(str(cell)) for cell in row))
    return made


def say(sentence: str) -> None:
    """One line about what was done, to stderr, so that stdout holds only what was asked for."""
    console(stderr=True).print(f"[green]✓[/green] {_escaped(sentence)}")


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
