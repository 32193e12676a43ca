"""SELECT without EMIT: an answer from what there is now.

A query over one source, with WHERE and a projection, is a lookup: `keys` are the only keys that can match, where WHERE says so,
and the windows that can match lie within `starts` and `ends`. The whole predicate stands besides, so whoever looks up may give
too many rows. Any other query (joins, groups, windows, table functions) is a plan like a push query's; it is run to the end of
its topics.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from penstock.sql.analysis.catalog import Catalog
from penstock.sql.analysis.checking import (
    aggregate_calls,
    check_filter,
    known_type,
    table_calls,
    within_depth,
)
from penstock.sql.analysis.flows import read
from penstock.sql.analysis.planned import PlannedPush
from penstock.sql.analysis.projections import Projection, selected
from penstock.sql.analysis.pull_shapes import AS_IT_IS, Finish, finish_of, shaped
from penstock.sql.analysis.queries import plan_push
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.scopes import Scope, check_columns, prepared
from penstock.sql.analysis.trees import columns_of
from penstock.sql.analysis.types import resolved
from penstock.sql.parsing.statements import Select
from penstock.streams.functions import coercion
from penstock.streams.functions.refusals import FunctionFailed, TypeRefused
from penstock.streams.functions.typing import type_of
from penstock.streams.kernel.compiling import evaluate
from penstock.streams.plan.expressions import ColumnRef, Comparison, Expression, In, Logical
from penstock.streams.plan.schema import ROWOFFSET, ROWPARTITION, WINDOW_BOUNDS, Column, Schema
from penstock.streams.plan.sources import Source, SourceKind

_HELP = " See https://cnfl.io/queries for more info.\nAdd EMIT CHANGES if you intended to issue a push query."
MOST_KEYS = 1000
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "="}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of WINDOWSTART or WINDOWEND; both ends may match. None: no bound."""

    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Lookup:
    """`items` and `predicate` are over the source's schema and its rows. `keys` None: any key."""

    source: Source
    items: tuple[Expression, ...]
    schema: Schema
    """As the header tells it: all columns are value columns."""
    predicate: Expression | None
    keys: tuple[tuple[Any, ...], ...] | None
    key_range: tuple[Any, Any] | None
    """Least and most of a key of one column, both may match; None in it: no bound."""
    starts: Bounds
    ends: Bounds
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class PlannedPull:
    """One of both is None."""

    reads: tuple[str, ...]
    lookup: Lookup | None = None
    plan: PlannedPush | None = None
    limit: int | None = None
    finish: Finish = AS_IT_IS
    """What is done to the rows behind the lookup or the plan."""
    inner: tuple[tuple[str, PlannedPull], ...] = ()
    """SELECTs in FROM, by the topics in whose places their rows are read."""

    @property
    def is_plain(self) -> bool:
        return self.finish == AS_IT_IS and not self.inner

    def all_columns(self) -> Schema:
        """Those of the rows before they are finished."""
        if self.lookup is not None:
            return self.lookup.schema
        assert self.plan is not None
        return self.plan.schema

    def columns(self) -> Schema:
        """Those that a client sees."""
        return self.finish.visible(self.all_columns())


@within_depth
def analyze_pull(select: Select, catalog: Catalog, query_id: str = "pull") -> PlannedPull:
    select = resolved(select, catalog)
    if select.emit is not None:
        raise StatementRefused("Pull queries don't support EMIT clauses." + _HELP)
    if select.limit is not None and select.limit < 0:
        raise StatementRefused("Pull queries don't support negative integers in the LIMIT clause." + _HELP)
    return _analyzed(select, catalog, query_id, 0)


def _analyzed(select: Select, catalog: Catalog, query_id: str, depth: int) -> PlannedPull:
    if select.emit is not None:
        raise StatementRefused("A SELECT in FROM does not go on: it has no EMIT.", select.place)
    shape = shaped(select, catalog, lambda inner: _analyzed(inner, catalog, query_id, depth + 1), depth)
    plain = shape.select
    if _is_lookup(plain):
        ready, scope = prepared(plain, shape.catalog)
        found = PlannedPull((scope.first.source.name,), lookup=_lookup(ready, scope))
    else:
        plan = plan_push(plain, shape.catalog, query_id)
        found = PlannedPull(plan.reads, plan=plan)
    reads = [each.partition("#")[0] for each in found.reads if each not in shape.inner]
    below = [name for each in shape.inner.values() for name in each.reads]
    return replace(
        found,
        reads=tuple(dict.fromkeys([*reads, *below])),
        limit=select.limit,
        finish=finish_of(select, found.all_columns()),
        inner=tuple(shape.inner.items()),
    )


def _is_lookup(select: Select) -> bool:
    projection = Projection(select.items)
    if select.joins or select.window or select.group_by is not None or select.partition_by is not None:
        return False
    return not any(aggregate_calls(each) or table_calls(each) for each in projection.expressions())


