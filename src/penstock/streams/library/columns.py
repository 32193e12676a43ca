"""Expressions over columns: `col("price") * 2 > lit(10)`, `fn("UCASE", col("name"))`, `when(col("n") > 1, "many")`.

Types and NULL are as in ksqlDB's SQL: a comparison with NULL is not true, and arithmetic with NULL gives NULL. Arrays begin at 1.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from penstock.streams.library.failures import TopologyError, unknown
from penstock.streams.library.types import sql_type
from penstock.streams.library.values import EPOCH_DAY, milliseconds_of, time_milliseconds
from penstock.streams.plan import expressions as e
from penstock.streams.plan import types as t


class Col:
    """An expression. Operators give new ones: `+ - * / %`, comparisons, `& | ~` for and, or, not."""

    __slots__ = ("expression",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expression: e.Expression) -> None:
        self.expression = expression

    def __repr__(self) -> str:
        return str(self.expression)

    def __bool__(self) -> bool:
        raise TopologyError(
            f"{self} is a column, which is neither true nor false here: write & | ~ for and, or, not, with brackets "
            f"around comparisons"
        )

    def __add__(self, other: Any) -> Col:
        return _arithmetic("+", self, other)

    def __radd__(self, other: Any) -> Col:
        return _arithmetic("+", other, self)

    def __sub__(self, other: Any) -> Col:
        return _arithmetic("-", self, other)

    def __rsub__(self, other: Any) -> Col:
        return _arithmetic("-", other, self)

    def __mul__(self, other: Any) -> Col:
        return _arithmetic("*", self, other)

    def __rmul__(self, other: Any) -> Col:
        return _arithmetic("*", other, self)

    def __truediv__(self, other: Any) -> Col:
        return _arithmetic("/", self, other)

    def __rtruediv__(self, other: Any) -> Col:
        return _arithmetic("/", other, self)

    def __mod__(self, other: Any) -> Col:
        return _arithmetic("%", self, other)

    def __rmod__(self, other: Any) -> Col:
        return _arithmetic("%", other, self)

    def __neg__(self) -> Col:
        return Col(e.Negative(self.expression))

    def __eq__(self, other: Any) -> Col:  # type: ignore[override]
        return _comparison("=", self, other)

    def __ne__(self, other: Any) -> Col:  # type: ignore[override]
        return _comparison("<>", self, other)

    def __lt__(self, other: Any) -> Col:
        return _comparison("<", self, other)

    def __le__(self, other: Any) -> Col:
        return _comparison("<=", self, other)

    def __gt__(self, other: Any) -> Col:
        return _comparison(">", self, other)

    def __ge__(self, other: Any) -> Col:
        return _comparison(">=", self, other)

    def __and__(self, other: Any) -> Col:
        return Col(e.Logical("AND", self.expression, expression_of(other)))

    def __rand__(self, other: Any) -> Col:
        return Col(e.Logical("AND", expression_of(other), self.expression))

    def __or__(self, other: Any) -> Col:
        return Col(e.Logical("OR", self.expression, expression_of(other)))

    def __ror__(self, other: Any) -> Col:
        return Col(e.Logical("OR", expression_of(other), self.expression))

    def __invert__(self) -> Col:
        return Col(e.Not(self.expression))

    def __getitem__(self, index: Any) -> Col:
        """An array's element, from 1 on, or a map's value."""
        return Col(e.Subscript(self.expression, expression_of(index)))

    def __iter__(self) -> Any:
        raise TopologyError(f"{self} is a column, and cannot be walked through here")

    def field(self, name: str) -> Col:
        """Of a struct."""
        return Col(e.FieldOf(self.expression, name))

    def is_null(self) -> Col:
        return Col(e.IsNull(self.expression))

    def is_not_null(self) -> Col:
        return Col(e.IsNull(self.expression, negated=True))

    def is_in(self, *items: Any) -> Col:
        return Col(e.In(self.expression, tuple(map(expression_of, items))))

    def between(self, low: Any, high: Any) -> Col:
        """Both included."""
        return Col(e.Between(self.expression, expression_of(low), expression_of(high)))

    def like(self, pattern: str) -> Col:
        """`%` stands for any text, `_` for one character."""
        return Col(e.Like(self.expression, expression_of(pattern)))

    def cast(self, type_: Any) -> Col:
        """To a Python type or SqlType. A value that cannot be cast becomes NULL, and is told."""
        return Col(e.Cast(self.expression, sql_type(type_)))


def col(name: str) -> Col:
    """A column by its name. ROWTIME, ROWPARTITION and ROWOFFSET are a record's own; windows have WINDOWSTART and WINDOWEND."""
    if not isinstance(name, str) or not name:
        raise TopologyError(f"col() wants the name of a column, not {name!r}")
    return Col(e.ColumnRef(name))


