"""What columns a Protobuf message becomes: the types that Spark's `from_protobuf` gives, with unsigned numbers in wider columns.

Enums are texts, Timestamp and Duration are what they say, wrappers are nullable scalars. A message within itself is the bytes
that it is written as.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from penstock.records.columnar.tree_columns import MAX_COLUMNS

# How values are written
VARINT, EIGHT, SIZED, GROUP, END_GROUP, FOUR = range(6)
# What numbers are
PLAIN, ZIGZAG, SHORT, UNSIGNED_SHORT, FLAG = range(5)
"""64 bits; these with the sign last; 32 bits, with and without a sign; a boolean."""
MAX_TYPE_DEPTH: Final = 100

_Field = Any
"""google.protobuf's descriptors, which this folder does not import."""

# By google.protobuf's numbers of types: how they are written, what numbers they are, and what the column is.
_DOUBLE, _FLOAT, _INT64, _UINT64, _INT32, _FIXED64, _FIXED32, _BOOL, _STRING, _GROUP, _MESSAGE = range(1, 12)
_BYTES, _UINT32, _ENUM, _SFIXED32, _SFIXED64, _SINT32, _SINT64 = range(12, 19)
UNSIGNED: Final = pa.decimal128(20, 0)
_SCALARS: Final[dict[int, tuple[int, int, pa.DataType]]] = {
    _DOUBLE: (EIGHT, PLAIN, pa.float64()),
    _FLOAT: (FOUR, PLAIN, pa.float32()),
    _INT64: (VARINT, PLAIN, pa.int64()),
    _UINT64: (VARINT, PLAIN, UNSIGNED),
    _INT32: (VARINT, SHORT, pa.int32()),
    _FIXED64: (EIGHT, PLAIN, UNSIGNED),
    _FIXED32: (FOUR, UNSIGNED_SHORT, pa.int64()),
    _BOOL: (VARINT, FLAG, pa.bool_()),
    _STRING: (SIZED, PLAIN, pa.string()),
    _BYTES: (SIZED, PLAIN, pa.binary()),
    _UINT32: (VARINT, UNSIGNED_SHORT, pa.int64()),
    _ENUM: (VARINT, SHORT, pa.string()),
    _SFIXED32: (FOUR, SHORT, pa.int32()),
    _SFIXED64: (EIGHT, PLAIN, pa.int64()),
    _SINT32: (VARINT, ZIGZAG, pa.int32()),
    _SINT64: (VARINT, ZIGZAG, pa.int64()),
}
_TIMES: Final = {
    "google.protobuf.Timestamp": pa.timestamp("us", tz="UTC"),
    "google.protobuf.Duration": pa.duration("us"),
}
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


class UnreadableMessage(ValueError):
    """No column is made of a message of this type; the message says why."""


@dataclass(eq=False, slots=True)
class Member:
    """A field of a message, and what it becomes."""

    name: str
    number: int
    wire: int
    meaning: int
    type: pa.DataType
    """Of one entry, if it is repeated."""
    is_repeated: bool = False
    has_presence: bool = True
    oneof: int = -1
    message: MessageShape | None = None
    is_map: bool = False
    unit: str = ""
    """`time` of a timestamp or duration, `wrapper` of a scalar in a message."""
    names: dict[int, str] | None = None
    """Of an enum."""

    @property
    def column_type(self) -> pa.DataType:
        if self.is_map:
            assert self.message is not None
            key, value = self.message.members
            return pa.map_(key.type, value.column_type)
        return pa.list_(pa.field("element", self.type)) if self.is_repeated else self.type


@dataclass(eq=False, slots=True)
class MessageShape:
    members: list[Member]
    oneofs: int = 0

    @property
    def by_number(self) -> list[int]:
        """The places of the members, as the walk wants them."""
        return sorted(range(len(self.members)), key=lambda place: self.members[place].number)

    @property
    def type(self) -> pa.DataType:
        return pa.struct([pa.field(each.name, each.column_type) for each in self.members])


def shape_of(descriptor: Any) -> MessageShape:
    """Of a google.protobuf Descriptor. A message within itself is the bytes that it is written as."""
    return _Shapes().of(descriptor)


class _Shapes:
    def __init__(self) -> None:
        self._open: list[str] = []
        self._count = 0

    def of(self, descriptor: Any) -> MessageShape:
        self._open.append(descriptor.full_name)
        members = [self._member(field) for field in descriptor.fields]
        self._open.pop()
        return MessageShape(members, len(descriptor.oneofs))

    def _member(self, field: _Field) -> Member:
        self._count += 1
        if self._count > MAX_COLUMNS:
            raise UnreadableMessage(f"the message has more than {MAX_COLUMNS:,} columns")
        if field.type == _GROUP:
            raise UnreadableMessage(f"{field.full_name} is a group, which is not read")
        repeated = _is_repeated(field)
        oneof = -1 if field.containing_oneof is None else int(field.containing_oneof.index)
        if field.type != _MESSAGE:
            wire, meaning, kind = _SCALARS[field.type]
            found = Member(
                field.name, field.number, wire, meaning, kind, repeated, bool(field.has_presence), oneof
            )
            if field.type == _ENUM:
                found.names = {value.number: value.name for value in reversed(field.enum_type.values)}
            return found
        return self._message_member(field, Member(
            field.name, field.number, SIZED, PLAIN, pa.binary(), repeated, True, oneof
        ))  # fmt: skip

    def _message_member(self, field: _Field, found: Member) -> Member:
        descriptor = field.message_type
        name = descriptor.full_name
        if name in self._open or len(self._open) > MAX_TYPE_DEPTH:
            return found
        if name in _TIMES:
            found.unit, found.type = "time", _TIMES[name]
            found.message = self.of(descriptor)
        elif name in _WRAPPERS:
            found.unit = "wrapper"
            found.message = self.of(descriptor)
            found.type = found.message.members[0].type
        else:
            found.message = self.of(descriptor)
            found.is_map = bool(descriptor.GetOptions().map_entry)
            found.type = found.message.type
            if found.is_map:
                for each in found.message.members:
                    each.has_presence = False
        return found


def _is_repeated(field: _Field) -> bool:
    """`label` is what the library had before."""
    said = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if said is None else said)