def _lookup(select: Select, scope: Scope) -> Lookup:
    source = scope.first.source
    check_columns(select, scope, may_be_synthetic=False)
    if select.having is not None:
        raise StatementRefused("Pull queries don't support HAVING clauses." + _HELP)
    _check_pseudo(select, source)
    flow = read(scope.first, "Pull")
    projection = Projection(select.items)
    items = selected(projection, scope, lambda _: scope.first.star(), lambda e: type_of(e, flow.type_of))
    columns = tuple(Column(each.name, known_type(each.expression, flow.type_of)) for each in items)
    where = None if select.where is None else scope.logical(select.where)
    if where is not None:
        check_filter(where, flow.type_of, "WHERE")
    return Lookup(
        source=source,
        items=tuple(each.expression for each in items),
        schema=Schema((), columns),
        predicate=where,
        keys=_keys(where, source),
        key_range=_key_range(where, source),
        starts=_bounds(where, "WINDOWSTART"),
        ends=_bounds(where, "WINDOWEND"),
        limit=select.limit,
    )


def _check_pseudo(select: Select, source: Source) -> None:
    if source.kind is SourceKind.STREAM:
        return
    for clause, expressions in (
        ("SELECT", Projection(select.items).expressions()),
        ("WHERE", [] if select.where is None else [select.where]),
    ):
        named = [each.name for one in expressions for each in columns_of(one)]
        wrong = [f"`{name}`" for name in named if name in (ROWPARTITION, ROWOFFSET)]
        if wrong:
            raise StatementRefused(
                f"Pull queries don't support the following columns in {clause} clauses: {', '.join(wrong)}\n"
                + _HELP
            )


# ------------------------------------------------------------------------------------------------ what WHERE says of the key


def _keys(where: Expression | None, source: Source) -> tuple[tuple[Any, ...], ...] | None:
    """The keys that can match: WHERE names all key columns in each of its alternatives."""
    if where is None or not source.schema.key:
        return None
    found: list[tuple[Any, ...]] = []
    for number, alternative in enumerate(_alternatives(where)):
        if number > MOST_KEYS:  # n pairs of ORs that are all true have 2^n alternatives
            return None
        rows: list[tuple[Any, ...]] = [()]
        for column in source.schema.key:
            values = _values(alternative, column)
            if values is None:
                return None
            if len(rows) * len(values) > MOST_KEYS:
                return None
            rows = [(*row, value) for row in rows for value in values]
        found += [row for row in rows if row not in found]
        if len(found) > MOST_KEYS:
            return None
    return tuple(found)


def _alternatives(expression: Expression) -> Iterator[list[Expression]]:
    """Of `(a OR b) AND c`: [a, c], [b, c]."""
    if isinstance(expression, Logical) and expression.operator == "OR":
        yield from _alternatives(expression.left)
        yield from _alternatives(expression.right)
    elif isinstance(expression, Logical):
        for left in _alternatives(expression.left):
            for right in _alternatives(expression.right):
                yield [*left, *right]
    else:
        yield [expression]


def _values(conditions: list[Expression], column: Column) -> list[Any] | None:
    """What the column must be, by the conditions that are all true."""
    for condition in conditions:
        if isinstance(condition, Comparison) and condition.operator == "=":
            other = _other(condition, column.name)
            constant = None if other is None else _constant(other, column)
            if constant is not None:
                return constant
        if isinstance(condition, In) and not condition.negated and _is_column(condition.operand, column.name):
            constants = [_constant(item, column) for item in condition.items]
            if all(each is not None for each in constants):
                return [value for each in constants if each for value in each]
    return None


def _other(condition: Comparison, name: str) -> Expression | None:
    if _is_column(condition.left, name):
        return condition.right
    return condition.left if _is_column(condition.right, name) else None


def _is_column(expression: Expression, name: str) -> bool:
    return isinstance(expression, ColumnRef) and expression.name == name


def _constant(expression: Expression, column: Column) -> list[Any] | None:
    """The value as one of the column's, in a list; None where it is none. NULL equals no key."""
    if columns_of(expression):
        return None
    try:
        given = type_of(expression, lambda _: None)
        value = evaluate(expression)
        if given is None or value is None:
            return []
        return [coercion.coerced(value, given, column.type)]
    except (TypeRefused, FunctionFailed, ArithmeticError, ValueError):
        return None


def _key_range(where: Expression | None, source: Source) -> tuple[Any, Any] | None:
    if where is None or len(source.schema.key) != 1:
        return None
    column = source.schema.key[0]
    alternatives = list(islice(_alternatives(where), 2))
    if len(alternatives) != 1:
        return None
    least, most = _limits(alternatives[0], column)
    return None if least is None and most is None else (least, most)


def _bounds(where: Expression | None, name: str) -> Bounds:
    if where is None:
        return Bounds()
    alternatives = list(islice(_alternatives(where), 2))
    if len(alternatives) != 1:
        return Bounds()
    return Bounds(*_limits(alternatives[0], Column(name, WINDOW_BOUNDS[name])))


def _limits(conditions: list[Expression], column: Column) -> tuple[Any, Any]:
    least: Any = None
    most: Any = None
    for condition in conditions:
        if not isinstance(condition, Comparison) or condition.operator not in _TURNED:
            continue
        other = _other(condition, column.name)
        constant = None if other is None else _constant(other, column)
        if not constant:
            continue
        operator = (
            condition.operator if _is_column(condition.left, column.name) else _TURNED[condition.operator]
        )
        if operator in (">", ">=", "="):
            least = constant[0] if least is None else max(least, constant[0])
        if operator in ("<", "<=", "="):
            most = constant[0] if most is None else min(most, constant[0])
    return least, most
