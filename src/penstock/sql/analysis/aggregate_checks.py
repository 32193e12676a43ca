"""What GROUP BY allows in SELECT and HAVING, and which aggregates a query needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from penstock.sql.analysis.checking import check_no_special
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.trees import children
from penstock.streams.functions import aggregates
from penstock.streams.plan.expressions import Call, ColumnRef, Expression, Star
from penstock.streams.plan.schema import WINDOW_BOUNDS


@dataclass(frozen=True, slots=True)
class Mention:
    """A column where it stands: inside an aggregate, or inside an expression of GROUP BY."""

    column: ColumnRef
    aggregate: str | None
    is_grouped: bool


@dataclass(slots=True)
class AggregateCheck:
    """All expressions have logical names."""

    groupings: Sequence[Expression]
    is_windowed: bool
    calls: list[Call] = field(default_factory=list)
    _ungrouped_selects: list[Expression] = field(default_factory=list)
    _ungrouped_having: list[Expression] = field(default_factory=list)

    def select(self, expression: Expression) -> None:
        loose = []
        for each in self._mentions(expression):
            if each.aggregate is not None:
                self._no_bounds(each.column)
            elif not self._is_grouping(each.column) and not each.is_grouped:
                loose.append(each.column)
        if loose and expression not in self.groupings:
            self._ungrouped_selects.append(expression)

    def group_by(self, expression: Expression) -> None:
        for call in _calls(expression):
            if aggregates.is_aggregate(call.name):
                raise StatementRefused(
                    f"GROUP BY does not support aggregate functions: {call.name} is an aggregate function.",
                    call.place,
                )
        check_no_special(expression)
        for each in self._mentions(expression):
            self._no_bounds(each.column)

    def where(self, expression: Expression) -> None:
        for each in self._mentions(expression, collect=False):
            self._no_bounds(each.column)

    def having(self, expression: Expression) -> None:
        for each in self._mentions(expression):
            self._no_bounds(each.column)
            if each.aggregate is None and not self._is_grouping(each.column) and not each.is_grouped:
                self._ungrouped_having.append(each.column)

    def finish(self) -> None:
        if not self.calls:
            raise StatementRefused(
                "GROUP BY requires aggregate functions in either the SELECT or HAVING clause."
            )
        if self._ungrouped_selects:
            shown = ", ".join(str(each) for each in self._ungrouped_selects)
            raise StatementRefused(
                f"Non-aggregate SELECT expression(s) not part of GROUP BY: {shown}\n"
                "Either add the column(s) to the GROUP BY or remove them from the SELECT.",
                self._ungrouped_selects[0].place,
            )
        if self._ungrouped_having:
            shown = ", ".join(str(each) for each in self._ungrouped_having)
            raise StatementRefused(
                f"Non-aggregate HAVING expression not part of GROUP BY: {shown}\n"
                "Consider switching the HAVING clause to a WHERE clause before the GROUP BY.",
                self._ungrouped_having[0].place,
            )

    def _is_grouping(self, column: ColumnRef) -> bool:
        return column in self.groupings or (self.is_windowed and column.name in WINDOW_BOUNDS)

    def _no_bounds(self, column: ColumnRef) -> None:
        if self.is_windowed and column.name in WINDOW_BOUNDS:
            raise StatementRefused(
                f"Window bounds column {column} can only be used in the SELECT clause of windowed aggregations and can not be "
                "passed to aggregate functions.\nSee https://github.com/confluentinc/ksql/issues/4397",
                column.place,
            )

    def _mentions(self, expression: Expression, *, collect: bool = True) -> Iterator[Mention]:
        yield from self._visit(expression, None, False, collect)

    def _visit(
        self, expression: Expression, aggregate: str | None, grouped: bool, collect: bool
    ) -> Iterator[Mention]:
        grouped = grouped or expression in self.groupings
        if isinstance(expression, Call) and aggregates.is_aggregate(expression.name):
            if aggregate is not None:
                raise StatementRefused(
                    f"Aggregate functions can not be nested: {aggregate}({expression.name}())",
                    expression.place,
                )
            aggregate = expression.name
            if collect and expression not in self.calls:
                self.calls.append(expression)
        if isinstance(expression, ColumnRef):
            yield Mention(expression, aggregate, grouped)
        for child in children(expression):
            yield from self._visit(child, aggregate, grouped, collect)


def _calls(expression: Expression) -> Iterator[Call]:
    if isinstance(expression, Call):
        yield expression
    for child in children(expression):
        yield from _calls(child)


def shown_call(call: Call) -> str:
    """As ksqlDB writes it: what counts rows counts their ROWTIME."""
    if not call.arguments or isinstance(call.arguments[0], Star):
        return f"{call.name}(ROWTIME)"
    return str(call)
