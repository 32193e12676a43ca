"""Types of expressions with refusals in the words of statements, and functions by what they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from penstock.sql.analysis.names import nearest
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.trees import walk
from penstock.streams.functions import aggregates, catalog, tables
from penstock.streams.functions.refusals import TypeRefused
from penstock.streams.functions.typing import type_of
from penstock.streams.plan.expressions import Call, Expression, Place
from penstock.streams.plan.types import BOOLEAN, SqlType

Types = Callable[[str], SqlType | None]
_OF_PREDICATES = ("invalid input syntax", "operator does not exist")


Parameters = ParamSpec("Parameters")
Outcome = TypeVar("Outcome")


def within_depth(function: Callable[Parameters, Outcome]) -> Callable[Parameters, Outcome]:
    """A statement whose expressions are nested without end is refused."""

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Outcome:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            raise StatementRefused("The statement is nested too deeply.") from None

    return call


def prefix_of(place: Place | None) -> str:
    return f"Line: {place.line}, Col: {place.column}: " if place else ""


def unprepared(message: str, place: Place | None = None) -> StatementRefused:
    """What ksqlDB says of a statement that it could read but not make ready."""
    return StatementRefused(f"Failed to prepare statement: {message}", place)


def check_functions(expression: Expression) -> None:
    """All functions are known; for one that is not, the nearest name is told."""
    for call in walk(expression):
        if isinstance(call, Call) and not (
            catalog.find(call.name)
            or aggregates.is_aggregate(call.name)
            or tables.is_table_function(call.name)
        ):
            known = [*catalog.names(), *aggregates.names(), *tables.names()]
            hint = nearest(call.name, known)
            raise StatementRefused(f"Can't find any functions with the name '{call.name}'{hint}", call.place)


def checked_type(expression: Expression, types: Types) -> SqlType | None:
    try:
        return type_of(expression, types)
    except TypeRefused as refused:
        prefix = "Invalid Select: " if refused.message.startswith("Cast of ") else ""
        raise StatementRefused(prefix + refused.message, refused.place or expression.place) from None


def known_type(expression: Expression, types: Types) -> SqlType:
    found = checked_type(expression, types)
    if found is None:
        raise StatementRefused(
            "Can't infer a type of null. Please explicitly cast it to a required type, e.g. CAST(null AS VARCHAR).",
            expression.place,
        )
    return found


def check_no_special(expression: Expression, *, aggregates_too: bool = True) -> None:
    """Where rows are looked at one by one there are neither aggregates nor table functions."""
    found = [*(aggregate_calls(expression) if aggregates_too else ()), *table_calls(expression)]
    if found:
        raise StatementRefused(f"Can't find any functions with the name '{found[0].name}'", found[0].place)


def check_filter(expression: Expression, types: Types, clause: str) -> None:
    """WHERE and HAVING."""
    check_no_special(expression, aggregates_too=clause == "WHERE")
    try:
        found = type_of(expression, types)
    except TypeRefused as refused:
        place = refused.place or expression.place
        prefix = (
            "Invalid Predicate"
            if refused.message.startswith(_OF_PREDICATES)
            else f"Error in {clause} expression"
        )
        raise StatementRefused(f"{prefix}: {refused.message}", place) from None
    if found != BOOLEAN:
        shown = "null" if found is None else str(found)
        raise StatementRefused(
            f"Type error in {clause} expression: Should evaluate to boolean but is {expression} ({shown}) instead.",
            expression.place,
        )


def aggregate_calls(expression: Expression) -> list[Call]:
    """Outermost first."""
    return [
        each for each in walk(expression) if isinstance(each, Call) and aggregates.is_aggregate(each.name)
    ]


def table_calls(expression: Expression) -> list[Call]:
    return [
        each for each in walk(expression) if isinstance(each, Call) and tables.is_table_function(each.name)
    ]
