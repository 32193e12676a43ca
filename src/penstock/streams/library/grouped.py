"""Groups: rows of one key, which become one row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

from penstock.streams.functions import aggregates
from penstock.streams.functions.refusals import TypeRefused
from penstock.streams.library import callables, checking
from penstock.streams.library.columns import Col, fn
from penstock.streams.library.failures import TopologyError, one_line
from penstock.streams.library.program import Program, columns_of, schema_of
from penstock.streams.plan import expressions as e
from penstock.streams.plan import nodes
from penstock.streams.plan import types as t
from penstock.streams.plan.nodes import TABLE, AggregateCall, Node, PythonAggregate
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Format, Window, WindowKind
from penstock.streams.plan.types import SqlType

if TYPE_CHECKING:
    from penstock.streams.library.cogrouped import Cogrouped
    from penstock.streams.library.stream import Stream
    from penstock.streams.library.table import Table

WHOLE: Final = "of_function"
Items = list[tuple[str, e.Expression, SqlType]]
Given = Sequence[tuple[str, e.Expression, SqlType]]


def group_stream(
    stream: Stream, columns: tuple[Any, ...], named: dict[str, Any], name: str | None
) -> Grouped:
    """The old key's columns stay at hand for the aggregate: they are in the repartition topic only."""
    node = stream._node
    items = checking.named(columns, named, node)
    if not items:
        raise TopologyError("group_by() wants a column; group_by_key() groups by the key that is there")
    key = tuple(each for each, _, _ in items)
    own = tuple(column.name for column in node.schema.key)
    if stream._key_format is not None and key == own and all(map(_is_column, items)):
        return Grouped(stream._program, node, key, stream._key_format, node.schema.value, name)
    moved = [
        (each.name, e.ColumnRef(each.name), each.type) for each in (*node.schema.value, *node.schema.key)
    ]
    selected = stream._keyed(_hidden(items, node), moved, None)
    return Grouped(stream._program, selected._node, key, None, node.schema.value, name)


def group_table(table: Table, columns: tuple[Any, ...], named: dict[str, Any], name: str | None) -> Grouped:
    node, program = table._node, table._program
    items = checking.named(columns, named, node)
    if not items:
        raise TopologyError("group_by() of a table wants a column")
    if node.window is not None:
        raise TopologyError("a table with windows is grouped as a stream: to_stream() first")
    moved = [
        (each.name, e.ColumnRef(each.name), each.type) for each in (*node.schema.value, *node.schema.key)
    ]
    keys = _hidden(items, node)
    made = nodes.RegroupTable(
        name=table._name("SELECT"),
        schema=_columns(keys, moved),
        kind=TABLE,
        input=node,
        keys=tuple(each for _, each, _ in keys),
        items=tuple(each for _, each, _ in moved),
    )
    return Grouped(
        program, program.add(made), tuple(each for each, _, _ in items), None, node.schema.value, name
    )


def _is_column(item: tuple[str, e.Expression, SqlType]) -> bool:
    return isinstance(item[1], e.ColumnRef) and item[1].name == item[0]


def _hidden(items: Items, node: Node) -> Items:
    """Key columns under names that nobody else has."""
    taken = set(checking.names_of(node))
    found: Items = []
    for name, expression, type_ in items:
        while name in taken:
            name += "_key"
        taken.add(name)
        found.append((name, expression, type_))
    return found


def _columns(keys: Given, values: Given) -> Schema:
    return schema_of(
        tuple(Column(name, type_) for name, _, type_ in keys),
        tuple(Column(name, type_) for name, _, type_ in values),
    )


