"""What streams and tables have in common: a node of the program, and the steps that both can take."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from penstock.streams.library import callables, checking
from penstock.streams.library.columns import expression_of
from penstock.streams.library.failures import TopologyError, unknown
from penstock.streams.library.program import Program, columns_of, schema_of, timestamp_of
from penstock.streams.plan import expressions as e
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import TABLE, Node
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Format

if TYPE_CHECKING:
    from penstock.streams.plan.types import SqlType


class Flow:
    """Never changes: each step gives a new one. `key_format` is that of the topic whose partitions its rows lie in, and None when
    their key has changed since: then they go through a topic of the program's own before they are grouped or joined."""

    _word = "KSTREAM"

    def __init__(self, program: Program, node: Node, key_format: Format | None) -> None:
        self._program, self._node, self._key_format = program, node, key_format

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._node.schema}>"

    @property
    def columns(self) -> dict[str, SqlType]:
        """Names and types, the key's first."""
        return {column.name: column.type for column in (*self._node.schema.key, *self._node.schema.value)}

    @property
    def key_columns(self) -> tuple[str, ...]:
        return tuple(column.name for column in self._node.schema.key)

    def _after(self, node: Node) -> Self:
        return type(self)(self._program, self._program.add(node), self._key_format)

    def _name(self, word: str, given: str | None = None) -> str:
        return self._program.named(given, f"{self._word}-{word}")

    # ---------------------------------------------------------------- rows

    def filter(self, predicate: Any) -> Self:
        """Rows for which it is true: `filter(col("n") > 1)`, or `filter(lambda row: row["n"] > 1)`."""
        return self._filtered(checking.condition(predicate, self._node, "filter()"), "FILTER")

    def filter_not(self, predicate: Any) -> Self:
        """Rows for which it is not true, those where it is NULL among them."""
        holds = checking.condition(predicate, self._node, "filter_not()")
        return self._filtered(not_true(holds), "FILTER")

    def _filtered(self, predicate: e.Expression, word: str) -> Self:
        node = self._node
        made = nodes.Filter(
            name=self._name(word),
            schema=node.schema,
            kind=node.kind,
            window=node.window,
            input=node,
            predicate=predicate,
        )
        self._note(made.name, predicate)
        return self._after(made)

    def select(self, *columns: Any, **named: Any) -> Self:
        """A value of these columns: `select("page", ms=col("seconds") * 1000)`. The key stays."""
        return self._projected(checking.named(columns, named, self._node), "select()")

    def with_columns(self, **named: Any) -> Self:
        """The value with more columns, or with others in the place of those of the same name."""
        if not named:
            raise TopologyError("with_columns() wants name=expression")
        new = {name: (expression, type_) for name, expression, type_ in checking.named((), named, self._node)}
        items: list[tuple[str, e.Expression, SqlType]] = []
        for column in self._node.schema.value:
            expression, type_ = new.pop(column.name, (e.ColumnRef(column.name), column.type))
            items.append((column.name, expression, type_))
        items += [(name, *each) for name, each in new.items()]
        return self._projected(items, "with_columns()")

    def without(self, *names: str) -> Self:
        """The value without these columns."""
        known = [column.name for column in self._node.schema.value]
        for name in names:
            if name not in known:
                raise unknown("column of the value", name, known)
        kept = [each for each in self._node.schema.value if each.name not in names]
        return self._projected([(each.name, e.ColumnRef(each.name), each.type) for each in kept], "without()")

    def map_values(
        self, function: Callable[..., Any] | None = None, /, *, value: Any = None, **named: Any
    ) -> Self:
        """A new value: of columns, as `select` does, or of a function of the row and the `value` that it gives:
        `map_values(lambda row: {"size": len(row["text"])}, value={"size": int})`."""
        if function is None:
            if value is not None:
                named["value"] = value
            return self._projected(checking.named((), named, self._node), "map_values()")
        if named or value is None:
            raise TopologyError(
                f"map_values({callables.name_of(function)}, value=…) wants the type of what the function gives"
            )
        callables.check_callable(function, "map_values()")
        return self._mapped_by(function, columns_of(value, is_key=False))

    def _mapped_by(self, function: Callable[..., Any], value: tuple[Column, ...]) -> Self:
        raise NotImplementedError

    def _projected(self, items: list[tuple[str, e.Expression, SqlType]], what: str) -> Self:
        node = self._node
        if not items:
            raise TopologyError(f"{what} wants a column")
        schema = schema_of(node.schema.key, tuple(Column(name, type_) for name, _, type_ in items))
        made = nodes.Project(
            name=self._name("MAPVALUES"),
            schema=schema,
            kind=node.kind,
            window=node.window,
            input=node,
            items=tuple(expression for _, expression, _ in items),
        )
        self._note(made.name, made.items)
        return self._after(made)

    def _note(self, name: str, part: Any) -> None:
        """Where a function of the program stands."""
        found = callables.functions_in(part)
        if found:
            self._program.notes[name] = ", ".join(dict.fromkeys(found))

    # ---------------------------------------------------------------- out

    def to(
        self,
        topic: str,
        *,
        key_format: str | Format | None = None,
        value_format: str | Format | None = None,
        timestamp: Any = None,
    ) -> None:
        """Into a topic. `timestamp`: the column that is the time of its records; without it, that of the row."""
        node, program = self._node, self._program
        if not isinstance(topic, str) or not topic:
            raise TopologyError(f"to() wants the name of a topic, not {topic!r}")
        formats = program.formats(node.schema, key_format, value_format)
        before = program.sinks.get(topic)
        if before is not None and (before.schema, before.formats, before.window) != (
            node.schema, formats, node.window,
        ):  # fmt: skip
            raise TopologyError(
                f"the topic {topic} is written already, with other columns or formats: {before.schema}, not {node.schema}"
            )
        sink = nodes.Write(
            name=self._name("SINK"),
            schema=node.schema,
            kind=node.kind,
            window=node.window,
            input=node,
            topic=topic,
            formats=formats,
            timestamp=timestamp_of(timestamp, node.schema),
        )
        program.sinks[topic] = program.add(sink)


def not_true(predicate: e.Expression) -> e.Expression:
    return first_true((predicate,), expression_of(True))


def first_true(before: tuple[e.Expression, ...], then: e.Expression) -> e.Expression:
    """`then`, where none of those before is true."""
    if not before:
        return then
    return e.Case(None, tuple((each, expression_of(False)) for each in before), then)


def key_schema(schema: Schema, key: tuple[Column, ...]) -> Schema:
    return schema_of(key, schema.value)


__all__ = ["TABLE", "Flow", "first_true", "key_schema", "not_true"]
