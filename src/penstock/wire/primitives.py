"""The pieces that the codec's compiled functions call: varints, tags, arrays of strings, and the complaint.

`b` is the buffer, `o` the offset, `n` the end of the buffer. Reading past the end raises IndexError or
struct.error, which `codec.decode` turns into Malformed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

from penstock.wire.errors import Malformed

MAX_STRING_BYTES = 32767

MAX_UNKNOWN_TAGS = 16
"""Of a struct. Clients that are newer than we are may send a few. Each takes three bytes at least, and longer than that to step
over: a frame full of them, which needs no login, would stop the loop."""

_SHORT = struct.Struct(">h")

Buffer: TypeAlias = "bytes | memoryview"


def wrong_length(field: str, length: int) -> Malformed:
    return Malformed(f"{field} has a length of {length}, which is not allowed, or more than the frame has")


def wrong_size(field: str) -> Malformed:
    return Malformed(f"{field} has another size than its tag says")


def read_uvarint(b: Buffer, o: int) -> tuple[int, int]:
    """An unsigned varint of at most five bytes and 32 bits; IndexError past the end."""
    value = b[o]
    if value < 128:
        return value, o + 1
    value = shift = 0
    while True:
        byte = b[o]
        o += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 28:
            raise Malformed("a varint is longer than five bytes")
    if value > 0xFFFFFFFF:
        raise Malformed("a varint is larger than 32 bits")
    return value, o


def read_tag(b: Buffer, o: int, n: int) -> tuple[int, int, int]:
    """The tag, the offset of its value, and the offset after it."""
    tag, o = read_uvarint(b, o)
    size_bytes, o = read_uvarint(b, o)
    if size_bytes > n - o:
        raise Malformed(f"tag {tag} has a size of {size_bytes} bytes, more than there are")
    return tag, o, o + size_bytes


def skip_tags(b: Buffer, o: int, n: int) -> int:
    count, o = read_uvarint(b, o)
    if count > MAX_UNKNOWN_TAGS:
        raise Malformed(
            f"{count} tagged fields that are not known are more than the {MAX_UNKNOWN_TAGS} there may be"
        )
    for _ in range(count):
        _, _, o = read_tag(b, o, n)
    return o


def read_compact_strings(b: bytes, o: int, n: int, count: int) -> tuple[list[str], int]:
    found = []
    for _ in range(count):
        length, o = read_uvarint(b, o)
        end = o + length - 1
        if not 0 < length <= MAX_STRING_BYTES + 1 or end > n:
            raise wrong_length("a string in an array", length - 1)
        found.append(b[o:end].decode())
        o = end
    return found, o


def read_legacy_strings(b: bytes, o: int, n: int, count: int) -> tuple[list[str], int]:
    found = []
    for _ in range(count):
        (length,) = _SHORT.unpack_from(b, o)
        o += 2
        end = o + length
        if length < 0 or end > n:
            raise wrong_length("a string in an array", length)
        found.append(b[o:end].decode())
        o = end
    return found, o


_ONE_BYTE = [bytes([value]) for value in range(128)]


def uvarint(value: int) -> bytes:
    if value < 128:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def long_string_length(length_plus_one: int) -> bytes:
    if length_plus_one > MAX_STRING_BYTES + 1:
        raise ValueError(f"a string of {length_plus_one - 1} bytes is longer than {MAX_STRING_BYTES}")
    return uvarint(length_plus_one)


def write_compact_strings(values: Sequence[str], out: bytearray) -> None:
    for value in values:
        encoded = value.encode()
        out += long_string_length(len(encoded) + 1)
        out += encoded


def write_legacy_strings(values: Sequence[str], out: bytearray) -> None:
    for value in values:
        encoded = value.encode()
        out += _SHORT.pack(len(encoded))
        out += encoded


# What the compiled functions see beside their own names.
RUNTIME: dict[str, Any] = {
    "new": object.__new__,
    "unpack_from": struct.unpack_from,
    "pack": struct.pack,
    "UVARINTS": _ONE_BYTE,
    "uvarint": uvarint,
    "long_string_length": long_string_length,
    "read_uvarint": read_uvarint,
    "read_tag": read_tag,
    "skip_tags": skip_tags,
    "wrong_length": wrong_length,
    "wrong_size": wrong_size,
    "read_compact_strings": read_compact_strings,
    "read_legacy_strings": read_legacy_strings,
    "write_compact_strings": write_compact_strings,
    "write_legacy_strings": write_legacy_strings,
}
