"""State and internal records as bytes: msgpack, with DECIMAL as an extension of its own.

Equal values of one type give equal bytes, so `pack` also makes the keys of stores. A tuple comes back as a list.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import msgpack

DECIMAL: Final = 1
BIG_INTEGER: Final = 2
HALVES: Final = "surrogatepass"
"""JSON may have half of a pair of surrogates in a text. It comes back as it was."""


def _extension(value: Any) -> Any:
    if isinstance(value, Decimal):
        return msgpack.ExtType(DECIMAL, str(value).encode())
    if isinstance(value, int):  # msgpack asks only for those beyond 64 bits
        return msgpack.ExtType(BIG_INTEGER, str(value).encode())
    raise TypeError(f"no state is made of {type(value).__name__}")


def _extended(code: int, data: bytes) -> Any:
    if code == DECIMAL:
        return Decimal(data.decode())
    if code == BIG_INTEGER:
        return int(data)
    raise ValueError(f"state of an unknown kind: {code}")


# Its call runs no Python code, so threads may share it.
_plain: Final = msgpack.Packer(unicode_errors=HALVES).pack


def pack(value: Any) -> bytes:
    try:
        packed: bytes = _plain(value)
    except (TypeError, OverflowError):  # a DECIMAL, or beyond 64 bits
        packed = msgpack.packb(value, default=_extension, unicode_errors=HALVES)
    return packed


def unpack(data: bytes) -> Any:
    return msgpack.unpackb(data, ext_hook=_extended, strict_map_key=False, unicode_errors=HALVES)
