"""In which order values of a type stand: as Java compares them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from penstock.streams.plan.types import Kind, SqlType


def order_key(type_: SqlType) -> Callable[[Any], Any]:
    """A key for sorting: bytes are signed, NaN is the largest number, -0.0 comes before 0.0, texts go by UTF-16."""
    match type_.kind:
        case Kind.DOUBLE:
            return _double_key
        case Kind.BYTES:
            return signed
        case Kind.STRING:
            return text_key
        case _:
            return _itself


def _itself(value: Any) -> Any:
    return value


def _double_key(value: float) -> tuple[bool, float, float]:
    if value != value:
        return (True, 0.0, 0.0)
    return (False, value, math.copysign(1.0, value))


_SIGNED = bytes((value + 128) % 256 for value in range(256))


def signed(value: bytes) -> bytes:
    """Bytes in the order of signed bytes."""
    return value.translate(_SIGNED)


def text_key(value: str) -> bytes:
    """Code points beyond the first plane come before U+E000: Java compares halves of UTF-16."""
    return value.encode("utf-16-be", "surrogatepass")
