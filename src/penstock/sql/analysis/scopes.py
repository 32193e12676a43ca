"""Names in a SELECT get their sources, and items their aliases, before anything is planned.

After `prepared(select, catalog)` each column stands with its source's alias (`A.X`), where exactly one source has it; one that no
source has stays alone, because it may be the key that a join makes. `logical` turns these into the names that schemas of
joined rows have: `A_X` in a join, `X` else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from penstock.sql.analysis.catalog import Catalog
from penstock.sql.analysis.checking import check_functions, prefix_of, unprepared
from penstock.sql.analysis.names import SYNTHETIC_KEY, Aliases, joined_name, listed, nearest
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.trees import children, columns_of, rewritten
from penstock.sql.parsing.statements import (
    Select,
    SelectAll,
    SelectExpression,
    SelectFields,
    SelectItem,
)
from penstock.streams.functions.iso_times import parse_timestamp
from penstock.streams.functions.refusals import FunctionFailed
from penstock.streams.plan.expressions import (
    Between,
    ColumnRef,
    Comparison,
    Expression,
    Lambda,
    Literal,
    Place,
)
from penstock.streams.plan.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS
from penstock.streams.plan.sources import Source
from penstock.streams.plan.types import BIGINT, STRING

_TIMES: Final = ("ROWTIME", *WINDOW_BOUNDS)


@dataclass(frozen=True, slots=True)
class Aliased:
    alias: str
    source: Source
    place: Place | None = None

    @property
    def names(self) -> list[str]:
        return [column.name for column in (*self.source.schema.key, *self.source.schema.value)]

    def has(self, name: str, *, with_bounds: bool = False) -> bool:
        if name in PSEUDO_COLUMNS:
            return True
        if name in WINDOW_BOUNDS and (with_bounds or self.source.window is not None):
            return True
        return name in self.names

    def star(self) -> list[str]:
        """What `*` stands for: keys, bounds of the window, values, headers."""
        bounds = list(WINDOW_BOUNDS) if self.source.window is not None else []
        schema = self.source.schema
        headers = [name for name, _ in schema.headers]
        values = [each.name for each in schema.value if each.name not in headers]
        return [*(each.name for each in schema.key), *bounds, *values, *headers]


@dataclass(frozen=True, slots=True)
class Scope:
    """The sources of a query, in the order of the text; the first is FROM's."""

    sources: tuple[Aliased, ...]
    is_join: bool

    @property
    def first(self) -> Aliased:
        return self.sources[0]

    def aliased(self, alias: str) -> Aliased | None:
        return next((each for each in self.sources if each.alias == alias), None)

    def having(self, name: str) -> list[Aliased]:
        return [each for each in self.sources if each.has(name)]

    def name_of(self, column: ColumnRef) -> str:
        if self.is_join and column.source is not None:
            return joined_name(column.source, column.name)
        return column.name

    def logical(self, expression: Expression) -> Expression:
        def one(part: Expression) -> Expression | None:
            if isinstance(part, ColumnRef) and part.source is not None:
                return ColumnRef(self.name_of(part), place=part.place)
            return None

        return rewritten(expression, one)

    def star(self, alias: str | None) -> list[ColumnRef]:
        return [
            ColumnRef(name, each.alias)
            for each in self.sources
            if alias is None or each.alias == alias
            for name in each.star()
        ]


def prepared(select: Select, catalog: Catalog) -> tuple[Select, Scope]:
    _check_shape(select)
    scope = _scope(select, catalog)
    _check_aliases(select)
    clashing = _clashing(scope)
    aliases = Aliases(name for each in scope.sources for name in each.names)

    def qualified(expression: Expression) -> Expression:
        return _qualified(expression, scope)

    def item(one: SelectItem) -> SelectItem:
        if isinstance(one, SelectFields):
            return replace(one, base=qualified(one.base))
        if isinstance(one, SelectAll):
            return one
        expression = qualified(one.expression)
        return replace(one, expression=expression, alias=one.alias or _alias(expression, clashing, aliases))

    def each(expressions: tuple[Expression, ...] | None, clause: str) -> tuple[Expression, ...] | None:
        if expressions is None:
            return None
        done = tuple(qualified(one) for one in expressions)
        if not done:
            raise unprepared(f"{clause} requires at least one expression")
        seen: list[Expression] = []
        for one in done:
            if one in seen:
                raise unprepared(f"Duplicate {clause} expression: {one}", one.place)
            seen.append(one)
        return done

    return (
        replace(
            select,
            items=tuple(item(one) for one in select.items),
            joins=tuple(replace(join, on=qualified(join.on)) for join in select.joins),
            where=None if select.where is None else with_times(qualified(select.where)),
            group_by=each(select.group_by, "GROUP BY"),
            partition_by=each(select.partition_by, "PARTITION BY"),
            having=None if select.having is None else with_times(qualified(select.having)),
        ),
        scope,
    )


