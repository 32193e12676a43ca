"""Which message of a file a value is: the numbers before its bytes.

    count, then a number for each level, as zig-zag varints: 04 02 00 is the first message inside the second
    00 alone                                                 the first message of the file, which is nearly always meant

Messages are counted as they are written in the registered text: the entries of a `map<…>` and groups do not count, those of
maps that are written out do. Clients that register descriptors have them written out.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from penstock.schemas.model import InvalidValue
from penstock.schemas.protobuf.elements import File, Message
from penstock.schemas.protobuf.reading import MAX_NESTED_MESSAGES

FIRST: Final = b"\x00"
_MAX_VARINT_BYTES: Final = 5


class Read(NamedTuple):
    indexes: tuple[int, ...]
    end: int
    """Where the message begins."""


class MessageIndexes:
    """Of one file."""

    def __init__(self, file: File) -> None:
        self._messages = file.messages
        self._package = file.package

    def name(self, indexes: tuple[int, ...]) -> str:
        """The full name of the message. InvalidValue."""
        messages = self._messages
        names = [self._package] if self._package else []
        for index in indexes:
            if not 0 <= index < len(messages):
                raise InvalidValue(f"the schema has no message {list(indexes)}")
            names.append(messages[index].name)
            messages = messages[index].messages
        return ".".join(names)

    def of(self, full_name: str) -> tuple[int, ...] | None:
        """None: the file does not define it."""
        local = full_name
        if self._package:
            local = full_name.removeprefix(f"{self._package}.")
            if local == full_name:
                return None
        messages = self._messages
        indexes = []
        for part in local.split("."):
            index = _index(messages, part)
            if index is None:
                return None
            indexes.append(index)
            messages = messages[index].messages
        return tuple(indexes)


def _index(messages: list[Message], name: str) -> int | None:
    return next((index for index, each in enumerate(messages) if each.name == name), None)


def written(indexes: tuple[int, ...]) -> bytes:
    if indexes == (0,):
        return FIRST
    return b"".join(map(_varint, (len(indexes), *indexes)))


def read(data: bytes | memoryview) -> Read:
    """InvalidValue."""
    count, at = _read_varint(data, 0)
    if count == 0:
        return Read((0,), at)
    if not 0 < count <= MAX_NESTED_MESSAGES:
        raise InvalidValue("it does not begin with the indexes of a message")
    indexes = []
    for _ in range(count):
        index, at = _read_varint(data, at)
        indexes.append(index)
    return Read(tuple(indexes), at)


def _varint(number: int) -> bytes:
    left = number << 1
    made = bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    made.append(left)
    return bytes(made)


def _read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 7 * _MAX_VARINT_BYTES, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
    raise InvalidValue("it does not begin with the indexes of a message")
