"""Joins: both sides are checked, brought to the same partitions, and their columns put side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from penstock.streams.library import checking
from penstock.streams.library.failures import TopologyError
from penstock.streams.library.flows import Flow
from penstock.streams.library.program import schema_of, window_text
from penstock.streams.library.windows import Duration, duration_ms
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import STREAM, TABLE, JoinKind, Node
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Format

if TYPE_CHECKING:
    from penstock.streams.library.stream import Stream
    from penstock.streams.library.table import GlobalTable, Table

SUFFIX: Final = "_right"
OF_STREAMS: Final = ("within", "before", "after", "grace", "suffix", "name")
OF_TABLE: Final = ("suffix", "name")
OF_GLOBAL: Final = ("on", "suffix", "name")


def check_same_program(left: Flow, right: Flow, what: str) -> None:
    if left._program is not right._program:
        raise TopologyError(
            f"{what} wants two of the same app: {left._program.name} and {right._program.name}"
        )


def joined_schema(left: Schema, right: Schema, suffix: str) -> Schema:
    """The left side's key and columns, then the right side's columns."""
    taken = {column.name for column in (*left.key, *left.value)}
    value = list(left.value)
    for column in right.value:
        name = f"{column.name}{suffix}" if column.name in taken else column.name
        if name in taken:
            raise TopologyError(
                f"both sides have a column '{column.name}', and '{name}' is taken: give another suffix, or rename it "
                f"with select()"
            )
        taken.add(name)
        value.append(Column(name, column.type))
    return schema_of(left.key, tuple(value))


def check_keys(left: Flow, right: Flow) -> None:
    mine, theirs = left._node.schema.key, right._node.schema.key
    if not mine or not theirs:
        side = left if not mine else right
        raise TopologyError(f"a join is by key, and {side!r} has none: select_key() first")
    if [column.type for column in mine] != [column.type for column in theirs]:
        raise TopologyError(f"the keys of both sides differ: {_types(mine)} and {_types(theirs)}")
    if (left._node.window is None) != (right._node.window is None):
        raise TopologyError(
            f"both sides must have windows or neither: {window_text(left._node.window)} and {window_text(right._node.window)}"
        )


def _types(columns: Sequence[Column]) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in columns)


def streams(
    left: Stream,
    right: Stream,
    kind: JoinKind,
    *,
    within: Duration | None = None,
    before: Duration | None = None,
    after: Duration | None = None,
    grace: Duration | None = None,
    suffix: str = SUFFIX,
    name: str | None = None,
) -> Stream:
    """`before` and `after`: how much older and younger the right side's row may be, in the place of `within`."""
    check_same_program(left, right, "join()")
    check_keys(left, right)
    if within is None and (before is None or after is None):
        raise TopologyError(
            "streams are joined in time: join(other, within='5 minutes'), or before= and after="
        )
    if within is not None and (before is not None or after is not None):
        raise TopologyError("within= stands for before= and after= of the same length: give one or the other")
    before_ms = duration_ms(within if before is None else before, "within")
    after_ms = duration_ms(within if after is None else after, "within")
    one, two, key_format = copartitioned(left, right)
    made = nodes.StreamStreamJoin(
        name=left._name("JOIN", name),
        schema=joined_schema(one.schema, two.schema, suffix),
        kind=STREAM,
        window=one.window,
        left=one,
        right=two,
        join=kind,
        before_ms=before_ms,
        after_ms=after_ms,
        grace_ms=None if grace is None else duration_ms(grace, "the grace period"),
    )
    return type(left)(left._program, left._program.add(made), key_format)


def copartitioned(left: Flow, right: Flow) -> tuple[Node, Node, Format]:
    """Whose key has changed goes through a topic, and so does the left side where the two have keys of different
    formats. With the
    format that both have then."""
    program = left._program
    own = program.internal_formats(right._node.schema).key
    wanted = right._key_format or left._key_format or own

    def at_hand(flow: Flow) -> Node:
        if flow._key_format == wanted:
            return flow._node
        return program.repartitioned(flow._node, program.internal_formats(flow._node.schema, wanted))

    return at_hand(left), at_hand(right), wanted


