"""GROUP BY: rows under the grouping's key, the aggregate, EMIT FINAL, HAVING, and what SELECT makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.sql.analysis.aggregate_checks import AggregateCheck, shown_call
from penstock.sql.analysis.checking import Types, check_filter, known_type
from penstock.sql.analysis.flows import Flow, named_in, regrouped, rekeyed, repartitioned
from penstock.sql.analysis.formats import check_key_types, rules_of, supports_key_types
from penstock.sql.analysis.names import AGGREGATE_PREFIX, Aliases, listed
from penstock.sql.analysis.projections import Selected
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.results import Result, missing_keys
from penstock.sql.analysis.trees import rewritten
from penstock.sql.parsing.statements import WindowClause
from penstock.streams.functions import aggregates
from penstock.streams.functions.refusals import TypeRefused
from penstock.streams.functions.typing import type_of
from penstock.streams.plan.expressions import Call, ColumnRef, Expression, Literal
from penstock.streams.plan.nodes import Aggregate, AggregateCall, Filter, Node, Suppress
from penstock.streams.plan.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS, Column, Schema
from penstock.streams.plan.sources import DEFAULT_GRACE_MS, Format, Source, SourceKind, Window, WindowKind
from penstock.streams.plan.types import BYTES, Kind, SqlType

ONE_GROUP = Literal(b"\x01", BYTES)
"""What a query with aggregates and without GROUP BY is grouped by."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """The clauses of an aggregate query, in logical names."""

    selects: Sequence[Selected]
    groupings: tuple[Expression, ...]
    where: Expression | None
    having: Expression | None
    window: WindowClause | None
    is_final: bool
    sink: str | None
    """The name of the sink of a query that runs for good; None of a push query."""
    first: Source


def grouped(flow: Flow, query: Grouping) -> tuple[Flow, Result]:
    check = _checked(query)
    types = _types(flow, windowed=query.window is not None)
    names = _key_names(query, flow)
    result = _result(query, types, names)
    if query.having is not None:
        check_filter(query.having, flow.type_of, "HAVING")
    result = _without_keys(result, query)
    _check_keys(query, check)
    aggregated, keys = _aggregate(flow, query, check)
    if query.is_final:
        if query.window is None:
            raise StatementRefused("EMIT FINAL is only supported for windowed aggregations.")
        aggregated = Suppress(
            name="Aggregate-Suppress",
            schema=aggregated.schema,
            kind=SourceKind.TABLE,
            window=aggregated.window,
            input=aggregated,
        )
    if query.having is not None:
        aggregated = Filter(
            name="Aggregate-HavingFilter",
            schema=aggregated.schema,
            kind=SourceKind.TABLE,
            window=aggregated.window,
            input=aggregated,
            predicate=_over(query.having, check, keys),
        )
    values = tuple(each._replace(expression=_over(each.expression, check, keys)) for each in result.values)
    return Flow(aggregated, {}, (), flow.key_format), Result(result.keys, values)


def _checked(query: Grouping) -> AggregateCheck:
    check = AggregateCheck(query.groupings, query.window is not None)
    for each in query.selects:
        check.select(each.expression)
    if query.where is not None:
        check.where(query.where)
    for grouping in query.groupings:
        check.group_by(grouping)
    if query.having is not None:
        check.having(query.having)
    check.finish()
    return check


def _types(flow: Flow, *, windowed: bool) -> Types:
    def found(name: str) -> SqlType | None:
        if windowed and name in WINDOW_BOUNDS:
            return WINDOW_BOUNDS[name]
        return flow.type_of(name)

    return found


def _key_names(query: Grouping, flow: Flow) -> tuple[str, ...]:
    aliases = Aliases(flow.columns)
    found = []
    for grouping in query.groupings:
        selected = [each.name for each in query.selects if each.expression == grouping]
        if len(selected) > 1:
            shown = listed([f"`{name}`" for name in selected], "and")
            raise StatementRefused(
                f"The projection contains a key column more than once: {shown}.\nEach key column must only be in the "
                "projection once. If you intended to copy the key into the value, then consider using the AS_VALUE function "
                "to indicate which key reference should be copied."
            )
        if selected:
            found.append(selected[0])
        else:
            found.append(grouping.name if isinstance(grouping, ColumnRef) else aliases.of(grouping))
    return tuple(found)


def _result(query: Grouping, types: Types, names: tuple[str, ...]) -> Result:
    """The columns that come out: those of the key, and all others."""
    keys = []
    for name, grouping in zip(names, query.groupings, strict=True):
        keys.append(Selected(name, ColumnRef(name)))
        known_type(grouping, types)
    values = list(query.selects)
    seen: set[str] = set()
    for each in values:
        column_type = known_type(each.expression, types)
        if each.name in seen:
            raise StatementRefused(f"Duplicate value columns found in schema: `{each.name}` {column_type}")
        seen.add(each.name)
    return Result(tuple(keys), tuple(values))


def _without_keys(result: Result, query: Grouping) -> Result:
    if query.sink is None:
        return result
    values = tuple(
        each
        for each in result.values
        if each.expression not in query.groupings
        and not (
            isinstance(each.expression, ColumnRef) and each.expression.name == each.name in WINDOW_BOUNDS
        )
    )
    if not values:
        raise StatementRefused("The projection contains no value columns.")
    return Result(result.keys, values)


def _check_keys(query: Grouping, check: AggregateCheck) -> None:
    if query.sink is None:
        return
    selects = [each.expression for each in query.selects]
    missing = [each for each in query.groupings if each not in selects]
    if ONE_GROUP in missing:
        shown = ", ".join(shown_call(call) for call in check.calls)
        raise StatementRefused(
            f"CREATE TABLE AS SELECT statement does not support aggregate function [{shown}] without a GROUP BY clause."
        )
    if missing:
        raise missing_keys(query.sink, "grouping expression", [str(each) for each in missing])


# ------------------------------------------------------------------------------------------------ the nodes


def _aggregate(
    flow: Flow, query: Grouping, check: AggregateCheck
) -> tuple[Node, dict[Expression, Expression]]:
    """The aggregate, and the key column of each expression of GROUP BY. Nothing else of the input is there behind it."""
    _check_source(flow, query, check)
    resolved = [_resolved(call, flow, query) for call in check.calls]
    keyed = _keyed(flow, query, [each for one in resolved for each in one.arguments])
    window = _window(query.window, is_final=query.is_final)
    node = Aggregate(
        name="Aggregate-Aggregate-Materialize",
        schema=Schema(
            keyed.node.schema.key,
            tuple(Column(f"{AGGREGATE_PREFIX}{at}", each.type) for at, each in enumerate(resolved)),
        ),
        kind=SourceKind.TABLE,
        window=window,
        input=keyed.node,
        calls=tuple(
            AggregateCall(
                each.name,
                tuple(keyed.physical(argument) for argument in each.arguments),
                each.parameters,
                each.type,
            )
            for each in resolved
        ),
    )
    columns: list[Expression] = [ColumnRef(column.name) for column in node.schema.key]
    return node, dict(zip(query.groupings, columns, strict=True))


def _resolved(call: Call, flow: Flow, query: Grouping) -> aggregates.ResolvedAggregate:
    try:
        found = aggregates.resolve(call, lambda each: type_of(each, flow.type_of))
    except TypeRefused as refused:
        raise StatementRefused(refused.message, refused.place or call.place) from None
    if any(each is None for each in found.parameters):
        raise StatementRefused(f"A parameter passed to function {call.name} is NULL", call.place)
    if query.first.formats.value.name == "DELIMITED" and found.state_type.kind is Kind.STRUCT:
        raise StatementRefused(
            "One of the functions used in the statement has an intermediate type that the value format can not handle. "
            "Please remove the function or change the format.\n"
            "Consider up-voting https://github.com/confluentinc/ksql/issues/3950, which will resolve this limitation"
        )
    return found


def _check_source(flow: Flow, query: Grouping, check: AggregateCheck) -> None:
    if flow.kind is SourceKind.STREAM:
        return
    if query.window is not None:
        raise StatementRefused("Windowing not supported for table aggregations.")
    names = list(dict.fromkeys(_resolved(call, flow, query).name for call in check.calls))
    refused = [name for name in names if (found := aggregates.find(name)) is None or not found.has_undo]
    if refused:
        plural = "" if len(refused) == 1 else "s"
        raise StatementRefused(
            f"The aggregation function{plural} {listed(refused, 'and')} cannot be applied to a table source, only to a "
            "stream source."
        )


def _keyed(flow: Flow, query: Grouping, arguments: list[Expression]) -> Flow:
    """The input under the grouping's key."""
    if flow.kind is SourceKind.STREAM and flow.is_keyed_by(query.groupings) and flow.node.window is None:
        return flow
    needed = named_in(arguments)
    aliases = Aliases([*flow.columns, *needed])
    keys: dict[str, tuple[SqlType, Expression]] = {}
    for grouping in query.groupings:
        name = grouping.name if isinstance(grouping, ColumnRef) else aliases.of(grouping)
        if name in PSEUDO_COLUMNS or name in WINDOW_BOUNDS:
            name = f"KSQL_KEY_{name}"
        keys[name] = (known_type(grouping, flow.type_of), grouping)
    key_types = [type_ for type_, _ in keys.values()]
    check_key_types([Column(name, type_) for name, (type_, _) in keys.items()])
    step = regrouped if flow.kind is SourceKind.TABLE else rekeyed
    done = step(flow, "Aggregate-Prepare", keys, needed)
    return repartitioned(done, "Aggregate-GroupBy", _internal_key(flow.key_format, key_types))


