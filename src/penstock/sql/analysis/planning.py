"""A SELECT becomes nodes: sources and joins, WHERE, PARTITION BY, table functions, GROUP BY, and the projection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from penstock.sql.analysis.catalog import Catalog
from penstock.sql.analysis.checking import (
    aggregate_calls,
    check_filter,
    check_no_special,
    checked_type,
    known_type,
    prefix_of,
    table_calls,
)
from penstock.sql.analysis.flows import Flow, Known, carried, named_in, read, rekeyed
from penstock.sql.analysis.grouping import ONE_GROUP, Grouping, grouped
from penstock.sql.analysis.join_trees import joins_of, trees
from penstock.sql.analysis.joining import Joining, JoinKey
from penstock.sql.analysis.names import TABLE_FUNCTION_PREFIX, Aliases
from penstock.sql.analysis.projections import Projection, Selected, selected
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.results import (
    Result,
    check_join_key,
    check_no_clash,
    check_partition_keys,
    check_source_keys,
    missing_keys,
    persistent_result,
)
from penstock.sql.analysis.scopes import Scope, check_columns, prepared
from penstock.sql.analysis.trees import children, columns_of, rewritten
from penstock.sql.parsing.statements import Emit, Select, SelectAll, SelectExpression
from penstock.streams.functions import tables
from penstock.streams.functions.refusals import TypeRefused
from penstock.streams.plan.expressions import Call, Case, ColumnRef, Expression, Literal
from penstock.streams.plan.nodes import Explode, Filter
from penstock.streams.plan.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS, Column, Schema
from penstock.streams.plan.sources import SourceKind
from penstock.streams.plan.types import SqlType

_SYSTEM = (*PSEUDO_COLUMNS, *WINDOW_BOUNDS)


@dataclass(frozen=True, slots=True)
class Planned:
    """Before the last projection: `flow` is where it reads, `result` what it selects, in names of the flow's node."""

    flow: Flow
    result: Result
    scope: Scope
    select: Select
    is_keyless: bool
    """PARTITION BY NULL."""


def planned(
    select: Select,
    catalog: Catalog,
    *,
    sink: str | None,
    cast_to: Callable[[int, Expression], Expression] | None = None,
) -> Planned:
    """`sink`: the name of what the query writes to; None of a push query. `cast_to` changes the expression at a place."""
    select, scope = prepared(select, catalog)
    if not scope.is_join:
        tree = None
    else:
        tree = joins_of(select, scope)
    _check_items(select, persistent=sink is not None)
    check_columns(select, scope, may_be_synthetic=select.group_by is None)
    _check_sources(select, scope, sink)
    projection = Projection(select.items)
    steps = _Steps(select, scope, catalog, projection, sink, cast_to)
    if tree is None:
        store = "-Reduce" if scope.first.source.kind is SourceKind.TABLE else ""
        return steps.over(read(scope.first, f"KafkaTopic{store}"), None)
    conditions = [each for one in trees(tree) for each in (one.on.left_expression, one.on.right_expression)]
    joined = Joining(scope, catalog, projection, steps.needed(conditions)).join(tree)
    return steps.over(joined.flow, joined.key)


