"""Rules that several formats share: what fits a type, and how Java writes and reads it."""

from __future__ import annotations

import binascii
import math
import re
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final

from penstock.model.java_values import java_float
from penstock.streams.plan.types import Kind, SqlType

MILLIS_OF_A_DAY: Final = 24 * 3600 * 1000
INTEGER_BOUND: Final = 1 << 31
BIGINT_BOUND: Final = 1 << 63
WIDE: Final = Context(prec=1000)
"""For decimals whose digits must not be rounded."""
_EXACT: Final = Context(prec=1000, traps=[InvalidOperation, Inexact])
_JAVA_DOUBLE: Final = re.compile(
    r"[\x00-\x20]*([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?[\x00-\x20]*"
)
_JAVA_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_JAVA_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def fitted(value: Decimal, type_: SqlType) -> Decimal:
    """With all the decimals of its type. ValueError where that would round it, or where it is too large."""
    if value.copy_abs() >= Decimal(1).scaleb(type_.precision - type_.scale):
        raise ValueError(
            f"Numeric field overflow: A field with precision {type_.precision} and scale {type_.scale} must round to an "
            f"absolute value less than 10^{type_.precision - type_.scale}. Got {_plain(value)}"
        )
    try:
        return value.quantize(Decimal(1).scaleb(-type_.scale), context=_EXACT)
    except (Inexact, InvalidOperation):
        digits, scale = len(value.as_tuple().digits), -int(value.as_tuple().exponent)
        raise ValueError(
            f"Cannot fit decimal '{_plain(value)}' into {type_} without rounding. (Requires {digits},{scale})"
        ) from None


def _plain(value: Decimal) -> str:
    """For a message: not a million zeros."""
    return f"{value:f}" if abs(value.adjusted()) < 100 else str(value)[:100]


def decimal_of(text: str, type_: SqlType) -> Decimal:
    if _JAVA_DECIMAL.fullmatch(text) is None:
        raise ValueError(f"'{text[:40]}' is not a decimal")
    return fitted(Decimal(text), type_)


def double_of(text: str) -> float:
    """As Java's Double.parseDouble, but for hexadecimal."""
    found = _JAVA_DOUBLE.fullmatch(text)
    if found is None:
        raise ValueError(f"'{text[:40]}' is not a number")
    return float(found[1].replace("Infinity", "inf"))


def whole_of(text: str, bound: int) -> int:
    """As Java's Integer.parseInt and Long.parseLong."""
    if _JAVA_WHOLE.fullmatch(text) is None or not -bound <= (number := int(text)) < bound:
        raise ValueError(f"'{text[:40]}' is not a whole number of {bound.bit_length()} bits")
    return number


def wrapped(number: int, bound: int) -> int:
    """The lowest bits, as Java's intValue and longValue take them."""
    return (number + bound) % (2 * bound) - bound


def unscaled_bytes(value: Decimal, scale: int) -> bytes:
    """The number without its point, in two's complement, the highest byte first."""
    number = int(value.scaleb(scale, WIDE).to_integral_exact(context=_EXACT))
    return number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)


def time_of(milliseconds: int) -> int:
    if not 0 <= milliseconds <= MILLIS_OF_A_DAY:
        raise ValueError(
            f"Time values must use number of milliseconds greater than 0 and less than {MILLIS_OF_A_DAY}."
        )
    return milliseconds


def bytes_of(text: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        raise ValueError(f"Value is not a valid Base64 encoded string: {text[:40]}") from None


def base64_of(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


def double_text(value: float) -> str:
    """As Java writes a double. The usual ones are as Python writes them."""
    if 1e-3 <= value < 1e7 or -1e7 < value <= -1e-3:
        return repr(float(value))
    return java_float(value)


def is_finite(value: float) -> bool:
    return math.isfinite(value)


def has_kind(type_: SqlType | None, *kinds: Kind) -> bool:
    """Whether the type is of one of these kinds, or has one inside."""
    if type_ is None:
        return False
    return (
        type_.kind in kinds
        or has_kind(type_.key, *kinds)
        or has_kind(type_.element, *kinds)
        or any(has_kind(each, *kinds) for _, each in type_.fields)
    )


def text_of(value: Any) -> str:
    """Of a scalar, as Java's String.valueOf gives it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return double_text(value) if isinstance(value, float) else str(value)