def _check_shape(select: Select) -> None:
    """What only pull queries may say: from theirs it has been taken out (`pull_shapes`)."""
    for word, is_there, place in (
        ("DISTINCT", select.is_distinct, select.place),
        ("ORDER BY", bool(select.order_by), select.order_by[0].place if select.order_by else None),
        ("SELECT in FROM", _has_query(select), select.source.place),
    ):
        if is_there:
            raise StatementRefused(
                f"{word} is only supported by pull queries: a query that goes on has no last row. Leave out EMIT CHANGES.",
                place,
            )


def _has_query(select: Select) -> bool:
    return any(each.query is not None for each in (select.source, *(join.source for join in select.joins)))


def _scope(select: Select, catalog: Catalog) -> Scope:
    found: list[Aliased] = []
    for named in (select.source, *(join.source for join in select.joins)):
        source = catalog.source(named.name)
        if source is None:
            raise unprepared(f"{named.name} does not exist.{alternatives(named.name, catalog)}", named.place)
        found.append(Aliased(named.alias, source, named.place))
    return Scope(tuple(found), bool(select.joins))


def alternatives(name: str, catalog: Catalog) -> str:
    """What a name may have meant that is there in other letters."""
    matched = sorted(each for each in catalog.source_names() if each.upper() == name.upper() and each != name)
    if not matched:
        return nearest(name, catalog.source_names())
    hint = "Hint: wrap the source name in double quotes to make it case-sensitive."
    if len(matched) > 1:
        kinds = [source.kind if (source := catalog.source(each)) else "STREAM" for each in matched]
        shown = [f'"{each}" ({kind})' for each, kind in zip(matched, kinds, strict=True)]
        return f"\nDid you mean {listed(shown, 'or')}? {hint}"
    if matched[0] != matched[0].upper():
        return f'\nDid you mean "{matched[0]}"? {hint}'
    return f"\nDid you mean {matched[0]}? Hint: try removing double quotes from the source name."


def _check_aliases(select: Select) -> None:
    """Names before a dot are sources or their aliases."""
    named = [select.source, *(join.source for join in select.joins)]
    known = {name for each in named for name in (each.name, each.alias)}
    for item in select.items:
        if isinstance(item, SelectAll) and item.source is not None and item.source not in known:
            raise _no_source(item.source, item.place)
    for expression in _expressions(select):
        for column in columns_of(expression):
            if column.source is not None and column.source not in known:
                raise _no_source(column.source, column.place)


def _no_source(name: str, place: Place | None) -> StatementRefused:
    return unprepared(f"'{name}' is not a valid stream/table name or alias.", place)


def _expressions(select: Select) -> Iterable[Expression]:
    for item in select.items:
        if isinstance(item, SelectExpression):
            yield item.expression
        elif isinstance(item, SelectFields):
            yield item.base
    yield from (join.on for join in select.joins)
    yield from (each for each in (select.where, select.having) if each is not None)
    yield from select.group_by or ()
    yield from select.partition_by or ()


def _clashing(scope: Scope) -> Callable[[str], bool]:
    """Names that several sources of a join have."""
    if not scope.is_join:
        return lambda _: False
    names = [name for each in scope.sources for name in set(each.names)]
    return lambda name: name in PSEUDO_COLUMNS or names.count(name) > 1


def _alias(expression: Expression, clashing: Callable[[str], bool], aliases: Aliases) -> str:
    if isinstance(expression, ColumnRef):
        if expression.source is not None and clashing(expression.name):
            return joined_name(expression.source, expression.name)
        return expression.name
    return aliases.of(expression)


