"""KAFKA: one column, as Kafka's own serializers write it: four or eight bytes, the first the highest, or the text in UTF-8."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from penstock.streams.formats.failures import BadRecord, FormatRefused
from penstock.streams.plan.schema import Column
from penstock.streams.plan.types import Kind

_LAYOUTS: Final = {
    Kind.INTEGER: (">i", "Integer"),
    Kind.BIGINT: (">q", "Long"),
    Kind.DOUBLE: (">d", "Double"),
}
KINDS: Final = frozenset({*_LAYOUTS, Kind.STRING, Kind.BYTES})

Read = Callable[[bytes], "tuple[Any, ...] | None"]
Write = Callable[["tuple[Any, ...]"], "bytes | None"]


def check(columns: Sequence[Column]) -> None:
    if len(columns) > 1:
        shown = ", ".join(f"`{column.name}` {column.type}" for column in columns)
        raise FormatRefused(f"The 'KAFKA' format only supports a single field. Got: [{shown}]")
    for column in columns:
        if column.type.kind not in KINDS:
            raise FormatRefused(f"The 'KAFKA' format does not support type '{column.type.kind}'")


def kafka_reader(columns: Sequence[Column]) -> Read:
    """BadRecord."""
    if not columns:
        return lambda data: None
    kind = columns[0].type.kind
    if kind == Kind.STRING:
        return lambda data: (data.decode("utf-8", "replace"),)
    if kind == Kind.BYTES:
        return lambda data: (bytes(data),)
    layout, name = _LAYOUTS[kind]
    unpack = struct.Struct(layout).unpack

    def decode(data: bytes) -> tuple[Any, ...]:
        try:
            return unpack(data)
        except struct.error:
            raise BadRecord(
                f"Size of data received by {name}Deserializer is not {struct.calcsize(layout)}"
            ) from None

    return decode


def kafka_writer(columns: Sequence[Column]) -> Write:
    """BadRecord."""
    if not columns:
        return lambda row: None
    kind = columns[0].type.kind
    if kind == Kind.STRING:

        def encode_text(row: tuple[Any, ...]) -> bytes | None:
            return None if row[0] is None else row[0].encode("utf-8", "replace")

        return encode_text
    if kind == Kind.BYTES:
        return lambda row: row[0]
    pack = struct.Struct(_LAYOUTS[kind][0]).pack

    def encode(row: tuple[Any, ...]) -> bytes | None:
        try:
            return None if row[0] is None else pack(row[0])
        except (struct.error, OverflowError) as error:
            raise BadRecord(f"KAFKA does not carry it: {error}") from None

    return encode
