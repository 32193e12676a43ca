"""Rows as tables for people or as JSON for programs, both from one description. rich is imported only when a table is shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

import click

R = TypeVar("R")

# Wide enough that nothing is wrapped where the output goes to a file or a pipe.
PIPE_WIDTH = 400
NOTHING = "–"


class Column(Generic[R]):
    """One fact of a row: its name in JSON, its heading in a table, and how to get it.

    `heading` is the name with spaces unless it is given; None keeps the column out of the table. `name` None keeps it out of the
    JSON. `cell` is for people what `value` is for programs; without it a list is written with commas and nothing as a dash.
    """

    def __init__(
        self,
        name: str | None,
        value: Callable[[R], object],
        heading: str | None = "",
        *,
        cell: Callable[[R], object] | None = None,
    ) -> None:
        self.name = name
        self.value = value
        self.heading = (name or "").replace("_", " ") if heading == "" else heading
        self._cell = cell

    def cell(self, row: R) -> object:
        return _cell(self.value(row)) if self._cell is None else self._cell(row)


def _cell(value: object) -> object:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if type(value) in (list, tuple):  # a named tuple is one thing, and has a text of its own
        return ",".join(map(str, cast("Sequence[object]", value)))
    return value


def fields(*names: str) -> list[Column[Any]]:
    """Columns of named tuples: each attribute under its own name."""
    return [Column(name, _attribute(name)) for name in names]


def _attribute(name: str) -> Callable[[Any], object]:
    return lambda row: getattr(row, name)


def as_json(row: R, columns: Iterable[Column[R]]) -> dict[str, object]:
    return {column.name: column.value(row) for column in columns if column.name is not None}


def show_rows(
    output: str, rows: Iterable[R], columns: Sequence[Column[R]], *, empty: str = "", hint: str = ""
) -> None:
    """A table, or a JSON list of objects. Where there are no rows people get the sentence `empty`, and below a table `hint`; both
    go to stderr."""
    shown = list(rows)
    show(
        output,
        lambda: [as_json(row, columns) for row in shown],
        lambda: _show_or_say(shown, columns, empty, hint),
    )


def _show_or_say(rows: list[R], columns: Sequence[Column[R]], empty: str, hint: str) -> None:
    if rows or not empty:
        show_table(*cells(rows, columns))
    if empty and not rows:
        click.echo(empty, err=True)
    elif hint:
        click.echo(hint, err=True)


def show(output: str, document: Callable[[], Any], draw: Callable[[], None]) -> None:
    """The one place where a command's output is JSON or not. `document` is what programs get, `draw` shows it to people."""
    if output == "json":
        show_json(document())
    else:
        draw()


def show_lines(
    output: str, rows: Iterable[R], draw: Callable[[R], None], *, document: Callable[[R], Any] | None = None
) -> None:
    """The same for rows that come one after the other: each is shown when it is there. Programs get a line of JSON for each;
    without `document` they get nothing yet."""
    for row in rows:
        if output != "json":
            draw(row)
        elif document is not None:
            sys.stdout.write(json_line(document(row)).decode())
        sys.stdout.flush()


def show_array(objects: Iterable[dict[str, Any]], default: Callable[[Any], Any]) -> None:
    """A JSON list with one object on each line, written as they come. `default` writes what JSON has no form for."""
    separator = "[\n"
    for each in objects:
        print(f"{separator}  {json.dumps(each, ensure_ascii=False, default=default)}", end="")
        separator = ",\n"
    print("[]" if separator == "[\n" else "\n]")


def json_line(value: Any) -> bytes:
    """One line, in UTF-8; what cannot be written in it is written with escapes."""
    try:
        return json.dumps(value, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value).encode() + b"\n"


def show_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def cells(rows: Iterable[R], columns: Sequence[Column[R]]) -> tuple[list[str], list[list[object]]]:
    """The headings and rows of a table."""
    seen = [column for column in columns if column.heading is not None]
    return [column.heading or "" for column in seen], [[one.cell(row) for one in seen] for row in rows]


def facts(pairs: Mapping[str, object]) -> None:
    """A table of one thing: what, and its value."""
    show_table(["", ""], list(pairs.items()))


def console(*, stderr: bool = False) -> Any:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else PIPE_WIDTH, highlight=False)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    console().print(table(columns, rows))


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Any:
    """Numbers stand to the right; the first column is what the row is about."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold cyan")
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
    from rich.markup import escape

    console(stderr=True).print(f"[green]✓[/green] {escape(sentence)}")


def confirm(question: str, *, yes: bool) -> None:
    """Asks on a terminal, unless `yes`; elsewhere goes on. Abort where the answer is no."""
    if not yes and sys.stdin.isatty() and not click.confirm(question, err=True):
        raise click.Abort
