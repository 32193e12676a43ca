"""Reads and writes messages of any version; the only place, with `codec_source.py`, that knows versions.

For each struct and version the first use compiles a function that does just that, and keeps it.

Nothing that arrives is believed: a length must fit in what is left before anything is made of it, so what a
message costs is bounded by its own size, and whatever is wrong raises `Malformed`.
"""

from __future__ import annotations

import struct
from typing import TypeVar

from penstock.wire.codec_source import decoder, decoders, encoder, encoders
from penstock.wire.errors import Malformed
from penstock.wire.schema import Struct

T = TypeVar("T", bound=Struct)


def decode(
    cls: type[T], version: int, buffer: bytes | bytearray | memoryview, offset: int = 0
) -> tuple[T, int]:
    """The message at `offset`, and the offset after it; raises Malformed if there is none.

    The message shares no memory with the buffer. A buffer that is not `bytes` is copied whole,
    so give a view of the message, not of much more.
    """
    read = decoders.get((cls, version)) or decoder(cls, version)
    data = buffer if type(buffer) is bytes else bytes(buffer)
    try:
        return read(data, offset, len(data))
    except (struct.error, IndexError):
        raise Malformed(f"{cls.__name__} version {version} is cut off") from None
    except UnicodeDecodeError:
        raise Malformed(f"{cls.__name__} version {version} has a string that is not UTF-8") from None


def encode(message: Struct, version: int) -> bytes:
    """The bytes of the message; fields that this version does not have are left out."""
    out = bytearray()
    encode_into(message, version, out)
    return bytes(out)


def encode_into(message: Struct, version: int, out: bytearray) -> None:
    """Appends the bytes of the message. After an error `out` may hold a part of them."""
    cls = message.__class__
    write = encoders.get((cls, version)) or encoder(cls, version)
    try:
        write(message, out)
    except struct.error as error:
        raise ValueError(f"{cls.__name__} version {version}: {error}") from None
