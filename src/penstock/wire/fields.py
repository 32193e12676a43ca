"""The few field forms that the hand-written codecs share: varints, tagged fields, strings, counts, topic keys.

Reading past the end raises IndexError or struct.error, bad UTF-8 UnicodeDecodeError: the callers turn them into Malformed. No
read makes more than there are bytes for.
"""

import struct
from typing import Final

from penstock.wire import primitives
from penstock.wire.errors import Malformed
from penstock.wire.primitives import read_uvarint, uvarint

I16: Final = struct.Struct(">h")
I32: Final = struct.Struct(">i")


def skip_tags(frame: memoryview, offset: int) -> int:
    """Step over tagged fields that mean nothing to us; mostly there are none."""
    if frame[offset] == 0:
        return offset + 1
    return primitives.skip_tags(frame, offset, len(frame))


def read_string(frame: memoryview, offset: int, *, flexible: bool) -> tuple[str | None, int]:
    """A nullable string in its compact or its old form."""
    if flexible:
        length, offset = read_uvarint(frame, offset)
        length -= 1
    else:
        (length,) = I16.unpack_from(frame, offset)
        offset += 2
    if length < 0:
        return None, offset
    end = offset + length
    if end > len(frame):
        raise Malformed("a string runs past the end of the frame")
    return str(frame[offset:end], "utf-8"), end


def read_count(frame: memoryview, offset: int, *, flexible: bool) -> tuple[int, int]:
    """An array's count: it may be wrong, but never larger than the bytes that are left for it. Null counts as empty."""
    if flexible:
        count, offset = read_uvarint(frame, offset)
        count -= 1
    else:
        (count,) = I32.unpack_from(frame, offset)
        offset += 4
    if count > len(frame) - offset or count < -1:
        raise Malformed(f"an array of {count} in {len(frame) - offset} bytes")
    return max(count, 0), offset


def read_topic_key(frame: memoryview, offset: int, *, by_id: bool, flexible: bool) -> tuple[str | bytes, int]:
    """A topic's id of 16 bytes, or its name."""
    if by_id:
        if offset + 16 > len(frame):
            raise Malformed("a topic id runs past the end of the frame")
        return bytes(frame[offset : offset + 16]), offset + 16
    name, offset = read_string(frame, offset, flexible=flexible)
    if name is None:
        raise Malformed("a topic without a name")
    return name, offset


def write_topic_key(out: bytearray, key: str | bytes, *, flexible: bool) -> None:
    if isinstance(key, bytes):
        out += key
        return
    name = key.encode()
    out += uvarint(len(name) + 1) if flexible else I16.pack(len(name))
    out += name
