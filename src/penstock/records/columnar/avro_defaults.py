"""The default of a field, which a schema has as JSON, in Avro's bytes."""

from __future__ import annotations

import struct
from typing import Any, Final

from penstock.records.columnar.avro_schema import MISSING, AvroType

MAX_STEPS: Final = 100_000


def varint(number: int) -> bytes:
    """Zigzag, as Avro and Kafka have it."""
    raw = (number << 1) ^ (number >> 63)
    found = bytearray()
    while raw > 0x7F:
        found.append(raw & 0x7F | 0x80)
        raw >>= 7
    found.append(raw)
    return bytes(found)


def default_bytes(schema: AvroType, said: Any) -> bytes:
    """ValueError, TypeError or KeyError where it does not fit."""
    try:
        return _Encoding().bytes_of(schema, said)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


class _Encoding:
    def __init__(self) -> None:
        self._steps = 0

    def bytes_of(self, schema: AvroType, said: Any) -> bytes:
        # Records whose fields have defaults of their own grow twice with each level.
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise ValueError("it is too large")
        kind = schema.kind
        if kind == "union":
            for number, branch in enumerate(schema.branches):
                try:
                    return varint(number) + self.bytes_of(branch, said)
                except (ValueError, TypeError, KeyError, AttributeError):
                    continue
            raise ValueError("no branch of the union takes it")
        if kind == "record":
            found = []
            for field in schema.fields:
                one = said.get(field.name, field.default)
                if one is MISSING:
                    raise ValueError(f"{field.name} is missing")
                found.append(self.bytes_of(field.type, one))
            return b"".join(found)
        if kind == "array":
            if not isinstance(said, list):
                raise TypeError("it is no list")
            items = b"".join(self.bytes_of(schema.element, one) for one in said)
            return varint(len(said)) + items + b"\0" if said else b"\0"
        if kind == "map":
            entries = b"".join(
                _scalar(AvroType("string"), key) + self.bytes_of(schema.element, one)
                for key, one in said.items()
            )
            return varint(len(said)) + entries + b"\0" if said else b"\0"
        return _scalar(schema, said)


def _scalar(schema: AvroType, said: Any) -> bytes:
    kind = schema.kind
    if kind == "null" and said is None:
        return b""
    if kind == "boolean" and isinstance(said, bool):
        return bytes([said])
    if kind in ("int", "long") and isinstance(said, int) and not isinstance(said, bool):
        if not -(1 << 63) <= said < 1 << 63 or (kind == "int" and not -(1 << 31) <= said < 1 << 31):
            raise ValueError("it is too large")
        return varint(said)
    if kind in ("float", "double") and isinstance(said, int | float | str) and not isinstance(said, bool):
        return struct.pack("<f" if kind == "float" else "<d", float(said))
    if isinstance(said, str):
        if kind == "string":
            text = said.encode()
            return varint(len(text)) + text
        if kind == "enum":
            return varint(schema.symbols.index(said))
        if kind == "bytes":
            data = said.encode("latin-1")
            return varint(len(data)) + data
        if kind == "fixed":
            data = said.encode("latin-1")
            if len(data) == schema.size:
                return data
    raise ValueError(f"it is no {kind}")
