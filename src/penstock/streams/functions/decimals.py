"""Exact decimals with a fixed number of digits, as Java's BigDecimal computes them."""

from __future__ import annotations

import decimal
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Final

from penstock.streams.functions.refusals import FunctionFailed, TypeRefused
from penstock.streams.plan.types import Kind, SqlType
from penstock.streams.plan.types import decimal as decimal_type

_TRAPS: Final = [decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow]
WIDE: Final = decimal.Context(prec=100_000, rounding=ROUND_HALF_UP, Emax=999_999, Emin=-999_999, traps=_TRAPS)
INTEGER_AS_DECIMAL: Final = decimal_type(10, 0)
BIGINT_AS_DECIMAL: Final = decimal_type(19, 0)
MAX_PRECISION: Final = 10_000


@lru_cache(256)
def exact(precision: int) -> decimal.Context:
    """Results that need more digits fail, as with Java's RoundingMode.UNNECESSARY."""
    return decimal.Context(prec=precision, Emax=999_999, Emin=-999_999, traps=[*_TRAPS, decimal.Inexact])


@lru_cache(256)
def unit(scale: int) -> Decimal:
    return Decimal(1).scaleb(-scale, context=WIDE)


def with_scale(value: Decimal, scale: int, rounding: str = ROUND_HALF_UP) -> Decimal:
    """Zero has no sign: Java's decimals do not know one."""
    rescaled = value.quantize(unit(scale), rounding=rounding, context=WIDE)
    return rescaled if rescaled else rescaled.copy_abs()


def negated(value: Decimal) -> Decimal:
    return value.copy_negate() if value else value


def with_exact_scale(value: Decimal, scale: int) -> Decimal:
    rescaled = with_scale(value, scale)
    if rescaled != value:
        raise FunctionFailed("Rounding necessary")
    return rescaled


def plain(value: Decimal) -> str:
    return format(value, "f")


def scale_of(value: Decimal) -> int:
    return -int(value.as_tuple().exponent)


def precision_of(value: Decimal) -> int:
    return len(value.as_tuple().digits)


def check_parameters(precision: int, scale: int) -> None:
    if precision < 1:
        raise TypeRefused(f"DECIMAL precision must be >= 1: DECIMAL({precision},{scale})")
    if scale < 0:
        raise TypeRefused(f"DECIMAL scale must be >= 0: DECIMAL({precision},{scale})")
    if precision > MAX_PRECISION:
        raise TypeRefused(f"DECIMAL precision must be <= {MAX_PRECISION}: DECIMAL({precision},{scale})")
    if precision < scale:
        raise TypeRefused(f"DECIMAL precision must be >= scale: DECIMAL({precision},{scale})")


def ensure_max(value: Decimal, precision: int, scale: int) -> None:
    digits = precision - scale
    if not value.is_finite() or (value and value.adjusted() >= digits):
        raise FunctionFailed(
            f"Numeric field overflow: A field with precision {precision} and scale {scale} "
            f"must round to an absolute value less than 10^{digits}. Got {plain(value)}"
        )


def ensure_fit(value: Decimal, type_: SqlType) -> Decimal:
    """As it is, with the type's scale; what would need rounding is refused."""
    ensure_max(value, type_.precision, type_.scale)
    rescaled = with_scale(value, type_.scale)
    if rescaled != value:
        raise FunctionFailed(
            f"Cannot fit decimal '{plain(value)}' into DECIMAL({type_.precision}, {type_.scale}) without rounding. "
            f"(Requires {precision_of(value)},{scale_of(value)})"
        )
    return rescaled


def from_int(value: int, precision: int, scale: int) -> Decimal:
    decimal_value = Decimal(value)
    ensure_max(decimal_value, precision, scale)
    return with_scale(decimal_value, scale)


@lru_cache(256)
def from_double(value: float, precision: int, scale: int) -> Decimal:
    if value != value or value in (float("inf"), float("-inf")):
        raise FunctionFailed("Infinite or NaN")
    context = decimal.Context(
        prec=precision, rounding=ROUND_HALF_UP, Emax=999_999, Emin=-999_999, traps=_TRAPS
    )
    rounded = context.create_decimal_from_float(value)
    ensure_max(rounded, precision, scale)
    return with_scale(rounded, scale)


def from_decimal(value: Decimal, precision: int, scale: int) -> Decimal:
    if scale_of(value) == scale and precision_of(value) == precision:
        return value
    ensure_max(value, precision, scale)
    return with_scale(value, scale)


def from_text(value: str, precision: int, scale: int) -> Decimal:
    number = parsed(value.strip())
    ensure_max(number, precision, scale)
    return with_scale(number, scale)


def parsed(text: str) -> Decimal:
    """What Java's BigDecimal takes: no spaces, no underscores, no Infinity."""
    if not text.isascii() or "_" in text or len(text) > MAX_PRECISION or text != text.strip():
        raise FunctionFailed(f"Not a number: {text[:40]}")
    try:
        value = WIDE.create_decimal(text)
    except decimal.InvalidOperation:
        raise FunctionFailed(f"Not a number: {text[:40]}") from None
    if not value.is_finite() or abs(value.adjusted()) > MAX_PRECISION:
        raise FunctionFailed(f"Not a number: {text[:40]}")
    return value if value else value.copy_abs()


def type_of_value(value: Decimal) -> SqlType:
    if scale_of(value) < 0:
        value = with_scale(value, 0)
    scale = scale_of(value)
    if -1 < value < 1:
        return decimal_type(scale + 1, scale)
    return decimal_type(precision_of(value), scale)


def as_decimal(type_: SqlType) -> SqlType:
    """The DECIMAL that holds every value of a type."""
    match type_.kind:
        case Kind.DECIMAL:
            return type_
        case Kind.INTEGER:
            return INTEGER_AS_DECIMAL
        case Kind.BIGINT:
            return BIGINT_AS_DECIMAL
        case kind:
            raise TypeRefused(f"Cannot convert {kind.value} to DECIMAL.")


def widened(one: SqlType, other: SqlType) -> SqlType:
    left, right = as_decimal(one), as_decimal(other)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    scale = max(left.scale, right.scale)
    return decimal_type(whole + scale, scale)


def result_of(operator: str, left: SqlType, right: SqlType) -> SqlType:
    """The type of an operator's result."""
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    match operator:
        case "+" | "-":
            precision, scale = max(s1, s2) + max(p1 - s1, p2 - s2) + 1, max(s1, s2)
        case "*":
            precision, scale = p1 + p2 + 1, s1 + s2
        case "/":
            scale = max(6, s1 + p2 + 1)
            precision = p1 - s1 + s2 + scale
        case _:
            precision, scale = min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2)
    check_parameters(precision, scale)
    return decimal_type(precision, scale)