def lit(value: Any) -> Col:
    """A constant. `lit(None).cast(str)` is NULL of a type."""
    return Col(expression_of(value))


def fn(name: str, *arguments: Any) -> Col:
    """A function of ksqlDB's by its name; an aggregate where a group is aggregated. A lambda is one of its arguments as
    `lambda x: x * 2`."""
    from penstock.streams.functions import aggregates, catalog, tables

    if not isinstance(name, str):
        raise TopologyError(f"fn() wants the name of a function, not {name!r}")
    upper = name.upper()
    if catalog.find(upper) is None and not aggregates.is_aggregate(upper) and tables.find(upper) is None:
        raise unknown("function", name, sorted({*catalog.names(), *aggregates.names(), *tables.names()}))
    return Col(e.Call(upper, tuple(map(_argument, arguments))))


def when(condition: Any, result: Any, *more: Any) -> Col:
    """`when(c1, r1, c2, r2, …, otherwise)`: the result of the first condition that is true. Without `otherwise`, NULL."""
    given = (condition, result, *more)
    pairs = tuple(
        (expression_of(given[at]), expression_of(given[at + 1])) for at in range(0, len(given) - 1, 2)
    )
    return Col(e.Case(None, pairs, expression_of(given[-1]) if len(given) % 2 else None))


def struct(**fields_: Any) -> Col:
    return Col(e.MakeStruct(tuple((name, expression_of(each)) for name, each in fields_.items())))


def expression_of(value: Any) -> e.Expression:
    """Of a column, an expression of the plan, or a constant."""
    match value:
        case Col():
            return value.expression
        case e.Expression() | None:
            return value if value is not None else e.Literal(None, None)
        case bool():
            return e.Literal(value, t.BOOLEAN)
        case int():
            return e.Literal(value, t.INTEGER if -(2**31) <= value < 2**31 else t.BIGINT)
        case float():
            return e.Literal(value, t.DOUBLE)
        case str():
            return e.Literal(value, t.STRING)
        case bytes():
            return e.Literal(value, t.BYTES)
        case Decimal() if value.is_finite():
            return e.Literal(value, _decimal_type(value))
        case datetime():
            return e.Literal(milliseconds_of(value), t.TIMESTAMP)
        case date():
            return e.Literal(value.toordinal() - EPOCH_DAY, t.DATE)
        case time():
            return e.Literal(time_milliseconds(value), t.TIME)
        case list() | tuple():
            return e.MakeArray(tuple(map(expression_of, value)))
        case dict():
            return e.MakeMap(tuple((expression_of(key), expression_of(each)) for key, each in value.items()))
        case _:
            raise TopologyError(f"{value!r} is neither a column nor a constant")


def _decimal_type(value: Decimal) -> t.SqlType:
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    return t.decimal(max(len(digits) + max(int(exponent), 0), scale, 1), scale)


def _argument(value: Any) -> e.Expression:
    if callable(value) and not isinstance(value, Col):
        return _lambda(value)
    return expression_of(value)


def _lambda(function: Callable[..., Any]) -> e.Expression:
    names = tuple(inspect.signature(function).parameters)
    return e.Lambda(names, expression_of(function(*(Col(e.LambdaVariable(name)) for name in names))))


def _arithmetic(operator: str, left: Any, right: Any) -> Col:
    return Col(e.Arithmetic(operator, expression_of(left), expression_of(right)))


def _comparison(operator: str, left: Any, right: Any) -> Col:
    if left is None or right is None:
        raise TopologyError("nothing equals NULL: ask is_null() or is_not_null()")
    return Col(e.Comparison(operator, expression_of(left), expression_of(right)))


def walk(part: Any) -> list[e.Expression]:
    """An expression and all that stand in it."""
    if isinstance(part, tuple):
        return [each for one in part for each in walk(one)]
    if not isinstance(part, e.Expression):
        return []
    inner = [each for one in fields(part) if one.name != "place" for each in walk(getattr(part, one.name))]
    return [part, *inner]