def with_table(
    left: Stream, right: Table, kind: JoinKind, *, suffix: str = SUFFIX, name: str | None = None
) -> Stream:
    check_same_program(left, right, "join()")
    check_keys(left, right)
    one, two, key_format = copartitioned(left, right)
    made = nodes.StreamTableJoin(
        name=left._name("JOIN", name),
        schema=joined_schema(one.schema, two.schema, suffix),
        kind=STREAM,
        window=one.window,
        left=one,
        right=two,
        join=kind,
    )
    return type(left)(left._program, left._program.add(made), key_format)


def with_global(
    left: Stream,
    right: GlobalTable,
    kind: JoinKind,
    *,
    on: Any,
    suffix: str = SUFFIX,
    name: str | None = None,
) -> Stream:
    check_same_program(left, right, "join()")
    keys = right._node.schema.key
    given = list(on) if isinstance(on, (list, tuple)) else [on]
    if len(given) != len(keys):
        raise TopologyError(
            f"on= wants one expression for each column of the table's key: {_types(keys)}, not {len(given)}"
        )
    expressions = []
    for each, column in zip(given, keys, strict=True):
        expression, type_ = checking.checked(checking.as_column(each), left._node)
        if type_ != column.type:
            raise TopologyError(
                f"{expression} is {type_}, and the table's key {column.name} is {column.type}"
            )
        expressions.append(expression)
    made = nodes.StreamTableJoin(
        name=left._name("LEFTJOIN" if kind is JoinKind.LEFT else "JOIN", name),
        schema=joined_schema(left._node.schema, right._node.schema, suffix),
        kind=STREAM,
        window=left._node.window,
        left=left._node,
        right=right._node,
        join=kind,
        is_global=True,
        left_key=tuple(expressions),
    )
    return type(left)(left._program, left._program.add(made), left._key_format)


def tables(
    left: Table,
    right: Table,
    kind: JoinKind,
    *,
    suffix: str = SUFFIX,
    name: str | None = None,
    store: str | None = None,
) -> Table:
    check_same_program(left, right, "join()")
    check_keys(left, right)
    one, two, key_format = copartitioned(left, right)
    made = nodes.TableTableJoin(
        name=left._name("JOIN", name),
        schema=joined_schema(one.schema, two.schema, suffix),
        kind=TABLE,
        window=one.window,
        left=one,
        right=two,
        join=kind,
    )
    joined = type(left)(left._program, left._program.add(made), key_format)
    return joined if store is None else joined.materialize(store)


def foreign(
    left: Table,
    right: Table,
    kind: JoinKind,
    *,
    on: Any,
    suffix: str = SUFFIX,
    name: str | None = None,
    store: str | None = None,
) -> Table:
    check_same_program(left, right, "join()")
    if kind is JoinKind.FULL:
        raise TopologyError("a join by on= is inner or left: outer_join() is by key")
    keys = right._node.schema.key
    if len(keys) != 1:
        raise TopologyError(
            f"a join by on= is with a table of one key column: it has {_types(keys) or 'none'}"
        )
    for each in (left, right):
        if each._node.window is not None:
            raise TopologyError("a join by on= is of tables without windows")
    expression, type_ = checking.checked(checking.as_column(on), left._node)
    if type_ != keys[0].type:
        raise TopologyError(
            f"{expression} is {type_}, and the other table's key {keys[0].name} is {keys[0].type}"
        )
    program = left._program
    made = nodes.ForeignKeyJoin(
        name=left._name("FK-JOIN", name),
        schema=joined_schema(left._node.schema, right._node.schema, suffix),
        kind=TABLE,
        left=left._node,
        right=right._node,
        join=kind,
        left_key=expression,
        formats=program.internal_formats(right._node.schema, right._key_format or program.key_format),
    )
    joined = type(left)(program, program.add(made), left._key_format)
    return joined if store is None else joined.materialize(store)
