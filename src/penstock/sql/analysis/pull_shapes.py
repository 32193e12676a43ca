"""What only pull queries may say: DISTINCT, ORDER BY, a source twice, and SELECT in FROM.

These are taken out of the statement before it is analysed like any other. What is done to the rows of the answer is left over
(`Finish`), and the SELECTs in FROM are queries of their own, whose rows are read as a stream is (`inner`, by its topic's name).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from penstock.sql.analysis.catalog import Catalog
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.parsing.statements import FromSource, Select, SelectExpression
from penstock.streams.plan.expressions import ColumnRef, Literal
from penstock.streams.plan.schema import Schema
from penstock.streams.plan.sources import Format, Formats, Source, SourceKind
from penstock.streams.plan.types import Kind

if TYPE_CHECKING:
    from penstock.sql.analysis.pulling import PlannedPull

HIDDEN: Final = "KSQL_ORDER_"
MAX_DEPTH: Final = 8
"""Of SELECT in FROM."""


@dataclass(frozen=True, slots=True)
class Order:
    """`column`: its place in the rows."""

    column: int
    is_descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Finish:
    """`hidden`: so many of the last columns are for the order only."""

    is_distinct: bool = False
    orders: tuple[Order, ...] = ()
    hidden: int = 0

    def visible(self, schema: Schema) -> Schema:
        return (
            replace(schema, value=schema.value[: len(schema.value) - self.hidden]) if self.hidden else schema
        )


AS_IT_IS: Final = Finish()


@dataclass(slots=True)
class Shape:
    """The statement without these, and what is left over. `inner`: source name → its query."""

    select: Select
    catalog: Catalog
    inner: dict[str, PlannedPull] = field(default_factory=dict)


class _MoreSources:
    """A catalog with sources of one statement."""

    def __init__(self, catalog: Catalog, more: Mapping[str, Source]) -> None:
        self._catalog, self._more = catalog, more

    def source(self, name: str) -> Source | None:
        return self._more.get(name) or self._catalog.source(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)


def shaped(select: Select, catalog: Catalog, plan: Callable[[Select], PlannedPull], depth: int) -> Shape:
    """`plan` analyses a SELECT in FROM."""
    if depth > MAX_DEPTH:
        raise StatementRefused(f"More than {MAX_DEPTH} SELECTs within one another are not supported.")
    more: dict[str, Source] = {}
    inner: dict[str, PlannedPull] = {}
    seen: set[str] = set()

    def named(source: FromSource) -> FromSource:
        name = source.name
        if source.query is not None:
            name = f"{source.alias}#"
            planned = plan(source.query)
            more[name], inner[name] = _source_of(name, planned), planned
            return FromSource(name, source.alias, source.place)
        if name not in seen:
            seen.add(name)
            return source
        known = catalog.source(name)
        if known is None:
            return source  # and that is told
        again = f"{name}#{len(more) + 2}"
        more[again] = replace(known, name=again)
        return FromSource(again, source.alias, source.place)

    first = named(select.source)
    joins = tuple(replace(join, source=named(join.source)) for join in select.joins)
    aliases = [each.alias for each in (first, *(join.source for join in joins))]
    twice = next((each for each in aliases if aliases.count(each) > 1), None)
    if twice is not None:
        raise StatementRefused(
            f"The name {twice} stands for two sources: give each a name of its own with AS."
        )
    items = (*select.items, *_hidden(select))
    plain = replace(select, source=first, joins=joins, items=items, is_distinct=False, order_by=())
    return Shape(plain, _MoreSources(catalog, more) if more else catalog, inner)


def _hidden(select: Select) -> list[SelectExpression]:
    aliases = _aliases(select)
    found = []
    for number, each in enumerate(select.order_by):
        if not _is_named(each.expression, aliases):
            found.append(SelectExpression(each.expression, f"{HIDDEN}{number}", each.place))
    if found and select.is_distinct:
        raise StatementRefused(
            "ORDER BY of SELECT DISTINCT can name columns of SELECT only, by their names or numbers.",
            found[0].place,
        )
    return found


def _aliases(select: Select) -> set[str]:
    found = set()
    for item in select.items:
        if isinstance(item, SelectExpression):
            name = item.expression.name if isinstance(item.expression, ColumnRef) else None
            found.add(item.alias or name or "")
    return found


def _is_named(expression: Any, aliases: set[str]) -> bool:
    if isinstance(expression, Literal):
        return True
    return isinstance(expression, ColumnRef) and expression.source is None and expression.name in aliases


def finish_of(select: Select, columns: Schema) -> Finish:
    """`columns`: those of the plain statement, the hidden ones at the end."""
    names = [column.name for column in columns.value]
    hidden = len(_hidden(select))
    visible = len(names) - hidden
    orders = []
    for number, each in enumerate(select.order_by):
        value = each.expression
        if isinstance(value, Literal):
            if not isinstance(value.value, int) or not 1 <= value.value <= visible:
                raise StatementRefused(f"ORDER BY {value}: there is no column with this number.", each.place)
            column = value.value - 1
        elif f"{HIDDEN}{number}" in names[visible:]:
            column = names.index(f"{HIDDEN}{number}", visible)
        else:
            assert isinstance(value, ColumnRef)
            column = names.index(value.name)
        if _has_map(columns.value[column].type):
            raise StatementRefused(f"ORDER BY {value}: maps have no order.", each.place)
        nulls_first = not each.is_descending if each.nulls_first is None else each.nulls_first
        orders.append(Order(column, each.is_descending, nulls_first))
    return Finish(select.is_distinct, tuple(orders), hidden)


def _has_map(type_: Any) -> bool:
    if type_.kind is Kind.MAP:
        return True
    parts = [type_.element] if type_.element is not None else [each for _, each in type_.fields]
    return any(_has_map(each) for each in parts)


def _source_of(name: str, planned: PlannedPull) -> Source:
    formats = Formats(Format("JSON"), Format("JSON"))
    return Source(
        name=name,
        kind=SourceKind.STREAM,
        topic=name,
        schema=Schema((), planned.columns().value),
        formats=formats,
    )
