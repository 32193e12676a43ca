"""What operators do with values, where Python's own operator does something else than Java's."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import re2

from penstock.streams.functions import decimals
from penstock.streams.functions.java_text import exact_boolean
from penstock.streams.functions.refusals import FunctionFailed
from penstock.streams.plan.types import SqlType

_LINE_ENDS: Final = frozenset("\n\r\u0085\u2028\u2029")
_ANY_CHARACTER: Final = r"[^\n\r\x{85}\x{2028}\x{2029}]"


def divide_whole(left: int | None, right: int | None) -> int:
    """Towards zero."""
    if left is None or right is None:
        raise FunctionFailed("NULL / …")
    if not right:
        raise FunctionFailed("/ by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def remainder_whole(left: int | None, right: int | None) -> int:
    """With the sign of the left side."""
    if left is None or right is None:
        raise FunctionFailed("NULL % …")
    if not right:
        raise FunctionFailed("/ by zero")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def divide_double(left: float | None, right: float | None) -> float:
    if left is None or right is None:
        raise FunctionFailed("NULL / …")
    if right:
        return left / right
    if not left or left != left or right != right:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def remainder_double(left: float | None, right: float | None) -> float:
    if left is None or right is None:
        raise FunctionFailed("NULL % …")
    if not right or math.isinf(left) or left != left or right != right:
        return math.nan
    return math.fmod(left, right)


def decimal_operator(operator: str, result: SqlType) -> Callable[[Decimal, Decimal], Decimal]:
    """Exact within the result's digits; a quotient that goes on for ever fails."""
    context, scale = decimals.exact(result.precision), result.scale
    compute = {
        "+": context.add,
        "-": context.subtract,
        "*": context.multiply,
        "/": context.divide,
        "%": _remainder,
    }[operator]

    def apply(left: Decimal, right: Decimal) -> Decimal:
        if left is None or right is None:
            raise FunctionFailed(f"NULL {operator} …")
        try:
            return decimals.with_exact_scale(compute(left, right), scale)
        except decimal.Inexact:
            raise FunctionFailed("Rounding necessary") from None
        except decimal.DecimalException:
            raise FunctionFailed("Division by zero" if not right else "The result is no number") from None

    return apply


def _remainder(left: Decimal, right: Decimal) -> Decimal:
    return decimals.WIDE.remainder(left, right)


def decimal_of_double(value: float) -> Decimal:
    return decimals.parsed(repr(value))


def truth(value: bool | None) -> bool:
    """A condition that is NULL has no answer: Java fails there, too."""
    if value is None:
        raise FunctionFailed("a condition is NULL")
    return value


def element(items: list[Any], index: int) -> Any:
    """The first is 1, the last is -1, and what is beyond is NULL."""
    at = index - 1 if index >= 0 else len(items) + index
    return items[at] if 0 <= at < len(items) else None


def matches_any(value: Any, items: tuple[Any, ...]) -> bool:
    """IN: what is NULL never matches, inside of arrays and the like it matches NULL."""
    if value is None:
        return False
    return any(item is not None and _matches(value, item) for item in items)


def _matches(value: Any, item: Any) -> bool:
    if isinstance(value, str) != isinstance(item, str):
        return _matches_text(value, item) if isinstance(item, str) else _matches_text(item, value)
    return bool(value == item)


def _matches_text(value: Any, text: str) -> bool:
    if isinstance(value, bool):
        return exact_boolean(text.strip()) is value
    if isinstance(value, int | float | Decimal):
        try:
            return decimals.parsed(text.strip()) == Decimal(str(value))
        except FunctionFailed:
            return False
    return False


@lru_cache(1024)
def like_matcher(pattern: str, escape: str | None) -> Callable[[str], bool]:
    """`%` is any text and `_` any character, neither goes over the end of a line."""
    parts: list[str] = [""]  # texts between the %
    plain = True
    expression = ""
    escaped = False
    for character in pattern:
        if not escaped and character == escape:
            escaped = True
            continue
        if not escaped and character == "%":
            parts.append("")
            expression += f"{_ANY_CHARACTER}*"
        elif not escaped and character == "_":
            plain = False
            expression += _ANY_CHARACTER
        else:
            parts[-1] += character
            expression += re2.escape(character)
        escaped = False
    if escaped:
        raise FunctionFailed("LIKE pattern must not end with escape character")
    compiled = re2.compile(expression)
    if not plain:
        return lambda text: compiled.fullmatch(text) is not None
    return lambda text: (
        _matches_parts(text, parts)
        if text.isprintable() or _LINE_ENDS.isdisjoint(text)
        else compiled.fullmatch(text) is not None
    )


def _matches_parts(text: str, parts: list[str]) -> bool:
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        return text == first
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in parts[1:-1]:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def like(text: str, pattern: str, escape: str | None) -> bool:
    return like_matcher(pattern, escape)(text)
