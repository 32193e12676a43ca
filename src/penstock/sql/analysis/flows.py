"""What a plan has so far: a node, and where the columns are that the statement can name.

The statement's columns have logical names (`X`, or `A_X` in a join). A logical column is an expression over the node's
schema: itself, a key, ROWTIME of the row, or a carried copy of a ROWTIME from before a join. `physical` writes an expression of
logical names as one over the node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from penstock.sql.analysis.names import joined_name
from penstock.sql.analysis.scopes import Aliased
from penstock.sql.analysis.trees import columns_of, rewritten
from penstock.streams.plan.expressions import ColumnRef, Expression
from penstock.streams.plan.nodes import Node, Project, Read, RegroupTable, Repartition, SelectKey
from penstock.streams.plan.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS, Column, Schema
from penstock.streams.plan.sources import Format, Formats, SourceKind, Window
from penstock.streams.plan.types import SqlType

INTERNAL_VALUES = Format("JSON")
"""Of topics between two parts of a query. JSON can hold all types, whatever the sources' format."""


@dataclass(frozen=True, slots=True)
class Known:
    """A logical column: its type, and where it is."""

    type: SqlType
    at: Expression


@dataclass(frozen=True, slots=True)
class Flow:
    node: Node
    columns: Mapping[str, Known]
    keys: tuple[str, ...]  # logical names, in the order of the node's key
    key_format: Format
    ordered: tuple[str, ...] = field(default=())  # of `*`, where that is not the sources' order

    @property
    def kind(self) -> SourceKind:
        return self.node.kind

    def type_of(self, name: str) -> SqlType | None:
        found = self.columns.get(name)
        return found.type if found else None

    def physical(self, expression: Expression) -> Expression:
        def one(part: Expression) -> Expression | None:
            if not isinstance(part, ColumnRef):
                return None
            at = self.columns[part.name].at
            return replace(at, place=part.place)

        return rewritten(expression, one)

    def on(self, node: Node) -> Flow:
        """The same columns in the same places."""
        return replace(self, node=node)

    def is_keyed_by(self, expressions: Iterable[Expression]) -> bool:
        """Whether rows have this key already: one column, and the same."""
        names = [each.name if isinstance(each, ColumnRef) else None for each in expressions]
        return len(self.keys) == 1 and names == list(self.keys)


def read(source: Aliased, name: str) -> Flow:
    schema = source.source.schema
    node = Read(
        name=name,
        schema=schema,
        kind=source.source.kind,
        window=source.source.window,
        source=source.source,
    )
    columns = {each.name: Known(each.type, ColumnRef(each.name)) for each in (*schema.key, *schema.value)}
    hidden = {**PSEUDO_COLUMNS, **(WINDOW_BOUNDS if source.source.window is not None else {})}
    for hidden_name, type_ in hidden.items():
        columns.setdefault(hidden_name, Known(type_, ColumnRef(hidden_name)))
    return Flow(node, columns, tuple(each.name for each in schema.key), source.source.formats.key)


def carried(
    flow: Flow, needed: Iterable[str], *, without: Iterable[str] = ()
) -> dict[str, tuple[Column, Known]]:
    """The columns that a step has to take along: logical name → column of the new schema, and where it was."""
    dropped = set(without)
    found = {}
    for name in needed:
        known = flow.columns.get(name)
        if known is not None and name not in dropped:
            stored = f"KSQL_{name}" if name in PSEUDO_COLUMNS or name in WINDOW_BOUNDS else name
            found[name] = (Column(stored, known.type), known)
    return found


Keys = Mapping[str, tuple[SqlType, Expression]]
"""Logical name of each key column → its type and logical expression."""


def rekeyed(flow: Flow, name: str, keys: Keys, needed: Iterable[str]) -> Flow:
    """A stream under another key."""
    taken = carried(flow, needed, without=keys)
    node = SelectKey(
        name=name,
        schema=_schema(keys, taken),
        kind=SourceKind.STREAM,
        input=flow.node,
        keys=tuple(flow.physical(expression) for _, expression in keys.values()),
        items=tuple(known.at for _, known in taken.values()),
    )
    return Flow(node, _places(keys, taken), tuple(keys), flow.key_format)


def regrouped(flow: Flow, name: str, keys: Keys, needed: Iterable[str]) -> Flow:
    """A table's changes under the key of a grouping."""
    taken = carried(flow, needed, without=keys)
    node = RegroupTable(
        name=name,
        schema=_schema(keys, taken),
        kind=SourceKind.TABLE,
        input=flow.node,
        keys=tuple(flow.physical(expression) for _, expression in keys.values()),
        items=tuple(known.at for _, known in taken.values()),
    )
    return Flow(node, _places(keys, taken), tuple(keys), flow.key_format)


def _schema(keys: Keys, taken: Mapping[str, tuple[Column, Known]]) -> Schema:
    return Schema(
        key=tuple(Column(key, type_) for key, (type_, _) in keys.items()),
        value=tuple(column for column, _ in taken.values()),
    )


def _places(keys: Keys, taken: Mapping[str, tuple[Column, Known]]) -> dict[str, Known]:
    return {
        **{name: Known(column.type, ColumnRef(column.name)) for name, (column, _) in taken.items()},
        **{name: Known(type_, ColumnRef(name)) for name, (type_, _) in keys.items()},
    }


def prefixed(flow: Flow, alias: str) -> Flow:
    """The same rows, whose columns have the names that they have in a join."""
    columns = {joined_name(alias, name): known for name, known in flow.columns.items()}
    return replace(flow, columns=columns, keys=tuple(joined_name(alias, name) for name in flow.keys))


def narrowed(
    flow: Flow, name: str, needed: Iterable[str], key: tuple[str, ...], *, keep: bool = True
) -> Flow:
    """Only the columns that are needed; the key columns get the names `key`. `keep` False: columns of these names are no copies
    of the key, and go."""
    taken = carried(flow, needed, without=key if keep else ())
    types = [column.type for column in flow.node.schema.key]
    node = Project(
        name=name,
        schema=Schema(
            key=tuple(Column(each, type_) for each, type_ in zip(key, types, strict=True)),
            value=tuple(column for column, _ in taken.values()),
        ),
        kind=flow.kind,
        window=flow.node.window,
        input=flow.node,
        items=tuple(known.at for _, known in taken.values()),
    )
    places = {each: (type_, ColumnRef(each)) for each, type_ in zip(key, types, strict=True)}
    return Flow(node, _places(places, taken), key, flow.key_format)


def repartitioned(flow: Flow, name: str, key_format: Format, window: Window | None = None) -> Flow:
    """`window`: that of the keys behind the topic, where it is not the one before."""
    node = Repartition(
        name=name,
        schema=flow.node.schema,
        kind=flow.kind,
        window=window or flow.node.window,
        input=flow.node,
        formats=Formats(key_format, INTERNAL_VALUES),
    )
    return replace(flow, node=node, key_format=key_format)


def named_in(expressions: Iterable[Expression]) -> list[str]:
    """Names of columns, each once, in the order of the text."""
    return list(dict.fromkeys(column.name for each in expressions for column in columns_of(each)))
