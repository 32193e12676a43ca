"""Tables as ksqlDB's prompt draws them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]], footer: Sequence[str] = ()) -> list[str]:
    """Lines: an empty one, the heads, a rule, the rows, a rule, the footer."""
    texts = [[text(value) for value in row] for row in rows]
    widths = [
        max([len(head), *(len(line) for row in texts for line in row[place].split("\n"))])
        for place, head in enumerate(heads)
    ]
    rule = "-" * (sum(widths) + 3 * len(widths) - 1)
    lines = ["", _line(heads, widths), rule]
    for row in texts:
        cells = [value.split("\n") for value in row]
        for number in range(max(map(len, cells), default=0)):
            lines.append(_line([cell[number] if number < len(cell) else "" for cell in cells], widths))
    return [*lines, rule, *footer]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " "


def text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}={text(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(text, value)) + "]"
    return str(value)


class Grid:
    """Rows of a query as they come: columns of one width each that fill the screen, long values go on in further lines."""

    def __init__(self, heads: Sequence[str], width: int) -> None:
        count = max(1, len(heads))
        self._cell = max(5, (width - count - 1) // count)
        self._rule = "+" + "+".join("-" * self._cell for _ in range(count)) + "+"
        self._heads = heads

    def head(self) -> list[str]:
        return [self._rule, *self._lines(self._heads), self._rule]

    def row(self, values: Sequence[Any]) -> list[str]:
        return self._lines([text(value) for value in values])

    def _lines(self, cells: Sequence[str]) -> list[str]:
        parts = [
            [cell[at : at + self._cell] for at in range(0, max(1, len(cell)), self._cell)] for cell in cells
        ]
        found = []
        for number in range(max(map(len, parts), default=1)):
            found.append(
                "|"
                + "|".join((part[number] if number < len(part) else "").ljust(self._cell) for part in parts)
                + "|"
            )
        return found
