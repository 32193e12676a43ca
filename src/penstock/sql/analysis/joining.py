"""Joins: each side gets the join's key, through a topic where it has another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from penstock.sql.analysis.catalog import Catalog
from penstock.sql.analysis.checking import check_no_special, known_type
from penstock.sql.analysis.flows import (
    INTERNAL_VALUES,
    Flow,
    Known,
    narrowed,
    prefixed,
    read,
    rekeyed,
    repartitioned,
)
from penstock.sql.analysis.formats import check_key_types, rules_of
from penstock.sql.analysis.join_trees import SHOWN_KINDS, JoinOn, Leaf, Tree
from penstock.sql.analysis.names import Aliases
from penstock.sql.analysis.projections import Projection
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.scopes import Aliased, Scope
from penstock.streams.plan.expressions import ColumnRef, Expression
from penstock.streams.plan.nodes import (
    ForeignKeyJoin,
    JoinKind,
    Node,
    StreamStreamJoin,
    StreamTableJoin,
    TableTableJoin,
)
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Format, Formats, SourceKind, WindowKind
from penstock.streams.plan.types import SqlType

STREAM, TABLE = SourceKind.STREAM, SourceKind.TABLE
_FOREIGN_KEY: Final = "KSQL_FOREIGN_KEY"
_WINDOWED: Final = "Implicit repartitioning of windowed sources is not supported. See https://github.com/confluentinc/ksql/issues/4385."


@dataclass(frozen=True, slots=True)
class JoinKey:
    """How the result's key came about: a column of sources (`columns` are all that equal it), the keys of the left table of a
    foreign-key join, or a column of its own (`is_synthetic`)."""

    names: tuple[str, ...]
    columns: tuple[ColumnRef, ...] = ()
    is_synthetic: bool = False
    foreign_left: Aliased | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    flow: Flow
    key: JoinKey
    partitions: int | None


@dataclass(frozen=True, slots=True)
class Joining:
    """Plans the joins of one statement. `needed` are the logical names that it mentions."""

    scope: Scope
    catalog: Catalog
    projection: Projection
    needed: Sequence[str]

    def join(self, tree: Tree, prefix: str = "") -> Joined:
        if isinstance(tree.left, Tree):
            before = self.join(tree.left, f"{prefix}L_")
            left, left_partitions = before.flow, before.partitions
        else:
            left, left_partitions = self._leaf(tree.left, f"{prefix}Left")
        right, right_partitions = self._leaf(tree.right, f"{prefix}Right")
        if self._is_foreign(tree, left, right):
            return self._foreign(tree, left, right, prefix, left_partitions)
        key = self._key(tree)
        _check_within(tree)
        left, right = self._sides(tree, left, right, key, prefix)
        _check_partitions(tree, left_partitions, right_partitions)
        node = _node(tree, left, right, f"{prefix}Join", key.names[0])
        check_key_types(node.schema.key)
        key_column = Known(node.schema.key[0].type, ColumnRef(key.names[0]))
        columns = {**left.columns, **right.columns, key.names[0]: key_column}
        flow = Flow(node, columns, key.names, left.key_format)
        return Joined(flow, key, right_partitions)

    def _leaf(self, leaf: Leaf, name: str) -> tuple[Flow, int | None]:
        source = leaf.source
        store = "-Reduce" if source.source.kind is TABLE else ""
        flow = prefixed(read(source, f"KafkaTopic_{name}{store}"), source.alias)
        return flow, self.catalog.topic_partitions(source.source.topic)

    def _key(self, tree: Tree) -> JoinKey:
        columns = tree.key_columns
        if not columns:
            schemas = [each.names for each in tree.sources]
            name = Aliases(name for names in schemas for name in names).synthetic_key()
            return JoinKey((name,), is_synthetic=True)
        selected = [each for each in columns if self.projection.contains(each)]
        return JoinKey((self.scope.name_of((selected or list(columns))[0]),), columns)

    # ---------------------------------------------------------------------------------------- both sides under one key

    def _sides(self, tree: Tree, left: Flow, right: Flow, key: JoinKey, prefix: str) -> tuple[Flow, Flow]:
        on = tree.on
        check_no_special(on.left_expression)
        check_no_special(on.right_expression)
        left_type = known_type(self.scope.logical(on.left_expression), left.type_of)
        right_type = known_type(self.scope.logical(on.right_expression), right.type_of)
        if left_type != right_type:
            raise StatementRefused(f"Invalid join. Key types differ: {left_type} vs {right_type}")
        left_ready = on.left_expression in tree.left.equal_to_key or self._is_ready(left, on.left_expression)
        right_ready = self._is_ready(right, on.right_expression)
        key_format, forced = _key_format(left if left_ready else None, right if right_ready else None)
        if not forced and _shape(left) != _shape(right):
            raise StatementRefused(_WINDOWED)
        sides = []
        for flow, expression, ready, type_, side in (
            (left, on.left_expression, left_ready, left_type, "Left"),
            (right, on.right_expression, right_ready, right_type, "Right"),
        ):
            through_topic = not ready or forced or flow.key_format != key_format
            self._check_rekeying(flow, expression, ready=ready, through_topic=through_topic, forced=forced)
            if ready:
                done = narrowed(flow, f"{prefix}PrependAlias{side}", self.needed, key.names)
            else:
                rekeyed_to = {key.names[0]: (type_, self.scope.logical(expression))}
                done = rekeyed(flow, f"{prefix}{side}SourceKeyed", rekeyed_to, self.needed)
            name = f"{prefix}Join-{side.lower()}"
            window = left.node.window  # a key's window is its start; both sides take the left one's size
            sides.append(repartitioned(done, name, key_format, window) if through_topic else done)
        return sides[0], sides[1]

    def _is_ready(self, flow: Flow, expression: Expression) -> bool:
        return flow.is_keyed_by([self.scope.logical(expression)])

    def _check_rekeying(
        self, flow: Flow, expression: Expression, *, ready: bool, through_topic: bool, forced: bool
    ) -> None:
        if not through_topic:
            return
        if flow.kind is TABLE and not ready:
            if len(flow.keys) > 1:
                raise StatementRefused(
                    "Cannot repartition a TABLE source. If this is a join, joins on tables with multiple columns is not yet "
                    "supported."
                )
            raise StatementRefused(
                "Cannot repartition a TABLE source. If this is a join, make sure that the criteria uses the TABLE's key "
                f"column {flow.node.schema.key[0].name} instead of [{expression}]"
            )
        if flow.node.window is not None and (not ready or not forced or flow.kind is TABLE):
            raise StatementRefused(_WINDOWED)

    # ---------------------------------------------------------------------------------------- foreign keys

    def _is_foreign(self, tree: Tree, left: Flow, right: Flow) -> bool:
        """Checks what may be joined with what, and tells a join by foreign key."""
        on = tree.on
        if left.kind is STREAM:
            if right.kind is TABLE:
                self._check_stream_table(on, right)
            return False
        if right.kind is STREAM:
            raise StatementRefused(
                "Invalid join order: table-stream joins are not supported; only stream-table joins. "
                f"Got {on.left.source.name} {SHOWN_KINDS[on.kind]} {on.right.source.name}."
            )
        if not _is_primary_key(on.right_expression, on.right):
            a, b = on.as_written
            raise StatementRefused(
                "Invalid join condition: table-table joins require to join on the primary key of the right input table. "
                f"Got {a} = {b}."
            )
        if _is_primary_key(on.left_expression, on.left):
            self._check_types(on, left, right)
            return False
        self._check_foreign(tree, left, right)
        return True

    def _check_stream_table(self, on: JoinOn, right: Flow) -> None:
        if on.kind is JoinKind.FULL:
            raise StatementRefused(
                "Invalid join type: full-outer join not supported for stream-table join. "
                f"Got {on.left.source.name} {SHOWN_KINDS[on.kind]} {on.right.source.name}."
            )
        if not _is_primary_key(on.right_expression, on.right):
            a, b = on.as_written
            raise StatementRefused(
                f"Invalid join condition: stream-table joins require to join on the table's primary key. Got {a} = {b}."
            )

    def _check_foreign(self, tree: Tree, left: Flow, right: Flow) -> None:
        on = tree.on
        if on.kind is JoinKind.FULL:
            raise StatementRefused(
                "Invalid join type: full-outer join not supported for foreign-key table-table join. "
                f"Got {on.left.source.name} {SHOWN_KINDS[on.kind]} {on.right.source.name}."
            )
        if isinstance(tree.left, Tree):
            a, b = on.as_written
            raise StatementRefused(
                "Invalid join condition: foreign-key table-table joins are not supported as part of n-way joins. "
                f"Got {a} = {b}."
            )
        self._check_types(on, left, right)
        if right.node.window is not None:
            raise StatementRefused("Foreign-key table-table joins are not supported on windowed tables.")

    def _check_types(self, on: JoinOn, left: Flow, right: Flow) -> None:
        check_no_special(on.left_expression)
        left_type = known_type(self.scope.logical(on.left_expression), left.type_of)
        right_type = known_type(self.scope.logical(on.right_expression), right.type_of)
        if left_type != right_type:
            pairs: list[tuple[Expression, SqlType]] = [
                (on.left_expression, left_type),
                (on.right_expression, right_type),
            ]
            (a, a_type), (b, b_type) = reversed(pairs) if on.is_flipped else pairs
            raise StatementRefused(
                f"Invalid join condition: types don't match. Got {a}{{{a_type}}} = {b}{{{b_type}}}."
            )

    def _foreign(self, tree: Tree, left: Flow, right: Flow, prefix: str, partitions: int | None) -> Joined:
        on = tree.on
        if on.kind is JoinKind.RIGHT:
            raise StatementRefused("RIGHT OUTER JOIN on a foreign key is not supported")
        _check_within(tree)
        left_side = narrowed(left, f"{prefix}PrependAliasLeft", self.needed, left.keys)
        right_side = narrowed(right, f"{prefix}PrependAliasRight", self.needed, (_FOREIGN_KEY,))
        if rules_of(
            right.key_format.name
        ).infers:  # keys with a schema's id may lie elsewhere than the same key of the left side
            right_side = repartitioned(right_side, f"{prefix}RightForeignKeyed", Format("JSON"))
        node = ForeignKeyJoin(
            name=f"{prefix}Join",
            schema=Schema(
                left_side.node.schema.key, (*left_side.node.schema.value, *right_side.node.schema.value)
            ),
            kind=TABLE,
            left=left_side.node,
            right=right_side.node,
            join=on.kind,
            left_key=left_side.physical(self.scope.logical(on.left_expression)),
            formats=Formats(right_side.key_format, INTERNAL_VALUES),
        )
        found = {name: known for name, known in right_side.columns.items() if name != _FOREIGN_KEY}
        flow = replace(left_side, node=node, columns={**found, **left_side.columns})
        return Joined(flow, JoinKey(left.keys, foreign_left=on.left), partitions)


def _key_format(left: Format | Flow | None, right: Format | Flow | None) -> tuple[Format, bool]:
    """The key's format on both sides, and whether both go through a topic. A side that stays where it is decides; keys with the
    id of a schema before them need not be equal, though their values are."""
    ready = [each.key_format for each in (left, right) if isinstance(each, Flow)]
    if not ready:
        return Format("JSON"), False
    if any(rules_of(each.name).infers for each in ready):
        return Format("JSON"), True
    return ready[0], False


def _shape(flow: Flow) -> tuple[str, int] | None:
    window = flow.node.window
    return (
        None if window is None else (window.kind, 0 if window.kind is WindowKind.SESSION else window.size_ms)
    )


def _is_primary_key(expression: Expression, source: Aliased) -> bool:
    key = source.source.schema.key
    return isinstance(expression, ColumnRef) and len(key) == 1 and expression.name == key[0].name


def _check_within(tree: Tree) -> None:
    on = tree.on
    kinds = (tree.left.kind, tree.right.kind)
    if kinds == (STREAM, STREAM):
        if on.within is None:
            raise StatementRefused(
                "Stream-Stream joins must have a WITHIN clause specified. None was provided. To learn about how to specify a "
                "WITHIN clause with a stream-stream join, please visit: https://docs.confluent.io/current/ksql/docs/"
                "syntax-reference.html#create-stream-as-select"
            )
        return
    if on.within is not None:
        name, also = ("Stream-Table", "ie.") if kinds[0] is STREAM else ("Table-Table", "i.e.")
        tail = "your join again" if kinds[0] is STREAM else "your Table-Table join again"
        raise StatementRefused(
            f"A window definition was provided for a {name} join. These joins are not windowed. Please drop the window "
            f"definition ({also} the WITHIN clause) and try to execute {tail}."
        )
    if kinds[0] is STREAM and on.kind is JoinKind.RIGHT:
        raise StatementRefused(f"Invalid join type encountered: {SHOWN_KINDS[on.kind]}")


def _check_partitions(tree: Tree, left: int | None, right: int | None) -> None:
    if left is None or right is None or left == right:
        return
    a, b = tree.left.sources[0].alias, tree.right.source.alias
    raise StatementRefused(
        f"Can't join `{a}` with `{b}` since the number of partitions don't match. `{a}` partitions = {left}; "
        f"`{b}` partitions = {right}. Please repartition either one so that the number of partitions match."
    )


def _node(tree: Tree, left: Flow, right: Flow, name: str, key: str) -> Node:
    schema = Schema(
        (Column(key, left.node.schema.key[0].type),), (*left.node.schema.value, *right.node.schema.value)
    )
    on, window = tree.on, left.node.window
    if right.kind is STREAM:
        assert on.within is not None
        return StreamStreamJoin(
            name=name,
            schema=schema,
            kind=STREAM,
            window=window,
            left=left.node,
            right=right.node,
            join=on.kind,
            before_ms=on.within.before_ms,
            after_ms=on.within.after_ms,
            grace_ms=on.within.grace_ms,
        )
    if left.kind is STREAM:
        return StreamTableJoin(
            name=name,
            schema=schema,
            kind=STREAM,
            window=window,
            left=left.node,
            right=right.node,
            join=on.kind,
        )
    return TableTableJoin(
        name=name,
        schema=schema,
        kind=TABLE,
        window=window,
        left=left.node,
        right=right.node,
        join=on.kind,
    )


def foreign_keys(key: JoinKey) -> list[ColumnRef]:
    left = key.foreign_left
    return [] if left is None else [ColumnRef(each.name, left.alias) for each in left.source.schema.key]