@dataclass(frozen=True)
class Grouped:
    """`key` are the names that the key's columns have in the result. `key_format` None: equal keys have to meet first."""

    _program: Program
    _node: Node
    _key: tuple[str, ...]
    _key_format: Format | None
    _value: tuple[Column, ...]
    _name: str | None = None
    _window: Window | None = None

    def __repr__(self) -> str:
        return f"<Grouped by {', '.join(self._key)}>"

    def window(self, window: Window) -> Grouped:
        """Groups of a key and a window of time: `window(tumbling(minutes=5))`."""
        if not isinstance(window, Window):
            raise TopologyError(f"window() wants tumbling(…), hopping(…) or session(…), not {window!r}")
        if self._node.kind is TABLE:
            raise TopologyError("rows of a table have no window: group a stream, as table.to_stream() is one")
        return replace(self, _window=window)

    # ---------------------------------------------------------------- aggregates

    def count(self, name: str = "count", *, store: str | None = None) -> Table:
        return self._of_columns([(name, *self._checked(fn("COUNT", 1)))], store)

    def sum(self, column: Any, *, name: str = "sum", store: str | None = None) -> Table:
        return self._one("SUM", column, name, store)

    def min(self, column: Any, *, name: str = "min", store: str | None = None) -> Table:
        return self._one("MIN", column, name, store)

    def max(self, column: Any, *, name: str = "max", store: str | None = None) -> Table:
        return self._one("MAX", column, name, store)

    def avg(self, column: Any, *, name: str = "avg", store: str | None = None) -> Table:
        return self._one("AVG", column, name, store)

    def _one(self, function: str, column: Any, name: str, store: str | None) -> Table:
        return self._of_columns([(name, *self._checked(fn(function, checking.as_column(column))))], store)

    def _checked(self, given: Any) -> tuple[e.Expression, SqlType]:
        """Its type comes with the types of the aggregates in it."""
        expression = given.expression if isinstance(given, Col) else given
        checking.check_names(expression, self._node)
        return expression, t.BOOLEAN

    def aggregate(
        self,
        initial: Callable[[], Any] | None = None,
        add: Callable[..., Any] | None = None,
        /,
        *,
        value: Any = None,
        remove: Callable[..., Any] | None = None,
        merge: Callable[..., Any] | None = None,
        store: str | None = None,
        **named: Any,
    ) -> Table:
        """Of ksqlDB's aggregates: `aggregate(n=fn("COUNT", 1), pages=fn("COLLECT_SET", col("page")))`, or with
        expressions over them. Or
        of functions: `aggregate(initial, add, value=…)`, where `initial()` gives the first state, `add(key, row,
        state)` the next, and
        `value` is its type. Groups of a table want `remove(key, row, state)`, too, and session windows `merge(key,
        state, state)`."""
        if initial is None:
            if value is not None or remove is not None or merge is not None:
                raise TopologyError("value=, remove= and merge= belong to an aggregate of functions")
            if not named:
                raise TopologyError("aggregate() wants name=fn('SUM', col('n')), or initial, add and value=")
            items = []
            for name, each in named.items():
                if not isinstance(each, Col):
                    raise TopologyError(f"{name}= wants an aggregate as fn('SUM', col('n')), not {each!r}")
                items.append((name, *self._checked(each)))
            return self._of_columns(items, store)
        if named:
            raise TopologyError("columns and functions cannot be mixed in one aggregate()")
        if add is None or value is None:
            raise TopologyError(
                "aggregate(initial, add, value=…) wants a function that adds, and the type of its result"
            )
        return self._of_functions(initial, add, remove, merge, columns_of(value, is_key=False), store)

    def reduce(
        self,
        function: Callable[[Any, Any], Any],
        *,
        remove: Callable[[Any, Any], Any] | None = None,
        store: str | None = None,
    ) -> Table:
        """`function(result so far, value)` gives a value of the same columns; the first value is the first result.
        Groups of a table
        want `remove(result so far, old value)`, too."""
        callables.check_callable(function, "reduce()")
        value = self._value
        reducing = callables.OnlyValue(callables.Reducing(function), value)
        removing = None if remove is None else callables.OnlyValue(callables.Reducing(remove), value)
        names = {column.name for column in value}
        key = tuple(f"{each}_key" if each in names else each for each in self._key)
        return replace(self, _key=key)._made_of(
            PythonAggregate(
                callables.NOTHING,
                callables.Adding(reducing, self._node.schema, value, self._hidden_names()),
                None
                if removing is None
                else callables.Adding(removing, self._node.schema, value, self._hidden_names()),
                callables.Merging(callables.MergingRows(function), self._node.schema, value),
            ),
            callables.name_of(function),
            value,
            store,
            needs_remove="reduce(f, remove=g)",
        )

    def _hidden_names(self) -> frozenset[str]:
        """Of key columns that stand in the row under their own names besides."""
        key = (column.name for column in self._node.schema.key)
        return frozenset(mine for mine, shown in zip(key, self._key, strict=True) if mine != shown)

    def _of_functions(
        self,
        initial: Callable[[], Any],
        add: Callable[..., Any],
        remove: Callable[..., Any] | None,
        merge: Callable[..., Any] | None,
        value: tuple[Column, ...],
        store: str | None,
    ) -> Table:
        for each in (initial, add, remove, merge):
            if each is not None:
                callables.check_callable(each, "aggregate()")
        schema, hidden = self._node.schema, self._hidden_names()
        program = PythonAggregate(
            callables.Starting(initial, value),
            callables.Adding(add, schema, value, hidden),
            None if remove is None else callables.Adding(remove, schema, value, hidden),
            None if merge is None else callables.Merging(merge, schema, value),
        )
        return self._made_of(
            program,
            callables.name_of(add),
            value,
            store,
            needs_remove="aggregate(initial, add, remove=g, value=…)",
            needs_merge="aggregate(initial, add, merge=g, value=…)",
        )

    def _made_of(
        self,
        program: PythonAggregate,
        function: str,
        value: tuple[Column, ...],
        store: str | None,
        *,
        needs_remove: str,
        needs_merge: str = "",
    ) -> Table:
        if self._node.kind is TABLE and program.remove is None:
            raise TopologyError(
                f"a row of a table may change, so what it added must be taken back: {needs_remove}"
            )
        is_session = self._window is not None and self._window.kind is WindowKind.SESSION
        if is_session and program.merge is None:
            raise TopologyError(f"two sessions may become one, so their states must be merged: {needs_merge}")
        struct = t.struct(*value)
        items = [(each.name, e.FieldOf(e.ColumnRef(WHOLE), each.name), each.type) for each in value]
        calls = {WHOLE: AggregateCall(function, (), (), struct, program)}
        return self._built(calls, list(items), store, note=function)

    # ---------------------------------------------------------------- nodes

    def _resolved(self, call: e.Call) -> aggregates.ResolvedAggregate:
        types = checking.column_types(self._node)
        try:
            found = aggregates.resolve(call, lambda each: _nullable_type(each, types))
        except TypeRefused as refused:
            raise TopologyError(f"{call}: {one_line(refused)}") from None
        if self._node.kind is TABLE and not found.has_undo:
            raise TopologyError(
                f"{call} cannot take a row back, and rows of a table change: group a stream, or give an aggregate with remove="
            )
        return found

    def _of_columns(self, items: Items, store: str | None) -> Table:
        calls: dict[str, AggregateCall] = {}
        found: Items = []
        for name, expression, _ in items:
            replaced = self._extracted(name, expression, calls)
            found.append((name, replaced, t.BOOLEAN))
        if not calls:
            raise TopologyError("aggregate() wants an aggregate as fn('SUM', col('n')) in its columns")
        return self._built(calls, found, store, note=None)

    def _extracted(
        self, name: str, expression: e.Expression, calls: dict[str, AggregateCall]
    ) -> e.Expression:
        """The expression over the results of its aggregates, which are put into `calls`."""
        if isinstance(expression, e.Call) and aggregates.is_aggregate(expression.name):
            resolved = self._resolved(expression)
            call = AggregateCall(resolved.name, resolved.arguments, resolved.parameters, resolved.type)
            own = name if name not in calls else f"{name}_{len(calls)}"
            calls[own] = call
            return e.ColumnRef(own)
        if isinstance(expression, e.ColumnRef):
            raise TopologyError(
                f"{expression} has many values in a group: say which, as fn('LATEST_BY_OFFSET', col('{expression}'))"
            )
        changed = {
            each.name: self._part(name, getattr(expression, each.name), calls)
            for each in fields(expression)
            if each.name != "place"
        }
        return replace(expression, **changed)

    def _part(self, name: str, part: Any, calls: dict[str, AggregateCall]) -> Any:
        if isinstance(part, tuple):
            return tuple(self._part(name, each, calls) for each in part)
        return self._extracted(name, part, calls) if isinstance(part, e.Expression) else part

    def _built(
        self, calls: dict[str, AggregateCall], items: Items, store: str | None, *, note: str | None
    ) -> Table:
        from penstock.streams.library.table import Table

        program = self._program
        ready, key_format = self._ready()
        name = program.named(store, f"{_word(ready)}-AGGREGATE-STATE-STORE")
        key = tuple(
            Column(each, column.type) for each, column in zip(self._key, ready.schema.key, strict=True)
        )
        made = nodes.Aggregate(
            name=name,
            schema=schema_of(key, tuple(Column(each, call.type) for each, call in calls.items())),
            kind=TABLE,
            window=self._window,
            input=ready,
            calls=tuple(calls.values()),
        )
        if note is not None:
            program.notes[name] = note
        table = Table(program, program.add(made), key_format)
        if [(each, expression) for each, expression, _ in items] != [
            (each, e.ColumnRef(each)) for each in calls
        ]:
            types = checking.column_types(made)
            table = table._projected(
                [(each, expression, checking.typed(expression, types)) for each, expression, _ in items],
                "aggregate()",
            )
        if store is not None:
            program.keep(store, table._node, key_format)
        return table

    def _ready(self) -> tuple[Node, Format]:
        """What equal keys of meet in one partition."""
        if self._key_format is not None:
            return self._node, self._key_format
        program = self._program
        formats = program.internal_formats(self._node.schema)
        return program.repartitioned(self._node, formats, self._name), formats.key

    def cogroup(self, add: Callable[..., Any]) -> Cogrouped:
        """Groups of several streams with one state: `first.cogroup(f).cogroup(second, g).aggregate(initial, value=…)`."""
        from penstock.streams.library.cogrouped import Cogrouped

        return Cogrouped(()).cogroup(self, add)


def _word(node: Node) -> str:
    return "KTABLE" if node.kind is TABLE else "KSTREAM"


def _nullable_type(expression: e.Expression, types: Any) -> SqlType | None:
    from penstock.streams.functions.typing import type_of

    return type_of(expression, types)
