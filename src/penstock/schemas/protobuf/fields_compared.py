"""Two fields with the same number: whether the one reads what the other wrote.

Confluent's rules, and two refusals more, where its rules would lose what was written: a repeated number that becomes a single
one without a label (proto3), and a field of any type that becomes required.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as _Proto

from penstock.schemas.protobuf.differences import (
    FIELD_KIND_CHANGED,
    FIELD_NAME_CHANGED,
    FIELD_NAMED_TYPE_CHANGED,
    FIELD_NUMERIC_LABEL_CHANGED,
    FIELD_SCALAR_KIND_CHANGED,
    FIELD_STRING_OR_BYTES_LABEL_CHANGED,
    REQUIRED_FIELD_ADDED,
    Difference,
    TypeComparison,
)

NO_LABEL: Final = 0
_NUMBER: Final = "number"
_TEXT: Final = "string or bytes"
# Types of one group are written alike: https://protobuf.dev/programming-guides/proto3/#updating
_GROUPS: Final = {
    _Proto.TYPE_INT32: _NUMBER, _Proto.TYPE_INT64: _NUMBER, _Proto.TYPE_UINT32: _NUMBER, _Proto.TYPE_UINT64: _NUMBER,
    _Proto.TYPE_BOOL: _NUMBER, _Proto.TYPE_ENUM: _NUMBER,
    _Proto.TYPE_SINT32: "zig-zag", _Proto.TYPE_SINT64: "zig-zag",
    _Proto.TYPE_STRING: _TEXT, _Proto.TYPE_BYTES: _TEXT,
    _Proto.TYPE_FIXED32: "four bytes", _Proto.TYPE_SFIXED32: "four bytes",
    _Proto.TYPE_FIXED64: "eight bytes", _Proto.TYPE_SFIXED64: "eight bytes",
    _Proto.TYPE_FLOAT: "float", _Proto.TYPE_DOUBLE: "double",
}  # fmt: skip


class Compared(NamedTuple):
    """One of the two fields, with what must be known about its surroundings."""

    proto: _Proto
    label: int
    """As it is written: NO_LABEL in a oneof, for a map, and in proto3 without one."""
    entry: descriptor_pb2.DescriptorProto | None
    """Of a map."""
    local_type: str
    """The name of its message without the package."""
    own_type: bool
    """Whether that message is in the file itself."""


def compare_fields(old: Compared, new: Compared, path: str) -> Iterator[Difference | TypeComparison]:
    if old.proto.name != new.proto.name:
        yield Difference(FIELD_NAME_CHANGED, path)
    kinds = (_kind(old), _kind(new))
    if kinds[0] != kinds[1]:
        yield Difference(FIELD_KIND_CHANGED, path)
    elif kinds[0] == "scalar":
        yield from _compare_scalars(old.proto, new.proto, (old.label, new.label), path)
    elif kinds[0] != "map":
        yield from _compare_messages(old, new, path)
    if (
        new.label == _Proto.LABEL_REQUIRED
        and old.label not in (NO_LABEL, _Proto.LABEL_REQUIRED)
        and not (kinds[1] == "scalar" and _GROUPS[new.proto.type] != _TEXT)
    ):
        yield Difference(REQUIRED_FIELD_ADDED, path)


def _kind(field: Compared) -> str:
    if field.entry is not None:
        return "map"
    if field.proto.type == _Proto.TYPE_GROUP:
        return "group"
    return "message" if field.proto.type == _Proto.TYPE_MESSAGE else "scalar"


def _compare_scalars(old: _Proto, new: _Proto, labels: tuple[int, int], path: str) -> Iterator[Difference]:
    group = _GROUPS[old.type]
    if group != _GROUPS[new.type]:
        yield Difference(FIELD_SCALAR_KIND_CHANGED, path)
        return
    old_label, new_label = labels
    if old_label == new_label:
        return
    lost = old_label == _Proto.LABEL_REPEATED and new_label == NO_LABEL and group != _TEXT
    if lost or NO_LABEL not in labels:
        yield Difference(
            FIELD_STRING_OR_BYTES_LABEL_CHANGED if group == _TEXT else FIELD_NUMERIC_LABEL_CHANGED, path
        )


def _compare_messages(old: Compared, new: Compared, path: str) -> Iterator[Difference | TypeComparison]:
    if old.local_type != new.local_type:
        yield Difference(FIELD_NAMED_TYPE_CHANGED, path)
    elif not (old.own_type and new.own_type):
        yield TypeComparison(old.proto.type_name[1:], new.proto.type_name[1:], path)
