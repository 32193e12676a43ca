"""Avro's bytes become JSON, within bounds whatever the bytes say.

fastavro reads faster, but a type that contains itself, in bytes made for it, overflows its stack; and an array whose items take
no bytes may say that it has any number of them. Those types are read here.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any, Final

from penstock.model.java_values import java_float
from penstock.schemas.avro.nodes import MAX_VALUE_DEPTH, Array, Enum, Fixed, Map, Node, Record, Union
from penstock.schemas.model import InvalidValue

MAX_EMPTY_ITEMS: Final = 100_000
"""Of arrays whose items take no bytes, in one value."""
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")
_MAX_VARINT_BITS: Final = 63
_LARGEST_SINGLE: Final = 3.4e38


def single(value: float) -> float | str:
    """A float of four bytes with the fewest digits that are the same four bytes: 0.1 and not 0.10000000149011612."""
    if math.isfinite(value):
        for digits in (6, 7, 8):
            short = float(f"{value:.{digits}g}")
            if abs(short) < _LARGEST_SINGLE and _FLOAT.unpack(_FLOAT.pack(short))[0] == value:
                return short
    return double(value)


def double(value: float) -> float | str:
    """JSON has no NaN: as Java's Avro, it is a string."""
    return value if math.isfinite(value) else java_float(value)


class Reading:
    """Of one value."""

    def __init__(self, data: bytes, *, is_plain: bool) -> None:
        self._data = data
        self._is_plain = is_plain
        self._position = 0
        self._depth = 0
        self._empty_items = 0
        self._readers: dict[str, Callable[[Node], Any]] = {
            "null": lambda node: None,
            "boolean": self._boolean,
            "int": self._long,
            "long": self._long,
            "float": lambda node: single(_FLOAT.unpack(self._take(4))[0]),
            "double": lambda node: double(_DOUBLE.unpack(self._take(8))[0]),
            "bytes": lambda node: self._take(self._length()).decode("latin-1"),
            "string": self._string,
        }

    def value(self, root: Node) -> Any:
        """InvalidValue."""
        found = self._node(root)
        if self._position < len(self._data):
            raise InvalidValue(f"{len(self._data) - self._position} bytes are left after the value")
        return found

    def _node(self, node: Node) -> Any:
        read = self._readers.get(node.type)
        if read is not None:
            return read(node)
        if isinstance(node, Union):
            branch = node.branches[self._index(len(node.branches), "branch of a union")]
            value = self._node(branch)
            return value if value is None or self._is_plain else {branch.full_name: value}
        if isinstance(node, Enum):
            return node.symbols[self._index(len(node.symbols), f"symbol of {node.full_name}")]
        if isinstance(node, Fixed):
            return self._take(node.size).decode("latin-1")
        self._depth += 1
        if self._depth > MAX_VALUE_DEPTH:
            raise InvalidValue(f"the value is nested more than {MAX_VALUE_DEPTH} deep")
        value = self._nested(node)
        self._depth -= 1
        return value

    def _nested(self, node: Node) -> Any:
        if isinstance(node, Record):
            return {field.name: self._node(field.type) for field in node.fields.values()}
        if isinstance(node, Map):
            found = {}
            while count := self._count():
                for _ in range(count):
                    key = self._string(node)
                    found[key] = self._node(node.values)
            return found
        items: list[Any] = []
        if not isinstance(node, Array):
            raise AssertionError(f"{node.type} is no type of Avro")
        while count := self._count():
            for _ in range(count):
                before = self._position
                items.append(self._node(node.items))
                if self._position == before:
                    self._empty_items += 1
                    if self._empty_items > MAX_EMPTY_ITEMS:
                        raise InvalidValue(f"more than {MAX_EMPTY_ITEMS:,} items of arrays take no bytes")
        return items

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise InvalidValue(f"{size} bytes are wanted where {len(self._data) - self._position} are left")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def _long(self, node: Node | None = None) -> int:
        raw = shift = 0
        while shift <= _MAX_VARINT_BITS:
            byte = self._take(1)[0]
            raw |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (raw >> 1) ^ -(raw & 1)
            shift += 7
        raise InvalidValue("a number does not end")

    def _count(self) -> int:
        """Of a block. Below zero: the size of the block in bytes comes next."""
        count = self._long()
        if count < 0:
            self._long()
        return abs(count)

    def _length(self) -> int:
        length = self._long()
        if length < 0:
            raise InvalidValue("a length is below zero")
        return length

    def _index(self, count: int, what: str) -> int:
        index = self._long()
        if not 0 <= index < count:
            raise InvalidValue(f"there is no {what} with the number {index}")
        return index

    def _boolean(self, node: Node) -> bool:
        return self._take(1) != b"\0"

    def _string(self, node: Node) -> str:
        try:
            return self._take(self._length()).decode()
        except UnicodeDecodeError:
            raise InvalidValue("a string is not UTF-8") from None
