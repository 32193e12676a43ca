"""What SELECT asks for: which columns are in it, and its items as pairs of name and expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.scopes import Scope
from penstock.sql.parsing.statements import SelectAll, SelectExpression, SelectFields, SelectItem
from penstock.streams.plan.expressions import ColumnRef, Expression, FieldOf
from penstock.streams.plan.types import Kind, SqlType


class Selected(NamedTuple):
    """An item under its name; `expression` has logical names."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Projection:
    items: tuple[SelectItem, ...]

    def contains(self, expression: Expression) -> bool:
        """Whether this expression, with sources at its columns, is selected."""
        for item in self.items:
            if isinstance(item, SelectAll):
                is_there = item.source is None or (
                    isinstance(expression, ColumnRef) and expression.source == item.source
                )
            elif isinstance(item, SelectFields):
                is_there = item.base == expression
            else:
                is_there = item.expression == expression
            if is_there:
                return True
        return False

    def expressions(self) -> list[Expression]:
        """Without `*`."""
        found = []
        for item in self.items:
            if isinstance(item, SelectExpression):
                found.append(item.expression)
            elif isinstance(item, SelectFields):
                found.append(item.base)
        return found


def selected(
    projection: Projection,
    scope: Scope,
    star: Callable[[str | None], Sequence[str]],
    type_of: Callable[[Expression], SqlType | None],
) -> list[Selected]:
    """All items, with `*` and `struct->*` taken apart. `star` gives the logical names that `*` or `alias.*` stands for."""
    found: list[Selected] = []
    for item in projection.items:
        if isinstance(item, SelectAll):
            found += [Selected(name, ColumnRef(name, place=item.place)) for name in star(item.source)]
        elif isinstance(item, SelectExpression):
            assert item.alias is not None
            found.append(Selected(item.alias, scope.logical(item.expression)))
        else:
            found += _fields(scope.logical(item.base), type_of)
    return found


def _fields(base: Expression, type_of: Callable[[Expression], SqlType | None]) -> list[Selected]:
    type_ = type_of(base)
    if type_ is None or type_.kind is not Kind.STRUCT:
        raise StatementRefused(f"Column {base} is not a STRUCT type.", base.place)
    return [Selected(name, FieldOf(base, name)) for name, _ in type_.fields]
