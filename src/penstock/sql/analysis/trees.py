"""Expressions as trees: walk through them, and rewrite parts of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from penstock.streams.plan.expressions import ColumnRef, Expression


def children(expression: Expression) -> Iterator[Expression]:
    for each in fields(expression):
        yield from _inside(getattr(expression, each.name))


def _inside(value: Any) -> Iterator[Expression]:
    if isinstance(value, Expression):
        yield value
    elif isinstance(value, tuple) and not hasattr(value, "_fields"):
        for one in value:
            yield from _inside(one)


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression itself, and all below it, in the order of the text."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def columns_of(expression: Expression) -> list[ColumnRef]:
    return [each for each in walk(expression) if isinstance(each, ColumnRef)]


def rewritten(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """`change` says what comes in the place of an expression; None: it stays, and is looked into."""
    changed = change(expression)
    if changed is not None:
        return changed
    return _with_parts(expression, lambda part: rewritten(part, change))


def _with_parts(expression: Expression, one: Callable[[Expression], Expression]) -> Expression:
    changes: dict[str, Any] = {}
    for each in fields(expression):
        value = getattr(expression, each.name)
        new = _part(value, one)
        if new is not value:
            changes[each.name] = new
    return replace(expression, **changes) if changes else expression


def _part(value: Any, one: Callable[[Expression], Expression]) -> Any:
    if isinstance(value, Expression):
        return one(value)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        new = tuple(_part(item, one) for item in value)
        return value if all(a is b for a, b in zip(new, value, strict=True)) else new
    return value
