"""Statements of a person, one after another: what the server runs, and what the prompt does itself (SET, DEFINE, RUN
SCRIPT)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from penstock.cli.ksql.rendering import lines_of
from penstock.cli.ksql.service import ServerRefused, SqlServer
from penstock.cli.ksql.tables import Grid
from penstock.client.errors import UserError
from penstock.sql.parsing import statements as st
from penstock.sql.parsing.parser import SyntaxRefused
from penstock.sql.parsing.variables import parse_with

TABULAR, JSON = "TABULAR", "JSON"


class Session:
    """`show` gets lines. Properties and variables last as long as it."""

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
        self.server = server
        self.output = output
        self.width = width
        self.properties: dict[str, str] = {}
        self.variables: dict[str, str] = {}
        self._row_limit = row_limit
        self._timeout_ms = timeout_ms
        self.show = show
        self._sequence: int | None = None

    def run(self, text: str) -> None:
        """UserError and ServerRefused end it at the statement that they are about."""
        try:
            statements = parse_with(text, self.variables, scripts=True)
        except SyntaxRefused as error:
            raise UserError(str(error)) from None
        for statement in statements:
            self._run(statement)

    def _run(self, statement: st.Statement) -> None:
        match statement:
            case st.SetProperty():
                old = self.properties.get(statement.name)
                self.properties[statement.name] = statement.value
                was, hint = (
                    (f" from '{old}'", "")
                    if old is not None
                    else ("", " Use the UNSET command to revert your change.")
                )
                self.show(
                    f"Successfully changed local property '{statement.name}'{was} to '{statement.value}'.{hint}"
                )
            case st.UnsetProperty():
                old = self.properties.pop(statement.name, None)
                if old is None:
                    raise UserError(
                        f"Cannot unset local property '{statement.name}' which was never set in the first place"
                    )
                self.show(f"Successfully unset local property '{statement.name}' (value was '{old}').")
            case st.Define():
                self.variables[statement.name] = statement.value
            case st.Undefine():
                if self.variables.pop(statement.name, None) is None:
                    self.show(f"Cannot undefine variable '{statement.name}' which was never defined.")
            case st.RunScript():
                self.run_file(statement.path)
            case st.Print():
                self._print(statement)
            case st.Select():
                self._query(statement)
            case _:
                self._statement(statement)

    def run_file(self, path: str) -> None:
        try:
            text = Path(path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"cannot read {path}: {error}") from None
        self.run(text)

    def _statement(self, statement: st.Statement) -> None:
        found = self.server.statements(statement.text, self.properties, self.variables, self._sequence)
        for entity in found:
            sequence = entity.get("commandSequenceNumber")
            if isinstance(sequence, int) and sequence >= 0:
                self._sequence = sequence
        if self.output == JSON:
            self.show(json.dumps(found, indent=2))
            return
        for entity in found:
            for line in lines_of(entity):
                self.show(line)

    def _query(self, statement: st.Select) -> None:
        rows = self.server.rows(statement.text, self.properties, self.variables)
        grid: Grid | None = None
        shown = 0
        deadline_s = None if self._timeout_ms is None else time.monotonic() + self._timeout_ms / 1000
        try:
            for element in rows:
                if "header" in element:
                    grid = Grid(_heads(element["header"]["schema"]), self.width)
                    self._lines(element, grid.head())
                elif element.get("row"):
                    values = element["row"]["columns"]
                    grid = grid or Grid([""] * len(values), self.width)
                    told = [*values[:-1], "<TOMBSTONE>"] if element["row"].get("tombstone") else values
                    self._lines(element, grid.row(told))
                    shown += 1
                elif element.get("finalMessage"):
                    self._lines(element, [element["finalMessage"]])
                elif element.get("errorMessage") or element.get("error_code"):
                    raise ServerRefused(element.get("errorMessage") or element, 200)
                if shown == self._row_limit or (deadline_s is not None and time.monotonic() > deadline_s):
                    break
        except KeyboardInterrupt:
            pass
        finally:
            close(rows)
        if self.output == TABULAR:
            self.show("Query terminated" if statement.emit is not None else "Query Completed")

    def _lines(self, element: dict[str, Any], lines: list[str]) -> None:
        if self.output == JSON:
            self.show(json.dumps(element))
            return
        for line in lines:
            self.show(line)

    def _print(self, statement: st.Print) -> None:
        lines = self.server.lines(statement.text, self.properties)
        try:
            for line in lines:
                self.show(line)
        except KeyboardInterrupt:
            pass
        finally:
            close(lines)
        self.show("Topic printing ceased")


def close(stream: Iterator[Any]) -> None:
    end = getattr(stream, "close", None)
    if end is not None:
        end()


def _heads(schema: str) -> list[str]:
    """The names of a header: `ID` STRING KEY, `V` STRUCT<`A` INTEGER>."""
    heads, depth, at = [], 0, 0
    while at < len(schema):
        char = schema[at]
        if char == "`":
            end = schema.index("`", at + 1)
            if depth == 0:
                heads.append(schema[at + 1 : end])
            at = end
        depth += (char in "<(") - (char in ">)")
        at += 1
    return heads
