"""A stream: each row for itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from penstock.streams.functions import tables
from penstock.streams.functions.refusals import TypeRefused
from penstock.streams.library import callables, checking, joins
from penstock.streams.library.columns import Col, expression_of
from penstock.streams.library.failures import TopologyError, one_line, unknown
from penstock.streams.library.flows import Flow, first_true
from penstock.streams.library.processors import Making
from penstock.streams.library.program import columns_of, schema_of
from penstock.streams.plan import expressions as e
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import STREAM, TABLE, JoinKind, Node
from penstock.streams.plan.schema import Column
from penstock.streams.plan.sources import Format, Source

if TYPE_CHECKING:
    from penstock.streams.library.grouped import Grouped
    from penstock.streams.library.table import GlobalTable, Table


class Stream(Flow):
    _word = "KSTREAM"

    # ---------------------------------------------------------------- rows

    def map(self, function: Callable[..., Any] | None = None, /, *, key: Any, value: Any) -> Stream:
        """A new key and value. Of a function they are given as a pair, and `key` and `value` are their types:
        `map(lambda row: (row["user"], {"n": 1}), key=str, value={"n": int})`. Without one, `key` and `value` are columns by
        their names: `map(key={"user": col("user")}, value={"n": col("n") + 1})`."""
        if function is None:
            if not isinstance(key, dict) or not isinstance(value, dict):
                raise TopologyError(
                    "map() without a function wants key={name: column} and value={name: column}"
                )
            keys = checking.named((), key, self._node)
            values = checking.named((), value, self._node)
            return self._keyed(keys, values, None)
        return self._stepped(
            callables.NewRow, function, columns_of(key, is_key=True), columns_of(value, is_key=False), "MAP"
        )

    def flat_map(self, function: Callable[..., Any], /, *, key: Any, value: Any) -> Stream:
        """Any number of pairs of key and value, as a list or by yield."""
        return self._stepped(
            callables.NewRows,
            function,
            columns_of(key, is_key=True),
            columns_of(value, is_key=False),
            "FLATMAP",
        )

    def flat_map_values(self, function: Callable[..., Any], /, *, value: Any) -> Stream:
        """Any number of values, as a list or by yield. The key stays."""
        return self._stepped(
            callables.NewValues, function, None, columns_of(value, is_key=False), "FLATMAPVALUES"
        )

    def explode(self, column: Any, *, name: str | None = None) -> Stream:
        """A row for each element of an array, in the array's place or in a new column `name`."""
        node = self._node
        given = checking.as_column(column)
        expression = given.expression if isinstance(given, Col) else expression_of(given)
        checking.check_names(expression, node)
        own = expression.name if isinstance(expression, e.ColumnRef) else None
        if not (isinstance(expression, e.Call) and tables.is_table_function(expression.name)):
            expression = e.Call("EXPLODE", (expression,))
        assert isinstance(expression, e.Call)
        called = name or own
        if called is None:
            raise TopologyError(f"{expression} needs a name: explode(…, name='item')")
        types = checking.column_types(node)
        try:
            type_ = tables.resolve(expression, lambda each: checking.typed(each, types)).type
        except TypeRefused as refused:
            raise TopologyError(f"{expression}: {one_line(refused)}") from None
        items: dict[str, tuple[e.Expression, Any]] = {
            each.name: (e.ColumnRef(each.name), each.type) for each in node.schema.value
        }
        items[called] = (expression, type_)
        value = tuple(Column(each, kind) for each, (_, kind) in items.items())
        made = nodes.Explode(
            name=self._name("FLATMAPVALUES"),
            schema=schema_of(node.schema.key, value),
            kind=STREAM,
            window=node.window,
            input=node,
            items=tuple(each for each, _ in items.values()),
            exploded=(list(items).index(called),),
        )
        return self._after(made)

    def select_key(self, *columns: Any, key: Any = None, **named: Any) -> Stream:
        """Another key; the value stays, and the old key goes. `select_key("page")` calls the key column `page_key`,
        because the value
        has `page` still; `select_key(id=col("page"))` calls it `id`. A function needs its `key`'s type: `select_key(f,
        key=str)`."""
        node = self._node
        if len(columns) == 1 and callable(columns[0]) and not isinstance(columns[0], Col):
            if key is None or named:
                raise TopologyError(
                    "select_key() with a function wants the type of the key: key=str, or key={'id': str}"
                )
            wanted = columns_of(key, is_key=True)
            if len(wanted) != 1:
                raise TopologyError(
                    "a function gives a key of one column; for several give columns, or use map()"
                )
            called = callables.call(columns[0], node.schema, wanted[0].type, "select_key()")
            return self._keyed([(wanted[0].name, called, wanted[0].type)], self._all_values(), None)
        if key is not None:
            raise TopologyError("select_key() wants key= only beside a function")
        items = checking.named(columns, named, node)
        if not items:
            raise TopologyError("select_key() wants a column")
        taken = {column.name for column in node.schema.value}
        positional = len(columns)
        keys = [
            (f"{name}_key" if at < positional and name in taken else name, expression, type_)
            for at, (name, expression, type_) in enumerate(items)
        ]
        return self._keyed(keys, self._all_values(), None)

    def _all_values(self) -> list[tuple[str, e.Expression, Any]]:
        return [(each.name, e.ColumnRef(each.name), each.type) for each in self._node.schema.value]

    def _keyed(
        self,
        keys: Sequence[tuple[str, e.Expression, Any]],
        values: Sequence[tuple[str, e.Expression, Any]],
        given_name: str | None,
    ) -> Stream:
        node = self._node
        made: Node = nodes.SelectKey(
            name=self._name("KEY-SELECT", given_name),
            schema=schema_of(
                tuple(Column(name, type_) for name, _, type_ in keys),
                tuple(Column(name, type_) for name, _, type_ in values),
            ),
            kind=STREAM,
            input=node,
            keys=tuple(each for _, each, _ in keys),
            items=tuple(each for _, each, _ in values),
        )
        self._note(made.name, tuple(each for _, each, _ in (*keys, *values)))
        self._program.add(made)
        if node.window is not None:  # the new key has none
            made = self._program.add(
                nodes.PythonStep(
                    name=self._name("MAP"),
                    schema=made.schema,
                    kind=STREAM,
                    input=made,
                    function=callables.Same(_identity, made.schema, made.schema),
                    gives="rows",
                    changes_key=True,
                )
            )
        return Stream(self._program, made, None)

    def _mapped_by(self, function: Callable[..., Any], value: tuple[Column, ...]) -> Self:
        made = self._stepped(callables.NewValue, function, None, value, "MAPVALUES")
        return type(self)(made._program, made._node, made._key_format)

    def _stepped(
        self,
        step: type[callables.Step],
        function: Callable[..., Any],
        key: tuple[Column, ...] | None,
        value: tuple[Column, ...],
        word: str,
    ) -> Stream:
        callables.check_callable(function, f"{word.lower()}()")
        node = self._node
        schema = schema_of(node.schema.key if key is None else key, value)
        name = self._name(word)
        self._program.notes[name] = callables.name_of(function)
        made = nodes.PythonStep(
            name=name,
            schema=schema,
            kind=STREAM,
            window=node.window if key is None else None,
            input=node,
            function=step(function, node.schema, schema),
            gives="rows",
            changes_key=key is not None,
            takes_null=False,
        )
        self._program.add(made)
        return Stream(self._program, made, self._key_format if key is None else None)

    def branch(self, *predicates: Any) -> tuple[Stream, ...]:
        """One stream for each predicate, of the rows for which it is the first that is true, and one more for the others."""
        if not predicates:
            raise TopologyError("branch() wants a condition")
        node = self._node
        checked = tuple(checking.condition(each, node, "branch()") for each in predicates)
        parts = [first_true(checked[:at], each) for at, each in enumerate(checked)]
        parts.append(first_true(checked, expression_of(True)))
        return tuple(self._filtered(each, "BRANCH") for each in parts)

    def merge(self, *others: Stream) -> Stream:
        """The rows of all as one stream. They have the same columns."""
        flows = (self, *others)
        for each in others:
            if not isinstance(each, Stream):
                raise TopologyError(f"merge() wants streams, not {each!r}")
            joins.check_same_program(self, each, "merge()")
            if each._node.schema != self._node.schema or each._node.window != self._node.window:
                raise TopologyError(
                    f"merge() wants streams of the same columns: {self._node.schema}, and {each._node.schema}"
                )
        made = nodes.Merge(
            name=self._name("MERGE"),
            schema=self._node.schema,
            kind=STREAM,
            window=self._node.window,
            inputs=tuple(each._node for each in flows),
        )
        same = all(each._key_format == self._key_format for each in others)
        return Stream(self._program, self._program.add(made), self._key_format if same else None)

    def peek(self, function: Callable[..., Any]) -> Stream:
        """Calls the function for each row, which goes on as it is."""
        return self._after(self._looking(function, "PEEK"))

    def foreach(self, function: Callable[..., Any]) -> None:
        """Calls the function for each row. After a failure rows may come again, also with exactly once."""
        self._program.add(self._looking(function, "FOREACH"))

    def _looking(self, function: Callable[..., Any], word: str) -> nodes.PythonStep:
        callables.check_callable(function, f"{word.lower()}()")
        node, name = self._node, self._name(word)
        self._program.notes[name] = callables.name_of(function)
        return nodes.PythonStep(
            name=name,
            schema=node.schema,
            kind=STREAM,
            window=node.window,
            input=node,
            function=callables.Looking(function, node.schema, node.schema),
            gives="nothing",
        )

    def process(
        self,
        make: Callable[[], Any],
        *,
        key: Any = None,
        value: Any,
        stores: Sequence[str] = (),
        name: str | None = None,
    ) -> Stream:
        """A processor of one's own: `make()` gives an object for each partition, with `process(row, context)` and, if it likes,
        `init(context)`. `key` (without it, the same) and `value` are the types of what it forwards."""
        callables.check_callable(make, "process()")
        node = self._node
        if isinstance(stores, str) or len(set(stores)) != len(stores):
            raise TopologyError(f"stores is a list of names, each once, not {stores!r}")
        keys = node.schema.key if key is None else columns_of(key, is_key=True)
        schema = schema_of(keys, columns_of(value, is_key=False))
        called = self._name("PROCESSOR", name)
        self._program.notes[called] = callables.name_of(make)
        made = nodes.PythonProcessor(
            name=called,
            schema=schema,
            kind=STREAM,
            input=node,
            make=Making(make, node.schema, schema),
            stores=tuple(stores),
        )
        return Stream(self._program, self._program.add(made), None)

    # ---------------------------------------------------------------- topics

    def through(
        self, topic: str, *, key_format: str | Format | None = None, value_format: str | Format | None = None
    ) -> Stream:
        """Into a topic, and on with what is in it."""
        self.to(topic, key_format=key_format, value_format=value_format)
        sink = self._program.sinks[topic]
        source = Source(topic, STREAM, topic, sink.schema, sink.formats, window=sink.window)
        self._program.sources.setdefault(topic, []).append(source)
        read = nodes.Read(
            name=self._name("SOURCE"), schema=sink.schema, kind=STREAM, window=sink.window, source=source
        )
        return Stream(self._program, self._program.add(read), sink.formats.key)

    def repartition(self, *, name: str | None = None, key_format: str | Format | None = None) -> Stream:
        """Through a topic of the program's own, so that equal keys meet. Grouping and joining do it where it must be."""
        node, program = self._node, self._program
        self._need_key("repartition()")
        given = None if key_format is None else program.format(key_format, program.key_format)
        formats = program.internal_formats(node.schema, given)
        return Stream(program, program.repartitioned(node, formats, name), formats.key)

    def to_table(self, *, store: str | None = None) -> Table:
        """The newest row of each key."""
        from penstock.streams.library.table import Table

        self._need_key("to_table()")
        flow = self if self._key_format is not None else self.repartition()
        name = self._program.named(store, "KSTREAM-TOTABLE-STATE-STORE")
        made = nodes.ToTable(
            name=name, schema=flow._node.schema, kind=TABLE, window=flow._node.window, input=flow._node
        )
        self._program.add(made)
        if store is not None:
            self._program.keep(store, made, flow._key_format or self._program.key_format)
        return Table(self._program, made, flow._key_format)

    def _need_key(self, what: str) -> None:
        if not self._node.schema.key:
            raise TopologyError(
                f"{what} wants rows with a key: declare the topic's key, or select_key() first"
            )

    # ---------------------------------------------------------------- groups and joins

    def group_by(self, *columns: Any, name: str | None = None, **named: Any) -> Grouped:
        """Rows of the same values together: `group_by("page")`, `group_by(first=fn("LEFT", col("page"), 1))`. By a
        function: `select_key(f, key=str).group_by_key()`. `name` is in the name of the repartition topic."""
        from penstock.streams.library.grouped import group_stream

        return group_stream(self, columns, named, name)

    def group_by_key(self, *, name: str | None = None) -> Grouped:
        from penstock.streams.library.grouped import Grouped

        self._need_key("group_by_key()")
        key = tuple(each.name for each in self._node.schema.key)
        return Grouped(self._program, self._node, key, self._key_format, self._node.schema.value, name)

    def join(self, other: Stream | Table | GlobalTable, **options: Any) -> Stream:
        """With a stream, whose rows are `within=` of one another in time; with a table, as it is when the row comes;
        with a global
        table, `on=` the columns that are its key. The value has the columns of both; those of the other side whose names are
        taken get `suffix`."""
        return self._joined(other, JoinKind.INNER, options)

    def left_join(self, other: Stream | Table | GlobalTable, **options: Any) -> Stream:
        """Rows without a partner go on, too, with NULL in its columns."""
        return self._joined(other, JoinKind.LEFT, options)

    def outer_join(self, other: Stream, **options: Any) -> Stream:
        """Of two streams: rows of both sides without a partner go on, too."""
        return self._joined(other, JoinKind.FULL, options)

    def _joined(self, other: Any, kind: JoinKind, options: dict[str, Any]) -> Stream:
        from penstock.streams.library.table import GlobalTable, Table

        if kind is JoinKind.FULL and not isinstance(other, Stream):
            raise TopologyError(
                f"outer_join() of a stream is with a stream, not with {other!r}: a table has left_join()"
            )
        if isinstance(other, Stream):
            return joins.streams(self, other, kind, **_allowed(options, joins.OF_STREAMS))
        if isinstance(other, GlobalTable):
            return joins.with_global(self, other, kind, **_allowed(options, joins.OF_GLOBAL))
        if isinstance(other, Table):
            return joins.with_table(self, other, kind, **_allowed(options, joins.OF_TABLE))
        raise TopologyError(f"a stream is joined with a stream or a table, not with {other!r}")


def _allowed(options: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    for name in options:
        if name not in names:
            raise unknown("option of this join", name, names)
    return options


def _identity(row: Any) -> Any:
    return row
