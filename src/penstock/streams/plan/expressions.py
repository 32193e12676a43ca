"""What is computed from the columns of a row.

A parser makes these with names as they stand in the statement; analysis replaces each `ColumnRef` by one whose `source` is None
and whose name is a column of the node's input (`schema.Schema`). `functions.typing` says the type of an expression, and
`kernel.compiling` turns it into a Python function. `str` gives an expression as ksqlDB writes it in names and messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.streams.plan.types import SqlType


class Place(NamedTuple):
    """Where it stands in the statement: both from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    place: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        from penstock.streams.plan.expression_text import text_of

        return text_of(self)


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """`value` is as rows have it; type None is NULL."""

    value: Any
    type: SqlType | None


@dataclass(frozen=True, slots=True)
class ColumnRef(Expression):
    name: str
    source: str | None = None  # the alias before the dot, before analysis


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    operator: str  # + - * / %
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Negative(Expression):
    operand: Expression
    sign: str = "-"  # "+" stands in the text, and does nothing


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    operator: str  # = <> < <= > >= IS DISTINCT FROM, IS NOT DISTINCT FROM
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Logical(Expression):
    operator: str  # AND OR
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Not(Expression):
    operand: Expression


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    operand: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between(Expression):
    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class In(Expression):
    operand: Expression
    items: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(Expression):
    operand: Expression
    pattern: Expression
    escape: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """`operand` is there in `CASE x WHEN 1 THEN …`, and None in `CASE WHEN x = 1 THEN …`."""

    operand: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    operand: Expression
    type: SqlType


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """Of a function; its name is in upper case. `COUNT(*)` has the one argument `Star`."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Star(Expression):
    """Only inside COUNT(*)."""


@dataclass(frozen=True, slots=True)
class Lambda(Expression):
    parameters: tuple[str, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class LambdaVariable(Expression):
    name: str


@dataclass(frozen=True, slots=True)
class FieldOf(Expression):
    """`struct->field`."""

    operand: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Subscript(Expression):
    """`array[1]`, `map['key']`."""

    operand: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class MakeArray(Expression):
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class MakeMap(Expression):
    entries: tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True, slots=True)
class MakeStruct(Expression):
    fields: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class TimeUnit(Expression):
    """The first argument of DATEADD and the like: MILLISECONDS … YEARS."""

    unit: str


@dataclass(frozen=True, slots=True)
class PythonCall(Expression):
    """A function of the user's program. It gets the values of the arguments; its result is of `type`."""

    function: Callable[..., Any]
    arguments: tuple[Expression, ...]
    type: SqlType
    name: str = "python"