@dataclass(frozen=True, slots=True)
class _Steps:
    select: Select
    scope: Scope
    catalog: Catalog
    projection: Projection
    sink: str | None
    cast_to: Callable[[int, Expression], Expression] | None

    def needed(self, more: Iterable[Expression] = ()) -> list[str]:
        """Logical names of all columns that the statement mentions."""
        select = self.select
        mentioned: list[Expression] = [*self.projection.expressions(), *more]
        mentioned += [each for each in (select.where, select.having) if each is not None]
        mentioned += [*(select.group_by or ()), *(select.partition_by or ())]
        for item in select.items:
            if isinstance(item, SelectAll):
                mentioned += self.scope.star(item.source)
        return named_in(self.scope.logical(each) for each in mentioned)

    def over(self, flow: Flow, join_key: JoinKey | None) -> Planned:
        select, scope = self.select, self.scope
        where = None if select.where is None else scope.logical(select.where)
        if where is not None:
            check_filter(where, flow.type_of, "WHERE")
            flow = flow.on(
                Filter(
                    name="WhereFilter",
                    schema=flow.node.schema,
                    kind=flow.kind,
                    window=flow.node.window,
                    input=flow.node,
                    predicate=flow.physical(where),
                )
            )
        star = self._star(join_key)
        partition_by = tuple(scope.logical(each) for each in select.partition_by or ())
        keyless = any(_is_null(each) for each in partition_by)
        if select.partition_by is not None:
            flow = self._partitioned(flow, partition_by)
            if flow.ordered:
                star = self._star_of(flow)
        flow, replaced = self._exploded(flow)
        items = self._items(flow, star, replaced, partition_by)
        groupings = self._groupings()
        if groupings is not None:
            query = Grouping(
                items,
                groupings,
                where,
                None if select.having is None else scope.logical(select.having),
                select.window,
                select.emit is Emit.FINAL,
                self.sink,
                scope.first.source,
            )
            flow, result = grouped(flow, query)
        else:
            result = self._plain(flow, items, join_key, partition_by)
        if self.sink is not None:
            check_no_clash(result)
        return Planned(flow, result, scope, select, keyless)

    # ---------------------------------------------------------------------------------------- stars and items

    def _star(self, join_key: JoinKey | None) -> Callable[[str | None], Sequence[str]]:
        def names(alias: str | None) -> list[str]:
            found = [self.scope.name_of(each) for each in self.scope.star(alias)]
            if alias is None and join_key is not None and join_key.is_synthetic:
                return [*join_key.names, *found]
            return found

        return names

    def _star_of(self, flow: Flow) -> Callable[[str | None], Sequence[str]]:
        return lambda _: flow.ordered

    def _items(
        self,
        flow: Flow,
        star: Callable[[str | None], Sequence[str]],
        replaced: dict[Expression, Expression],
        partition_by: Sequence[Expression],
    ) -> list[Selected]:
        keys = dict(zip(partition_by, flow.keys, strict=False))

        def one(part: Expression) -> Expression | None:
            return replaced.get(part) if isinstance(part, Call) else None

        found = []
        for at, each in enumerate(
            selected(self.projection, self.scope, star, lambda e: checked_type(e, flow.type_of))
        ):
            expression = each.expression
            if expression in keys and not isinstance(expression, ColumnRef):
                expression = ColumnRef(keys[expression], place=expression.place)
            elif replaced:
                expression = rewritten(expression, one)
            if self.cast_to is not None:
                expression = self.cast_to(at, expression)
            found.append(each._replace(expression=expression))
        return found

    # ---------------------------------------------------------------------------------------- steps

    def _partitioned(self, flow: Flow, partition_by: tuple[Expression, ...]) -> Flow:
        for each in partition_by:
            check_no_special(each)
            checked_type(each, flow.type_of)
        if any(_is_null(each) for each in partition_by):
            if len(partition_by) > 1:
                raise StatementRefused("Cannot PARTITION BY multiple columns including NULL")
            partition_by = ()
        elif flow.is_keyed_by(partition_by):
            return flow
        if flow.kind is SourceKind.TABLE:
            raise StatementRefused(_no_table_partition(flow, partition_by))
        if flow.node.window is not None:
            raise StatementRefused(
                "Implicit repartitioning of windowed sources is not supported. "
                "See https://github.com/confluentinc/ksql/issues/4385."
            )
        aliases = Aliases(flow.columns)
        keys: dict[str, tuple[SqlType, Expression]] = {}
        for each in partition_by:
            name = each.name if isinstance(each, ColumnRef) else aliases.of(each)
            keys[name] = (known_type(each, flow.type_of), each)
        named = self.needed()
        done = rekeyed(flow, "PartitionBy", keys, named)
        schema = self.scope.first.source.schema
        values = [each.name for each in schema.value] if not self.scope.is_join else []
        ordered = [*keys, *(name for name in values if name not in keys)]
        ordered += [each.name for each in schema.key if each.name not in keys]
        if self.scope.is_join:
            return done
        return replace(done, ordered=tuple(ordered))

    def _exploded(self, flow: Flow) -> tuple[Flow, dict[Expression, Expression]]:
        """Table functions become columns: what stands for each call."""
        calls: list[Call] = []
        for expression in self.projection.expressions():
            for call in table_calls(self.scope.logical(expression)):
                if call not in calls:
                    calls.append(call)
        if not calls:
            return flow, {}
        if self.scope.first.source.kind is SourceKind.TABLE:
            raise StatementRefused("Table source is not supported with table functions")
        taken = carried(flow, self.needed(), without=flow.keys)
        columns = [column for column, _ in taken.values()]
        items = [known.at for _, known in taken.values()]
        replaced: dict[Expression, Expression] = {}
        places = {name: Known(column.type, ColumnRef(column.name)) for name, (column, _) in taken.items()}
        for at, call in enumerate(calls):
            name = f"{TABLE_FUNCTION_PREFIX}{at}"
            type_ = _table_type(call, flow)
            columns.append(Column(name, type_))
            items.append(flow.physical(call))
            places[name] = Known(type_, ColumnRef(name))
            replaced[call] = ColumnRef(name)
        for name in flow.keys:
            places[name] = flow.columns[name]
        node = Explode(
            name="FlatMap",
            schema=Schema(flow.node.schema.key, tuple(columns)),
            kind=flow.kind,
            window=flow.node.window,
            input=flow.node,
            items=tuple(items),
            exploded=tuple(range(len(taken), len(items))),
        )
        return replace(flow, node=node, columns={**flow.columns, **places}), replaced

    def _groupings(self) -> tuple[Expression, ...] | None:
        if self.select.group_by is not None:
            return tuple(self.scope.logical(each) for each in self.select.group_by)
        if any(aggregate_calls(each) for each in self.projection.expressions()):
            return (ONE_GROUP,)
        return None

    def _plain(
        self, flow: Flow, items: list[Selected], join_key: JoinKey | None, partition_by: Sequence[Expression]
    ) -> Result:
        select = self.select
        if select.window is not None:
            raise StatementRefused(
                f"{prefix_of(select.window.place)}WINDOW clause requires a GROUP BY clause.",
                select.window.place,
            )
        if select.having is not None:
            raise StatementRefused("HAVING clause requires a GROUP BY clause.", select.having.place)
        _check_unknown(items, flow)
        if self.sink is None:
            result = Result((), tuple(items))
            for each in items:
                known_type(each.expression, flow.type_of)
        else:
            result = persistent_result(flow, items)
            self._check_keys(self.sink, join_key, partition_by)
            if len(result.keys) != len(flow.keys):  # `*` of a source is no pseudo column of it
                raise missing_keys(self.sink, "join expression", list(flow.keys))
        if select.emit is Emit.FINAL:
            raise StatementRefused("EMIT FINAL is only supported for windowed aggregations.")
        values = tuple(each._replace(expression=flow.physical(each.expression)) for each in result.values)
        keys = tuple(each._replace(expression=flow.physical(each.expression)) for each in result.keys)
        return Result(keys, values)

    def _check_keys(self, sink: str, join_key: JoinKey | None, partition_by: Sequence[Expression]) -> None:
        if self.select.partition_by is not None:
            if not any(_is_null(each) for each in partition_by):
                check_partition_keys(self.select.partition_by, self.projection, sink)
        elif join_key is not None:
            check_join_key(join_key, self.projection, self.scope, sink)
        else:
            check_source_keys(self.scope.first, self.projection, sink)


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.type is None


