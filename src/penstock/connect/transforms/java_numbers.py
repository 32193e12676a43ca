"""Numbers as Java casts and parses them: what does not fit is cut, not refused."""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from typing import Any, Final

_DECIMAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_FLOAT: Final = re.compile(r"([+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))[fFdD]?", re.ASCII)
MAX_EXPONENT: Final = 5_000
"""Of a text that becomes an integer: `1e999999999` would be written out digit by digit."""


def wrapped(number: int, bits: int) -> int:
    """Its lowest bits, with a sign."""
    half = 1 << (bits - 1)
    return ((number + half) & ((1 << bits) - 1)) - half


def integer_of(number: Any, bits: int) -> int:
    """`byteValue`, `shortValue`, `intValue`, `longValue` of a number."""
    if isinstance(number, float):
        # First to an int or a long, where too much becomes the greatest; then its lowest bits.
        first = 64 if bits == 64 else 32
        if math.isnan(number):
            return 0
        limit = 1 << (first - 1)
        number = max(-limit, min(limit - 1, int(max(-1e300, min(1e300, number)))))
    return wrapped(int(number), bits)


def float64_of(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def parsed_integer(text: str, bits: int) -> int:
    """`Byte.parseByte` and its siblings. ValueError."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal():
        raise ValueError(text)
    if len(digits) > 100:
        digits = digits.lstrip("0")[:100] or "0"
    number = -int(digits) if text[0] == "-" else int(digits)
    if wrapped(number, bits) != number:
        raise ValueError(text)
    return number


def parsed_float(text: str) -> float:
    """`Double.parseDouble`, but for its hexadecimal form. ValueError."""
    found = _FLOAT.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    return float(found.group(1))


def parsed_decimal(text: str) -> Decimal:
    """`new BigDecimal(text)`. ValueError."""
    if _DECIMAL.fullmatch(text) is None:
        raise ValueError(text)
    try:
        found = Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None
    if abs(found.adjusted()) > MAX_EXPONENT:
        raise ValueError(text)
    return found