def _qualified(expression: Expression, scope: Scope) -> Expression:
    _check_lambdas(expression, scope, ())

    def one(part: Expression) -> Expression | None:
        if not isinstance(part, ColumnRef) or part.source is not None:
            return None
        found = scope.having(part.name)
        if len(found) > 1:
            shown = listed(sorted(f"{each.alias}.{part.name}" for each in found), "or")
            raise StatementRefused(
                f"Exception while preparing statement: {prefix_of(part.place)}Column '{part.name}' is ambiguous. "
                f"Could be {shown}.",
                part.place,
            )
        return replace(part, source=found[0].alias) if found else part

    return rewritten(expression, one)


def _check_lambdas(expression: Expression, scope: Scope, outer: tuple[str, ...]) -> None:
    if isinstance(expression, Lambda):
        for name in expression.parameters:
            if any(name in each.names for each in scope.sources):
                raise unprepared(f"Lambda function argument can't be a column name: {name}", expression.place)
        outer = (*outer, *expression.parameters)
        if len(set(outer)) != len(outer):
            raise unprepared("Reusing lambda arguments in nested lambda is not allowed", expression.place)
    for child in children(expression):
        _check_lambdas(child, scope, outer)


def with_times(expression: Expression) -> Expression:
    """Texts that are compared with ROWTIME or the bounds of windows become milliseconds."""

    def one(part: Expression) -> Expression | None:
        if isinstance(part, Comparison) and (_is_time(part.left) or _is_time(part.right)):
            return replace(part, left=_as_time(part.left), right=_as_time(part.right))
        if isinstance(part, Between) and _is_time(part.operand):
            return replace(part, low=_as_time(part.low), high=_as_time(part.high))
        return None

    return rewritten(expression, one)


def _is_time(expression: Expression) -> bool:
    return isinstance(expression, ColumnRef) and expression.name in _TIMES


def _as_time(expression: Expression) -> Expression:
    if not isinstance(expression, Literal) or expression.type != STRING:
        return expression
    try:
        return Literal(parse_timestamp(expression.value), BIGINT, place=expression.place)
    except (FunctionFailed, ValueError) as failed:
        raise StatementRefused(
            f"Failed to parse timestamp '{expression.value}': {failed}", expression.place
        ) from None


# ------------------------------------------------------------------------------------------------ columns that no source has


def check_columns(select: Select, scope: Scope, *, may_be_synthetic: bool) -> None:
    """Each column of the clauses behind FROM has a source. A join's own key may stand in SELECT."""
    bounds = select.window is not None

    def check(expression: Expression | None, clause: str, ending: str = "cannot be resolved.") -> None:
        if expression is not None:
            check_functions(expression)
            _check_known(expression, scope, clause, ending, bounds, may_be_synthetic)

    check(select.where, "WHERE")
    for each in select.group_by or ():
        check(each, "GROUP BY")
    for each in select.partition_by or ():
        check(
            each,
            "PARTITION BY",
            "cannot be resolved. '{}' must be a column in the source schema since PARTITION BY is applied on the input.",
        )
    check(select.having, "HAVING")
    for item in select.items:
        if isinstance(item, SelectExpression):
            check(item.expression, "SELECT")


def check_join_columns(expression: Expression, scope: Scope) -> set[str]:
    """The aliases of the sources that a side of a join's condition names."""
    check_functions(expression)
    return _check_known(expression, scope, "JOIN ON", "cannot be resolved.", False, False)


def _check_known(
    expression: Expression, scope: Scope, clause: str, ending: str, bounds: bool, may_be_synthetic: bool
) -> set[str]:
    used: set[str] = set()
    for column in columns_of(expression):
        sources = [
            each
            for each in scope.sources
            if column.source in (None, each.alias) and each.has(column.name, with_bounds=bounds)
        ]
        two_windows = column.source is None and column.name in WINDOW_BOUNDS and len(sources) > 1
        if sources and not two_windows:
            used.add(column.source or sources[0].alias)
            continue
        synthetic = column.source is None and column.name.startswith(SYNTHETIC_KEY)
        if may_be_synthetic and scope.is_join and clause == "SELECT" and synthetic and not two_windows:
            continue
        known = [name for each in scope.sources if column.source in (None, each.alias) for name in each.names]
        raise StatementRefused(
            f"{prefix_of(column.place)}{clause} column '{column}' {ending.format(column)}{nearest(column.name, known)}",
            column.place,
        )
    return used