def _table_type(call: Call, flow: Flow) -> SqlType:
    for inner in (part for child in children(call) for part in table_calls(child)):
        raise StatementRefused(f"Table functions cannot be nested: {call.name}({inner.name}())", call.place)
    try:
        return tables.resolve(call, lambda each: checked_type(each, flow.type_of)).type
    except TypeRefused as refused:
        raise StatementRefused(refused.message, refused.place or call.place) from None


def _no_table_partition(flow: Flow, partition_by: Sequence[Expression]) -> str:
    if len(flow.keys) > 1:
        return "Cannot repartition a TABLE source. If this is a join, joins on tables with multiple columns is not yet supported."
    shown = ", ".join(str(each) for each in partition_by)
    return (
        "Cannot repartition a TABLE source. If this is a join, make sure that the criteria uses the TABLE's key column "
        f"{flow.node.schema.key[0].name} instead of [{shown}]"
    )


def _check_unknown(items: Sequence[Selected], flow: Flow) -> None:
    """Names like ROWKEY, which only a join could have made."""
    for each in items:
        for column in columns_of(each.expression):
            if column.name not in flow.columns:
                raise StatementRefused(
                    f"{prefix_of(column.place)}Column '{column}' cannot be resolved.", column.place
                )


def _check_items(select: Select, *, persistent: bool) -> None:
    has_groups = select.group_by is not None
    for item in select.items:
        if not isinstance(item, SelectExpression):
            continue
        _check_reserved(item, persistent=persistent)
        has_groups = has_groups or bool(aggregate_calls(item.expression))
        calls = table_calls(item.expression)
        if calls and has_groups:
            raise StatementRefused("Table functions cannot be used with aggregations.", calls[0].place)
        _check_no_case(item.expression)


