"""A session whose results are shown: as tables as wide as the terminal, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from penstock.sql.client import session
from penstock.sql.client.rendering import lines_of
from penstock.sql.client.service import SqlServer
from penstock.sql.client.tables import Grid

TABULAR, JSON = "TABULAR", "JSON"


class Session(session.Session):
    """`show` gets lines."""

    def __init__(
        self,
        server: SqlServer,
        *,
        output: str = TABULAR,
        width: int = 100,
        row_limit: int | None = None,
        timeout_ms: int | None = None,
        show: Callable[[str], None] = print,
    ) -> None:
        super().__init__(server, row_limit=row_limit, timeout_ms=timeout_ms)
        self.output = output
        self.width = width
        self.show = show
        self._grid: Grid | None = None

    def say(self, line: str) -> None:
        self.show(line)

    def show_entities(self, entities: list[dict[str, Any]]) -> None:
        if self.output == JSON:
            self.show(json.dumps(entities, indent=2))
            return
        for entity in entities:
            for line in lines_of(entity):
                self.show(line)

    def show_header(self, element: dict[str, Any], names: list[str]) -> None:
        self._grid = Grid(names, self.width)
        self._lines(element, self._grid.head())

    def show_row(self, element: dict[str, Any], values: Sequence[Any]) -> None:
        if self._grid is None:
            self._grid = Grid([""] * len(values), self.width)
        self._lines(element, self._grid.row(list(values)))

    def show_message(self, element: dict[str, Any], message: str) -> None:
        self._lines(element, [message])

    def show_end(self, words: str) -> None:
        self._grid = None
        if self.output == TABULAR:
            self.show(words)

    def _lines(self, element: dict[str, Any], lines: list[str]) -> None:
        if self.output == JSON:
            self.show(json.dumps(element))
            return
        for line in lines:
            self.show(line)
