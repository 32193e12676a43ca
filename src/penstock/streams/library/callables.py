"""The user's functions where the plan wants an expression or a step.

They get a row as a dict with all its columns and ROWTIME. What they give is checked against the declared types: a function that
raises, or gives what does not fit, loses that one row, and the processing log says why. They travel to workers by cloudpickle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock.streams.library.failures import TopologyError
from penstock.streams.library.types import sql_type
from penstock.streams.library.values import RowReader, from_python, plain, values_of
from penstock.streams.plan import expressions as e
from penstock.streams.plan import types as t
from penstock.streams.plan.schema import ROWTIME, Column, Schema

Function = Callable[..., Any]


def name_of(function: Any) -> str:
    name = getattr(function, "__name__", None) or type(function).__name__
    return "lambda" if name == "<lambda>" else str(name)


def check_callable(function: Any, what: str) -> None:
    if not callable(function):
        raise TopologyError(f"{what} wants a function, not {function!r}")


class OfRow:
    """`PythonCall.function`: values of all columns, then ROWTIME."""

    def __init__(self, function: Function, schema: Schema, result: t.SqlType, where: str) -> None:
        self._function, self._result, self._where = function, result, where
        self._reader = RowReader((*schema.key, *schema.value, Column(ROWTIME, t.BIGINT)))

    def __call__(self, *values: Any) -> Any:
        return from_python(self._function(self._reader(values)), self._result, self._where)


class Truth:
    """Whatever Python takes for true."""

    def __init__(self, function: Function) -> None:
        self._function = function

    def __call__(self, row: dict[str, Any]) -> bool:
        return bool(self._function(row))


def call(function: Function, schema: Schema, result: Any, what: str) -> e.PythonCall:
    """A function of the row as an expression."""
    check_callable(function, what)
    type_ = sql_type(result)
    columns = (*(column.name for column in (*schema.key, *schema.value)), ROWTIME)
    of_row = OfRow(function, schema, type_, f"the result of {name_of(function)}")
    return e.PythonCall(of_row, tuple(map(e.ColumnRef, columns)), type_, name_of(function))


def predicate(function: Function, schema: Schema, what: str) -> e.PythonCall:
    check_callable(function, what)
    made = call(Truth(function), schema, bool, what)
    return e.PythonCall(made.function, made.arguments, made.type, name_of(function))


class Step:
    """`PythonStep.function`: the row as the kernel has it becomes the user's, and what comes of it the kernel's."""

    def __init__(self, function: Function, before: Schema, after: Schema) -> None:
        self._function = function
        self._reader = RowReader((*before.key, *before.value))
        self._key, self._value = after.key, after.value

    def __call__(self, row: dict[str, Any]) -> Any:
        raise NotImplementedError

    def key(self, given: Any) -> tuple[Any, ...] | None:
        return values_of(given, self._key, is_key=True)

    def value(self, given: Any) -> tuple[Any, ...] | None:
        return values_of(given, self._value, is_key=False)


class Looking(Step):
    """For each row, and nothing is made of the result."""

    def __call__(self, row: dict[str, Any]) -> None:
        self._function(self._reader.changed(row))


class NewValue(Step):
    def __call__(self, row: dict[str, Any]) -> list[tuple[None, Any]]:
        return [(None, self.value(self._function(self._reader.changed(row))))]


class NewValues(Step):
    def __call__(self, row: dict[str, Any]) -> list[tuple[None, Any]]:
        return [(None, self.value(each)) for each in _several(self._function(self._reader.changed(row)))]


class NewRow(Step):
    def __call__(self, row: dict[str, Any]) -> list[tuple[Any, Any]]:
        key, value = _pair(self._function(self._reader.changed(row)))
        return [(self.key(key), self.value(value))]


class NewRows(Step):
    def __call__(self, row: dict[str, Any]) -> list[tuple[Any, Any]]:
        pairs = map(_pair, _several(self._function(self._reader.changed(row))))
        return [(self.key(key), self.value(value)) for key, value in pairs]


class Same(Step):
    """The row as it is, without the window of its key."""

    def __call__(self, row: dict[str, Any]) -> list[tuple[Any, Any]]:
        key = tuple(row[column.name] for column in self._key)
        value = tuple(row[column.name] for column in self._value)
        return [(None if all(each is None for each in key) else key, value)]


def _pair(given: Any) -> Sequence[Any]:
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise TypeError(f"the function gives a pair of key and value, not {given!r}")
    return given


def _several(given: Any) -> Iterable[Any]:
    if given is None:
        return ()
    if isinstance(given, (str, bytes, dict)) or not isinstance(given, Iterable):
        raise TypeError(f"the function gives several, as a list or by yield, not {given!r}")
    return given


class Adding:
    """`PythonAggregate.add` and `remove`: (key, row, state) → state, where states are the values of `value`."""

    def __init__(
        self,
        function: Function,
        before: Schema,
        value: tuple[Column, ...],
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        self._function, self._hidden = function, hidden
        self._key_columns, self._reader = before.key, RowReader((*before.key, *before.value))
        self._state = State(value)

    def __call__(self, key: Any, row: dict[str, Any], state: Any) -> Any:
        plain_key = plain(self._key_columns, _tuple(key, self._key_columns), is_key=True)
        shown = self._reader.changed(row)
        for name in self._hidden:
            del shown[name]
        return self._state.kept(self._function(plain_key, shown, self._state.shown(state)))


class Merging:
    def __init__(self, function: Function, before: Schema, value: tuple[Column, ...]) -> None:
        self._function, self._key_columns, self._state = function, before.key, State(value)

    def __call__(self, key: Any, one: Any, other: Any) -> Any:
        plain_key = plain(self._key_columns, _tuple(key, self._key_columns), is_key=True)
        return self._state.kept(self._function(plain_key, self._state.shown(one), self._state.shown(other)))


class Starting:
    def __init__(self, function: Function, value: tuple[Column, ...]) -> None:
        self._function, self._state = function, State(value)

    def __call__(self) -> Any:
        return self._state.kept(self._function())


class Reducing:
    """Of two rows one: the first is the result so far."""

    def __init__(self, function: Function) -> None:
        self._function = function

    def __call__(self, key: Any, row: dict[str, Any], state: Any) -> Any:
        return row if state is None else self._function(state, row)


class MergingRows:
    def __init__(self, function: Function) -> None:
        self._function = function

    def __call__(self, key: Any, one: Any, other: Any) -> Any:
        if one is None or other is None:
            return other if one is None else one
        return self._function(one, other)


class OnlyValue:
    """Of a row with its key, the columns of the value; bare where there is only `value`."""

    def __init__(self, function: Function, value: tuple[Column, ...]) -> None:
        self._function, self._names = function, tuple(column.name for column in value)
        self._is_bare = self._names == ("value",)

    def __call__(self, key: Any, row: dict[str, Any], state: Any) -> Any:
        mine = row["value"] if self._is_bare else {name: row[name] for name in self._names}
        return self._function(key, mine, state)


class State:
    """A state in a store: values of the columns, as a STRUCT."""

    def __init__(self, value: tuple[Column, ...]) -> None:
        self._columns = value
        self._reader = RowReader(value)

    def shown(self, state: Any) -> Any:
        if state is None:
            return None
        return plain(self._columns, [state[column.name] for column in self._columns], is_key=False)

    def kept(self, given: Any) -> dict[str, Any] | None:
        values = values_of(given, self._columns, is_key=False)
        return None if values is None else dict(zip(self._reader.names, values, strict=True))


def _nothing() -> None:
    return None


NOTHING = _nothing


def _tuple(key: Any, columns: tuple[Column, ...]) -> tuple[Any, ...] | None:
    if key is None:
        return None
    return tuple(key) if len(columns) != 1 else (key,)


def functions_in(part: Any) -> list[str]:
    """The names of Python functions in an expression."""
    from penstock.streams.library.columns import walk

    return [each.name for each in walk(part) if isinstance(each, e.PythonCall)]