def _check_reserved(item: SelectExpression, *, persistent: bool) -> None:
    name = (item.alias or "").upper()
    if name not in _SYSTEM:
        return
    text = str(item.expression)
    if text[text.find(".") + 1 :].upper() != name:
        raise StatementRefused(
            f"`{name}` is a reserved column name. You cannot use it as an alias for a column.", item.place
        )
    if persistent:
        raise StatementRefused(
            f"Reserved column name in select: `{name}`. Please remove or alias the column.", item.place
        )


def _check_no_case(expression: Expression) -> None:
    if isinstance(expression, Case) and expression.operand is None and table_calls(expression):
        raise StatementRefused(f"Table functions cannot be used in CASE: {expression}", expression.place)
    for child in children(expression):
        _check_no_case(child)


def _check_sources(select: Select, scope: Scope, sink: str | None) -> None:
    if sink is not None and any(
        each.source.kind is SourceKind.TABLE and each.source.window is not None for each in scope.sources
    ):
        raise StatementRefused("KSQL does not support persistent queries on windowed tables.")
    names = [
        f"`{column.name}`"
        for each in scope.sources
        for column in each.source.schema.value
        if column.name in PSEUDO_COLUMNS
    ]
    if names:
        raise StatementRefused(
            "Your stream/table has columns with the same name as newly introduced pseudocolumns in ksqlDB, and cannot be "
            f"queried as a result. The conflicting names are: {', '.join(names)}."
        )
    kafka = ", ".join(each.alias for each in scope.sources if each.source.formats.value.name == "KAFKA")
    clause = "JOIN" if scope.is_join else "GROUP BY" if select.group_by is not None else None
    if kafka and clause is not None:
        raise StatementRefused(
            f"Source(s) {kafka} are using the 'KAFKA' value format. This format does not yet support {clause}.\n"
            "The KAFKA format is primarily intended for use as a key format. It can be used as a value format, but can not be "
            "used in any operation that requires a repartition or changelog topic.\n"
            "If you have an existing topic with KAFKA formatted values you can duplicate the data and serialize using Avro or "
            "JSON with a statement such as:\n\n'CREATE STREAM <new-stream-name> WITH(VALUE_FORMAT='Avro') AS SELECT * FROM "
            "<existing-kafka-formated-stream-name>;'\nFor more info see https://github.com/confluentinc/ksql/issues/3060"
        )
