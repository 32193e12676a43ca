"""An Avro schema as a tree of types, with all names resolved: what the decoding and encoding programs are made from.

It is made of a parsed schema by `penstock.arrow.avro_format`; this folder is below that of the parsers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

MAX_DECIMAL_DIGITS: Final = 38
MISSING: Final = object()
"""The default of a field that has none: null is one."""


class UnreadableSchema(ValueError):
    """Nothing can be made of it here; the message says why."""


@dataclass(eq=False, slots=True)
class AvroField:
    name: str
    type: AvroType
    default: Any = MISSING
    aliases: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class AvroType:
    """`kind` is Avro's word. Records may refer to themselves, so types are compared as objects."""

    kind: str
    logical: str = ""
    """Empty also where the logical type is not valid for the kind: then Avro says to ignore it."""
    name: str = ""
    """In full, of records, enums and fixed."""
    aliases: tuple[str, ...] = ()
    fields: tuple[AvroField, ...] = ()
    items: AvroType | None = None
    """Of an array, and the values of a map."""
    branches: tuple[AvroType, ...] = ()
    symbols: tuple[str, ...] = ()
    default_symbol: str | None = None
    size: int = 0
    precision: int = 0
    scale: int = 0

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def element(self) -> AvroType:
        assert self.items is not None
        return self.items


_LOGICAL: Final = {
    "date": ("int",), "time-millis": ("int",), "time-micros": ("long",), "timestamp-millis": ("long",),
    "timestamp-micros": ("long",), "timestamp-nanos": ("long",), "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",), "local-timestamp-nanos": ("long",), "decimal": ("bytes", "fixed"),
    "uuid": ("string", "fixed"), "duration": ("fixed",),
}  # fmt: skip


def set_logical(found: AvroType, said: Mapping[str, Any]) -> None:
    """From the properties of a type; what is not valid is left out."""
    logical = said.get("logicalType")
    if not isinstance(logical, str) or found.kind not in _LOGICAL.get(logical, ()):
        return
    if logical == "decimal":
        precision, scale = said.get("precision"), said.get("scale", 0)
        if not isinstance(precision, int) or not isinstance(scale, int):
            return
        if not (0 < precision <= MAX_DECIMAL_DIGITS and 0 <= scale <= precision):
            return
        found.precision, found.scale = precision, scale
    found.logical = logical
