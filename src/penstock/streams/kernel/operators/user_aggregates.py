"""Aggregates that are functions of the user's program: they get the key and the whole row as a dict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.streams.kernel.records import Row
from penstock.streams.plan.nodes import PythonAggregate
from penstock.streams.plan.schema import ROWTIME, Schema


class ProgramFailed(Exception):
    """What the user's function raised is its cause."""


class UserAggregate:
    def __init__(self, program: PythonAggregate, schema: Schema) -> None:
        self._program, self._schema = program, schema
        self.remove = None if program.remove is None else self._remove

    def initial(self) -> Any:
        return self._program.initial()

    def add(self, state: Any, row: Row) -> Any:
        return _called(self._program.add, plain_key(row.key), row_dict(row, self._schema), state)

    def _remove(self, state: Any, row: Row) -> Any:
        assert self._program.remove is not None
        return _called(self._program.remove, plain_key(row.key), row_dict(row, self._schema), state)

    def merge(self, one: Any, other: Any, key: tuple[Any, ...]) -> Any:
        assert self._program.merge is not None  # asked for by the library where there are session windows
        return _called(self._program.merge, plain_key(key), one, other)

    def result(self, state: Any) -> Any:
        return state


def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:  # the user's function may raise what it likes
        raise ProgramFailed(str(error)) from error


def plain_key(key: tuple[Any, ...] | None) -> Any:
    """A key of one column is its value."""
    return key[0] if key is not None and len(key) == 1 else key


def row_dict(row: Row, schema: Schema) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if row.key is not None:
        found.update(zip((column.name for column in schema.key), row.key, strict=False))
    else:
        found.update((column.name, None) for column in schema.key)
    values = row.value if row.value is not None else (None,) * len(schema.value)
    found.update(zip((column.name for column in schema.value), values, strict=True))
    found[ROWTIME] = row.timestamp
    return found
