"""Statements of a person, one after another: what the server runs, and what the prompt does itself (SET, DEFINE, RUN
SCRIPT)."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from penstock.client.errors import UserError
from penstock.sql.client.service import ServerRefused, SqlServer
from penstock.sql.parsing import statements as st
from penstock.sql.parsing.parser import SyntaxRefused
from penstock.sql.parsing.variables import parse_with

RECORD = "rowtime: "
"""How a record's line of PRINT begins. Lines about formats are not counted."""


class Session(ABC):
    """It shows nothing itself: who derives from it does. Properties and variables last as long as it."""

    def __init__(
        self, server: SqlServer, *, row_limit: int | None = None, timeout_ms: int | None = None
    ) -> None:
        self.server = server
        self.properties: dict[str, str] = {}
        self.variables: dict[str, str] = {}
        self._row_limit = row_limit
        self._timeout_ms = timeout_ms
        self._sequence: int | None = None

    @abstractmethod
    def say(self, line: str) -> None:
        """What was done, or a line of PRINT."""

    @abstractmethod
    def show_entities(self, entities: list[dict[str, Any]]) -> None:
        """What the server answered to statements."""

    @abstractmethod
    def show_header(self, element: dict[str, Any], names: list[str]) -> None:
        """Of a query's rows. `element` is the part of the answer that says it; so it is with the next two."""

    @abstractmethod
    def show_row(self, element: dict[str, Any], values: Sequence[Any]) -> None: ...

    @abstractmethod
    def show_message(self, element: dict[str, Any], message: str) -> None: ...

    @abstractmethod
    def show_end(self, words: str) -> None:
        """Of a query."""

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
                self.say(
                    f"Successfully changed local property '{statement.name}'{was} to '{statement.value}'.{hint}"
                )
            case st.UnsetProperty():
                old = self.properties.pop(statement.name, None)
                if old is None:
                    raise UserError(
                        f"Cannot unset local property '{statement.name}' which was never set in the first place"
                    )
                self.say(f"Successfully unset local property '{statement.name}' (value was '{old}').")
            case st.Define():
                self.variables[statement.name] = statement.value
            case st.Undefine():
                if self.variables.pop(statement.name, None) is None:
                    self.say(f"Cannot undefine variable '{statement.name}' which was never defined.")
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
        self.show_entities(found)

    def _query(self, statement: st.Select) -> None:
        deadline_s = self._deadline_s()
        rows = self.server.rows(statement.text, self.properties, self.variables, deadline_s)
        shown = 0
        try:
            for element in rows:
                if "header" in element:
                    self.show_header(element, heads(element["header"]["schema"]))
                elif element.get("row"):
                    values = element["row"]["columns"]
                    told = [*values[:-1], "<TOMBSTONE>"] if element["row"].get("tombstone") else values
                    self.show_row(element, told)
                    shown += 1
                elif element.get("finalMessage"):
                    self.show_message(element, element["finalMessage"])
                elif element.get("errorMessage") or element.get("error_code"):
                    raise ServerRefused(element.get("errorMessage") or element, 200)
                if shown == self._row_limit or _is_over(deadline_s):
                    break
        except KeyboardInterrupt:
            pass
        finally:
            close(rows)
        self.show_end("Query terminated" if statement.emit is not None else "Query Completed")

    def _print(self, statement: st.Print) -> None:
        deadline_s = self._deadline_s()
        lines = self.server.lines(statement.text, self.properties, deadline_s)
        shown = 0
        try:
            for line in lines:
                self.say(line)
                shown += line.startswith(RECORD)
                if shown == self._row_limit or _is_over(deadline_s):
                    break
        except KeyboardInterrupt:
            pass
        finally:
            close(lines)
        self.say("Topic printing ceased")

    def _deadline_s(self) -> float | None:
        return None if self._timeout_ms is None else time.monotonic() + self._timeout_ms / 1000


def _is_over(deadline_s: float | None) -> bool:
    return deadline_s is not None and time.monotonic() > deadline_s


def close(stream: Iterator[Any]) -> None:
    end = getattr(stream, "close", None)
    if end is not None:
        end()


def heads(schema: str) -> list[str]:
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
