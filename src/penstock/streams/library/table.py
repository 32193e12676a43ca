"""A table: the newest row of each key counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from penstock.streams.library import callables, checking, joins
from penstock.streams.library.failures import TopologyError, unknown
from penstock.streams.library.flows import Flow
from penstock.streams.library.program import Program
from penstock.streams.plan import expressions as e
from penstock.streams.plan import nodes
from penstock.streams.plan import types as t
from penstock.streams.plan.nodes import STREAM, TABLE, JoinKind
from penstock.streams.plan.schema import Column

if TYPE_CHECKING:
    from penstock.streams.library.grouped import Grouped
    from penstock.streams.library.stream import Stream

_WHOLE = "of_function"


class Table(Flow):
    _word = "KTABLE"

    def to_stream(self) -> Stream:
        """Each change as a row. A deleted row is one whose value is NULL."""
        from penstock.streams.library.stream import Stream

        node = self._node
        made = nodes.ToStream(
            name=self._name("TOSTREAM"), schema=node.schema, kind=STREAM, window=node.window, input=node
        )
        return Stream(self._program, self._program.add(made), self._key_format)

    def materialize(self, store: str) -> Table:
        """Keeps the rows in a store of this name, which can be asked: `app.store(name)`."""
        if not store:
            raise TopologyError("a store needs a name")
        return self.to_stream().to_table(store=store)

    def group_by(self, *columns: Any, name: str | None = None, **named: Any) -> Grouped:
        """Rows of the same values together, each counted where it is now."""
        from penstock.streams.library.grouped import group_table

        return group_table(self, columns, named, name)

    def join(self, other: Table, *, on: Any = None, **options: Any) -> Table:
        """By key; with `on=` by the other table's key in a column of this one."""
        return self._joined(other, JoinKind.INNER, on, options)

    def left_join(self, other: Table, *, on: Any = None, **options: Any) -> Table:
        return self._joined(other, JoinKind.LEFT, on, options)

    def outer_join(self, other: Table, **options: Any) -> Table:
        return self._joined(other, JoinKind.FULL, None, options)

    def _joined(self, other: Any, kind: JoinKind, on: Any, options: dict[str, Any]) -> Table:
        if not isinstance(other, Table):
            hint = (
                ": join the stream with the table"
                if isinstance(other, Flow) and other._node.kind is STREAM
                else ""
            )
            raise TopologyError(f"a table is joined with a table, not with {other!r}{hint}")
        for name in options:
            if name not in _OPTIONS:
                raise unknown("option of this join", name, _OPTIONS)
        if on is None:
            return joins.tables(self, other, kind, **options)
        return joins.foreign(self, other, kind, on=on, **options)

    def suppress(self) -> Table:
        """Of a windowed table only the last row of each window, when the times of rows have passed its end and grace period."""
        node = self._node
        if node.window is None:
            raise TopologyError("suppress() is for tables with windows: others have no last row")
        if node.window.grace_ms is None:
            raise TopologyError(
                "suppress() wants to know how long to wait: give the window a grace period, as in "
                "tumbling(minutes=1, grace='10 seconds')"
            )
        made = nodes.Suppress(
            name=self._name("SUPPRESS"), schema=node.schema, kind=TABLE, window=node.window, input=node
        )
        return self._after(made)

    def _mapped_by(self, function: Callable[..., Any], value: tuple[Column, ...]) -> Self:
        """A projection, which knows the old row: first what the function gives, then its fields."""
        node = self._node
        struct = t.struct(*value)
        called = callables.call(_Values(function, value), node.schema, struct, "map_values()")
        named = e.PythonCall(called.function, called.arguments, struct, callables.name_of(function))
        whole = self._projected([(_free(node, _WHOLE), named, struct)], "map_values()")
        name = whole._node.schema.value[0].name
        items = [(each.name, e.FieldOf(e.ColumnRef(name), each.name), each.type) for each in value]
        return whole._projected(list(items), "map_values()")


class _Values:
    def __init__(self, function: Callable[..., Any], value: tuple[Column, ...]) -> None:
        self._function, self._state = function, callables.State(value)

    def __call__(self, row: dict[str, Any]) -> Any:
        return self._state.kept(self._function(row))


def _free(node: nodes.Node, name: str) -> str:
    taken = checking.names_of(node)
    while name in taken:
        name += "_"
    return name


class GlobalTable(Flow):
    """A table that every task has whole. Streams are joined with it by any of their columns."""

    def __init__(self, program: Program, node: nodes.Node) -> None:
        super().__init__(program, node, None)

    def filter(self, predicate: Any) -> Self:
        raise TopologyError(_ONLY_JOINED)

    filter_not = filter

    def _projected(self, items: Any, what: str) -> Self:
        raise TopologyError(_ONLY_JOINED)

    def _mapped_by(self, function: Any, value: Any) -> Self:
        raise TopologyError(_ONLY_JOINED)

    def to(self, topic: str, **_: Any) -> None:
        raise TopologyError(_ONLY_JOINED)


_ONLY_JOINED = (
    "a global table is there for joins with streams: read the topic as app.table() for anything else"
)
_OPTIONS = ("on", "suffix", "name", "store")
