"""The steps of a plan, from sources to a sink.

A node gives rows of its `schema`, as a stream (each row for itself) or as a table (the newest row of a key counts; a
change knows
the old row). Expressions of a node name the columns of its input's schema, ROWTIME, ROWPARTITION, ROWOFFSET, and,
behind a window,
WINDOWSTART and WINDOWEND. Names of columns are unique within a schema.

    Read → Filter → Project → SelectKey → Aggregate → Filter (HAVING) → Project → Write

`Repartition` is the only node that goes through a topic of its own: what is before it and what is behind it run in different
tasks. Analysis puts it before an `Aggregate` or `Join` whose input does not have the wanted key as its key already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from penstock.streams.plan.expressions import Expression
from penstock.streams.plan.schema import Schema
from penstock.streams.plan.sources import Formats, Source, SourceKind, Timestamp, Window
from penstock.streams.plan.types import SqlType

STREAM, TABLE = SourceKind.STREAM, SourceKind.TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """`name` is unique in its plan and stays the same when the statement is planned again: stores and topics have it in their
    names, as in `<app>-<name>-changelog`."""

    name: str
    schema: Schema
    kind: SourceKind
    window: Window | None = None  # of the keys of its rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Node):
    """A table that is read with `materialized` keeps its rows in a store, so that changes know the old row."""

    source: Source
    materialized: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(Node):
    """Rows for which it is not TRUE go; of a table, a row that was there before becomes a tombstone. Of a stream, NULL
    values go."""

    input: Node
    predicate: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Project(Node):
    """`items` has one expression for each value column of `schema`. The key stays, under the names of `schema.key`. An
    expression
    that fails gives NULL. A NULL value of a stream, and a tombstone, pass."""

    input: Node
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explode(Node):
    """Table functions: `items` are those of `Project`, where those at the places `exploded` give a list each. A row
    for each element;
    shorter lists are padded with NULL; no row when all are empty."""

    input: Node
    items: tuple[Expression, ...]
    exploded: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectKey(Node):
    """A stream with another key: `keys` has one expression for each key column of `schema`. `schema.value` are the
    input's columns as
    analysis wants them kept: `items` gives them. A failed or NULL single key is a NULL key. Of a row whose value is
    NULL the key is NULL,
    unless it is made from key columns alone."""

    input: Node
    keys: tuple[Expression, ...]
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repartition(Node):
    """Rows go through a topic so that equal keys meet in one partition. Of a table, changes go with their old row."""

    input: Node
    formats: Formats


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """`arguments` are computed from the input's row; `parameters` are constants such as the n of TOPK. A user's
    aggregate (Python
    library) has `program`: initial value and functions."""

    function: str
    arguments: tuple[Expression, ...]
    parameters: tuple[Any, ...]
    type: SqlType
    program: PythonAggregate | None = None


@dataclass(frozen=True, slots=True)
class PythonAggregate:
    initial: Callable[[], Any]
    add: Callable[..., Any]  # (key, row as dict, state) → state
    remove: Callable[..., Any] | None = None
    merge: Callable[..., Any] | None = None  # of session windows: (key, state, state) → state


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(Node):
    """Rows of one key (the input's key, which analysis has made the grouping's) become one row: `schema.value` is
    `carried` columns
    of the newest row, then one column for each call. A row with a NULL in its key goes, and so does one whose value is NULL.
    `window` is the window of the result. Over a table the old row is taken back first. Each row that comes gives a row."""

    input: Node
    calls: tuple[AggregateCall, ...]
    carried: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegroupTable(Node):
    """A table's changes under the key of a grouping: a change may take the row out of one group and put it into
    another. `keys` and
    `items` as in SelectKey. Only an Aggregate (behind a Repartition) takes it in."""

    input: Node
    keys: tuple[Expression, ...]
    items: tuple[Expression, ...]


class JoinKind(StrEnum):
    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStreamJoin(Node):
    """Both sides have the key of the join. `schema.value` is the left side's value columns, then the right side's; who
    is missing is
    NULL. A row joins those of the other side whose time is within [its time - before, its time + after] (seen from the
    left). Grace None:
    rows padded with NULL go out at once and the match follows; else they go out when the window has closed."""

    left: Node
    right: Node
    join: JoinKind
    before_ms: int
    after_ms: int
    grace_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTableJoin(Node):
    """`join` is INNER or LEFT. Only rows of the left side, the stream, give rows. `is_global`: the table is whole in
    every task, and is
    asked by `left_key`."""

    left: Node
    right: Node
    join: JoinKind
    is_global: bool = False
    left_key: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTableJoin(Node):
    left: Node
    right: Node
    join: JoinKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKeyJoin(Node):
    """Tables: `left_key` names the right side's key from the left side's row. The key is the left side's. INNER or
    LEFT. `formats` are
    those of the two topics through which both sides talk."""

    left: Node
    right: Node
    join: JoinKind
    left_key: Expression
    formats: Formats


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge(Node):
    """Streams of one schema as one."""

    inputs: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppress(Node):
    """Of a windowed aggregate: only the last row of each window, when stream time has passed its end and grace (EMIT FINAL)."""

    input: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class ToStream(Node):
    """A table's changes as rows of a stream."""

    input: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class ToTable(Node):
    """The newest row of each key."""

    input: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonStep(Node):
    """A function of the user's program. `function(row)` gives, by `gives`: "rows" a list of (key values, value
    values); "nothing" (its
    result is not looked at, and the row passes). A row is given as a dict with all columns and ROWTIME. Without
    `takes_null` a row
    whose value is NULL does not go to a function that gives rows: it passes, and goes where the key changes."""

    input: Node
    function: Callable[..., Any]
    gives: str
    changes_key: bool = False
    takes_null: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonProcessor(Node):
    """A program with state stores and timers: `make()` gives the object whose `process(row, context)` is called."""

    input: Node
    make: Callable[[], Any]
    stores: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Write(Node):
    """The sink. `timestamp`: the record's time is this column's."""

    input: Node
    topic: str
    formats: Formats
    timestamp: Timestamp | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliver(Node):
    """Rows go to whoever runs the plan (`deliver` of a task or driver), and to no topic: a push query."""

    input: Node


@dataclass(frozen=True, slots=True)
class Plan:
    """What runs as one: all sinks of a program, or the one sink of a statement."""

    sinks: tuple[Node, ...]
    properties: tuple[tuple[str, str], ...] = ()
    functions: tuple[Any, ...] = ()
    """What it calls beside the built-in functions (`functions.scope.AddedFunction`)."""

    def nodes(self) -> Iterator[Node]:
        """Each once, inputs before those who read them."""
        seen: set[int] = set()
        for sink in self.sinks:
            yield from _walk(sink, seen)


def inputs(node: Node) -> tuple[Node, ...]:
    found: list[Node] = []
    for each in fields(node):
        value = getattr(node, each.name)
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            found += [one for one in value if isinstance(one, Node)]
    return tuple(found)


def _walk(node: Node, seen: set[int]) -> Iterator[Node]:
    if id(node) in seen:
        return
    seen.add(id(node))
    for each in inputs(node):
        yield from _walk(each, seen)
    yield node
