"""What Protobuf forbids and the pool of descriptors does not see, or says less plainly."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import Final

from google.protobuf import descriptor_pb2

from penstock.schemas.model import InvalidSchema
from penstock.schemas.protobuf.elements import PROTO3
from penstock.schemas.protobuf.tokens import MAX_NUMBER

_OWN_NUMBERS: Final = range(19_000, 20_000)
"""Protobuf's own."""


def check(proto: descriptor_pb2.FileDescriptorProto) -> None:
    """InvalidSchema."""
    proto3 = proto.syntax == PROTO3
    for message in proto.message_type:
        _message(message, proto.package, proto3)
    for enum in proto.enum_type:
        _enum(enum, proto.package, proto3)


def _message(message: descriptor_pb2.DescriptorProto, scope: str, proto3: bool) -> None:
    full = f"{scope}.{message.name}" if scope else message.name
    reserved = _spans([(each.start, each.end) for each in message.reserved_range], full)
    extensions = _spans([(each.start, each.end) for each in message.extension_range], full)
    starts = [start for start, _ in reserved]
    extension_starts = [start for start, _ in extensions]
    reserved_names = set(message.reserved_name)
    by_number: dict[int, str] = {}
    by_name: set[str] = set()
    for field in message.field:
        name, number = field.name, field.number
        if not 0 < number <= MAX_NUMBER or number in _OWN_NUMBERS:
            raise InvalidSchema(f"{full}.{name} has the number {number}, which no field can have")
        if number in by_number:
            raise InvalidSchema(
                f"{full}: the fields {by_number[number]} and {name} both have the number {number}"
            )
        if name in by_name:
            raise InvalidSchema(f"{full} has two fields {name}")
        if starts and _within(number, starts, reserved):
            raise InvalidSchema(f"{full}.{name} has the number {number}, which is reserved")
        if name in reserved_names:
            raise InvalidSchema(f"{full}.{name} has a name that is reserved")
        if extension_starts and _within(number, extension_starts, extensions):
            raise InvalidSchema(f"{full}.{name} has the number {number}, which is for extensions")
        by_number[number] = name
        by_name.add(name)
    filled = {field.oneof_index for field in message.field if field.HasField("oneof_index")}
    for index, oneof in enumerate(message.oneof_decl):
        if index not in filled:
            raise InvalidSchema(f"the oneof {full}.{oneof.name} has no fields")
    if message.options.map_entry:
        _entry(message, full)
    for nested in message.nested_type:
        _message(nested, full, proto3)
    for enum in message.enum_type:
        _enum(enum, full, proto3)


def _entry(message: descriptor_pb2.DescriptorProto, full: str) -> None:
    if [(each.name, each.number) for each in message.field] not in (
        [("key", 1), ("value", 2)],
        [("value", 2), ("key", 1)],
    ):
        raise InvalidSchema(f"{full} is said to be the entry of a map, and has not just a key and a value")


def _spans(spans: list[tuple[int, int]], full: str) -> list[tuple[int, int]]:
    """Sorted; the end is exclusive."""
    spans.sort()
    for (_, end), (start, _) in pairwise(spans):
        if start < end:
            raise InvalidSchema(f"{full}: the number {start} is in two ranges")
    return spans


def _within(number: int, starts: list[int], spans: list[tuple[int, int]]) -> bool:
    at = bisect_right(starts, number) - 1
    return at >= 0 and number < spans[at][1]


def _enum(enum: descriptor_pb2.EnumDescriptorProto, scope: str, proto3: bool) -> None:
    full = f"{scope}.{enum.name}" if scope else enum.name
    if not enum.value:
        raise InvalidSchema(f"the enum {full} has no values")
    if proto3 and enum.value[0].number != 0:
        raise InvalidSchema(f"the first value of the enum {full} must be zero in proto3")
    reserved = _spans([(each.start, each.end + 1) for each in enum.reserved_range], full)
    starts = [start for start, _ in reserved]
    names = set(enum.reserved_name)
    by_number: dict[int, str] = {}
    for value in enum.value:
        held = by_number.setdefault(value.number, value.name)
        if held != value.name and not enum.options.allow_alias:
            raise InvalidSchema(
                f"{full}: {held} and {value.name} both are {value.number}, and allow_alias is not set"
            )
        if starts and _within(value.number, starts, reserved):
            raise InvalidSchema(f"{full}.{value.name} has the number {value.number}, which is reserved")
        if value.name in names:
            raise InvalidSchema(f"{full}.{value.name} has a name that is reserved")