def _internal_key(format_: Format, types: Sequence[SqlType]) -> Format:
    if rules_of(format_.name).infers or not supports_key_types(format_, types):
        return Format("JSON")
    return format_


def _window(clause: WindowClause | None, *, is_final: bool) -> Window | None:
    if clause is None:
        return None
    if clause.size_ms <= 0 and clause.kind is not WindowKind.SESSION:
        raise StatementRefused("Window size must be larger than zero.", clause.place)
    if clause.kind is WindowKind.HOPPING and not 0 < clause.advance_ms <= clause.size_ms:
        raise StatementRefused(
            f"Window advancement interval should be more than zero and less than or equal to the window's size. "
            f"Got size=[{clause.size_ms}], advance=[{clause.advance_ms}]",
            clause.place,
        )
    default = 0 if is_final else max(DEFAULT_GRACE_MS - clause.size_ms, 0)
    grace = default if clause.grace_ms is None else clause.grace_ms
    if clause.retention_ms is not None and clause.retention_ms < clause.size_ms + grace:
        raise StatementRefused(
            "The retention period of a window must be no smaller than its size plus the grace period. "
            f"Got size=[{clause.size_ms}], grace=[{grace}], retention=[{clause.retention_ms}]",
            clause.place,
        )
    return Window(clause.kind, clause.size_ms, clause.advance_ms, clause.grace_ms, clause.retention_ms)


def _over(expression: Expression, check: AggregateCheck, keys: dict[Expression, Expression]) -> Expression:
    """An expression of SELECT or HAVING over the columns of the aggregate."""

    def one(part: Expression) -> Expression | None:
        if part in keys:
            return keys[part]
        if isinstance(part, Call) and aggregates.is_aggregate(part.name):
            return ColumnRef(f"{AGGREGATE_PREFIX}{check.calls.index(part)}", place=part.place)
        return None

    return rewritten(expression, one)
