"""Keys as bytes whose order is the order of the keys, for ranges in a view.

Each value is behind 01, NULL is 00 alone, so NULL comes first. Numbers have their sign turned; texts end with 00 00 (a 00 inside
is 00 ff), so that "a" comes before "ab" also when another value follows.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Final

from penstock.streams.plan.schema import Column
from penstock.streams.plan.types import Kind, SqlType

_LONG: Final = struct.Struct(">Q")
_DOUBLE: Final = struct.Struct(">d")
_TURNED: Final = 1 << 63
_ALL: Final = (1 << 64) - 1
_NULL: Final = b"\x00"
_THERE: Final = b"\x01"
_END: Final = b"\x00\x00"
AFTER: Final = b"\xff"
"""Greater than any key, and behind a key greater than all that begin with it."""

Order = Callable[[Any], bytes]


def key_order(columns: Iterable[Column]) -> Callable[[tuple[Any, ...]], bytes]:
    """A function for keys of these columns."""
    orders = [_optional(_order(column.type)) for column in columns]
    if len(orders) == 1:
        [order] = orders
        return lambda key: order(key[0])
    return lambda key: b"".join([each(value) for each, value in zip(orders, key, strict=True)])


def _optional(order: Order) -> Order:
    return lambda value: _NULL if value is None else _THERE + order(value)


def _order(type_: SqlType) -> Order:
    match type_.kind:
        case Kind.BOOLEAN:
            return lambda value: b"\x01" if value else b"\x00"
        case Kind.STRING:
            return lambda value: _ended(value.encode("utf-8", "surrogatepass"))
        case Kind.BYTES:
            return _ended
        case Kind.DOUBLE:
            return _double
        case Kind.DECIMAL:
            return lambda value: _decimal(value, type_.scale)
        case Kind.ARRAY if type_.element is not None:
            item = _optional(_order(type_.element))
            return lambda value: b"".join([b"\x01" + item(each) for each in value]) + b"\x00"
        case Kind.STRUCT:
            fields = [(name, _optional(_order(each))) for name, each in type_.fields]
            return lambda value: b"".join([order(value.get(name)) for name, order in fields])
        case _:
            return lambda value: _LONG.pack((value + _TURNED) & _ALL)


def _ended(data: bytes) -> bytes:
    return data.replace(b"\x00", b"\x00\xff") + _END


def _double(value: float) -> bytes:
    bits = int.from_bytes(_DOUBLE.pack(value + 0.0), "big")  # -0.0 becomes 0.0
    return _LONG.pack(bits ^ _ALL if bits & _TURNED else bits | _TURNED)


def _decimal(value: Decimal, scale: int) -> bytes:
    """All of one type have one scale: the numbers without a point, longer ones behind shorter ones."""
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)) + "0" * (int(exponent) + scale))
    data = number.to_bytes((number.bit_length() + 7) // 8, "big")
    if not sign or not number:
        return bytes([0x80 + len(data)]) + data
    return bytes([0x7F - len(data)]) + bytes(byte ^ 0xFF for byte in data)
