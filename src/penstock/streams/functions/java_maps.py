"""The order in which a Java HashMap gives its keys: results that are lists of a map's parts are compared with it."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

_WORD = 0xFFFFFFFF


def java_hash(value: Any) -> int:
    """Object.hashCode of a plain value; 0 for what has none of its own here."""
    match value:
        case bool():
            return 1231 if value else 1237
        case str():
            code = 0
            for (unit,) in struct.iter_unpack("<H", value.encode("utf-16-le", "surrogatepass")):
                code = code * 31 + unit & _WORD
            return code
        case int():
            return (value & _WORD) ^ (value >> 32 & _WORD) if value >= 0 else value & _WORD
        case float():
            bits: int = struct.unpack(">Q", struct.pack(">d", value))[0]
            return (bits ^ bits >> 32) & _WORD
        case _:
            return 0


def java_order(keys: Iterable[Any]) -> list[Any]:
    """Keys as a HashMap has them that was made for just so many, as those are that come from JSON and from MAP(…)."""
    known = list(keys)
    if len(known) < 2:
        return known
    buckets = 1 << (len(known) - 1).bit_length()
    if len(known) > buckets * 3 // 4:
        buckets *= 2

    def bucket(key: Any) -> int:
        code = java_hash(key)
        return (code ^ code >> 16) & (buckets - 1)

    return sorted(known, key=bucket)
