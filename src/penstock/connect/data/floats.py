"""Floats of four bytes. Python has those of eight only: a FLOAT32 value is the eight-byte one that is nearest to what four bytes
hold, such as 0.10000000149011612 for 0.1. As text it is 0.1 again, as in Java."""

from __future__ import annotations

import math
import struct
from typing import Final

from penstock.model.java_values import java_float

_SINGLE: Final = struct.Struct("<f")


def to_single(value: float) -> float:
    """Java's cast to a float."""
    try:
        found: float = _SINGLE.unpack(_SINGLE.pack(value))[0]
        return found
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def shortest(value: float) -> float:
    """With the fewest digits that are the same four bytes: 0.1 for 0.10000000149011612."""
    exact = to_single(value)
    if not math.isfinite(exact):
        return exact
    for digits in (6, 7, 8, 9):
        short = float(f"{exact:.{digits}g}")
        if to_single(short) == exact:
            return short
    return exact


def float_text(value: float, *, is_single: bool = False) -> str:
    """Java's Float.toString and Double.toString: 0.5, 1.0E10, NaN."""
    return java_float(shortest(value) if is_single else value)
