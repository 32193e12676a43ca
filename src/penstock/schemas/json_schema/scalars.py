"""Strings, numbers, enumerations and constants."""

from __future__ import annotations

from decimal import Context, Decimal, DecimalException
from typing import Final

from penstock.schemas.json_schema.differences import Findings
from penstock.schemas.json_schema.nodes import Const, Enum, Number, String
from penstock.schemas.json_schema.pairs import compare_limits

_EXACT: Final = Context(prec=1_000)
"""Floats have at most about 630 digits between the highest and the lowest."""


def compare_strings(old: String, new: String, found: Findings) -> None:
    compare_limits("MAX_LENGTH", "maxLength", old.max_length, new.max_length, found)
    compare_limits("MIN_LENGTH", "minLength", old.min_length, new.min_length, found)
    if old.pattern != new.pattern:
        change = "ADDED" if old.pattern is None else "REMOVED" if new.pattern is None else "CHANGED"
        found.add(f"PATTERN_{change}", "pattern")


def compare_numbers(old: Number, new: Number, found: Findings) -> None:
    compare_limits("MAXIMUM", "maximum", old.maximum, new.maximum, found)
    compare_limits("MINIMUM", "minimum", old.minimum, new.minimum, found)
    compare_limits(
        "EXCLUSIVE_MAXIMUM", "exclusiveMaximum", old.exclusive_maximum, new.exclusive_maximum, found
    )
    compare_limits(
        "EXCLUSIVE_MINIMUM", "exclusiveMinimum", old.exclusive_minimum, new.exclusive_minimum, found
    )
    if old.multiple_of != new.multiple_of:
        found.add(f"MULTIPLE_OF_{_multiples(old.multiple_of, new.multiple_of)}", "multipleOf")
    if old.is_integer != new.is_integer:
        found.add("TYPE_EXTENDED" if old.is_integer else "TYPE_NARROWED")


def compare_enums(old: Enum, new: Enum, found: Findings) -> None:
    if old.values != new.values:
        change = (
            "EXTENDED" if new.values >= old.values else "NARROWED" if old.values >= new.values else "CHANGED"
        )
        found.add(f"ENUM_ARRAY_{change}", "enum")


def compare_constants(old: Const, new: Const, found: Findings) -> None:
    if old.value != new.value:
        found.add("ENUM_ARRAY_CHANGED", "const")


def _multiples(old: Decimal | None, new: Decimal | None) -> str:
    if old is None:
        return "ADDED"
    if new is None:
        return "REMOVED"
    if _divides(old, new):
        return "EXPANDED"
    return "REDUCED" if _divides(new, old) else "CHANGED"


def _divides(divisor: Decimal, number: Decimal) -> bool:
    try:
        return not divisor.is_zero() and _EXACT.remainder(number, divisor).is_zero()
    except DecimalException:
        return False
