"""An expression that the program gives, over the columns of a step: resolved, typed, or refused in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.streams.functions import aggregates, tables
from penstock.streams.functions.refusals import TypeRefused
from penstock.streams.functions.typing import type_of
from penstock.streams.library import callables
from penstock.streams.library.columns import Col, expression_of, walk
from penstock.streams.library.failures import TopologyError, one_line, unknown
from penstock.streams.plan import expressions as e
from penstock.streams.plan.nodes import Node
from penstock.streams.plan.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS
from penstock.streams.plan.types import Kind, SqlType


def names_of(node: Node) -> list[str]:
    return [column.name for column in (*node.schema.key, *node.schema.value)]


def column_types(node: Node) -> Callable[[str], SqlType | None]:
    """With the pseudo columns, and those of windows where there are any."""
    types = {**PSEUDO_COLUMNS, **(WINDOW_BOUNDS if node.window is not None else {})}
    types.update((column.name, column.type) for column in (*node.schema.key, *node.schema.value))
    return types.get


def as_column(given: Any) -> Any:
    """A text where a column is wanted is its name."""
    return Col(e.ColumnRef(given)) if isinstance(given, str) else given


def checked(given: Any, node: Node, *, aggregate: bool = False) -> tuple[e.Expression, SqlType]:
    """The expression and its type. TopologyError."""
    expression = given if isinstance(given, e.Expression) else expression_of(given)
    check_names(expression, node)
    if not aggregate:
        for each in walk(expression):
            if isinstance(each, e.Call) and aggregates.is_aggregate(each.name):
                raise TopologyError(f"{each} is an aggregate: it belongs into aggregate() of a group")
            if isinstance(each, e.Call) and tables.is_table_function(each.name):
                raise TopologyError(f"{each} gives several rows: it belongs into explode()")
    return expression, typed(expression, column_types(node))


def check_names(expression: e.Expression, node: Node) -> None:
    types = column_types(node)
    for each in walk(expression):
        if isinstance(each, e.ColumnRef) and types(each.name) is None:
            if each.name in WINDOW_BOUNDS:
                raise TopologyError(f"there is no {each.name} here: only rows behind a window have it")
            raise unknown("column", each.name, names_of(node))


def typed(expression: e.Expression, types: Callable[[str], SqlType | None]) -> SqlType:
    try:
        type_ = type_of(expression, types)
    except TypeRefused as refused:
        said = one_line(refused).removeprefix(f"Error processing expression: {expression}. ")
        raise TopologyError(f"{expression}: {said}") from None
    if type_ is None:
        raise TopologyError(f"the type of {expression} is not known: say it with lit(None).cast(str)")
    return type_


def condition(given: Any, node: Node, what: str) -> e.Expression:
    """A predicate: a column expression, or a function of the row."""
    if isinstance(given, (Col, e.Expression)):
        expression, type_ = checked(given, node)
        if type_.kind is not Kind.BOOLEAN:
            raise TopologyError(f"{what} wants a condition, and {expression} is {type_}")
        return expression
    if callable(given):
        return callables.predicate(given, node.schema, what)
    raise TopologyError(f"{what} wants a condition as col('n') > 1, or a function of a row, not {given!r}")


def named(
    positional: Iterable[Any], keywords: dict[str, Any], node: Node, *, aggregate: bool = False
) -> list[tuple[str, e.Expression, SqlType]]:
    """Columns as `select("a", col("b"), total=col("a") + 1)` names them."""
    found: list[tuple[str, e.Expression, SqlType]] = []
    for each in positional:
        expression, type_ = checked(as_column(each), node, aggregate=aggregate)
        found.append((_own_name(expression), expression, type_))
    for name, each in keywords.items():
        expression, type_ = checked(each, node, aggregate=aggregate)
        found.append((name, expression, type_))
    return found


def _own_name(expression: e.Expression) -> str:
    if isinstance(expression, e.ColumnRef):
        return expression.name
    if isinstance(expression, e.FieldOf):
        return expression.name
    raise TopologyError(f"{expression} needs a name: write it as name={expression}")
