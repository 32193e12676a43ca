"""Records of internal topics as the JSON that Kafka's tools print, read by the tables of `coordinator_schemas`."""

import base64
import json
import re
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from penstock.inspection.dump.coordinator_schemas import (
    ASSIGNMENT,
    CLASSIC_GROUP_TYPE,
    SUBSCRIPTION,
    RecordType,
    Schema,
    Spec,
    Specs,
)
from penstock.model.ids import NO_ID, id_text
from penstock.wire.errors import Malformed
from penstock.wire.primitives import read_uvarint

NUMBERS = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
}
CONSUMER_PROTOCOL = "consumer"

_FIELD = re.compile(
    r"(?P<name>\w+):(?P<array>\[\])?(?P<type>\w*)(?P<nullable>\?)?(?:@(?P<first>\d+)(?P<onward>\+)?)?"
    r"(?:#(?P<tag>\d+))?(?:=(?P<default>-?\d+))?"
)


class Unreadable(Exception):
    """The bytes are not such a record; the message follows Kafka's."""


class UnknownType(Exception):
    def __init__(self, type_id: int) -> None:
        super().__init__(type_id)
        self.type_id = type_id


class _Field(NamedTuple):
    name: str
    type: str
    is_array: bool
    is_nullable: bool
    first_version: int
    last_version: int
    tag: int | None
    hidden_value: Any
    """A tagged field with this value is not shown."""
    inside: tuple["_Field", ...]


@cache
def _fields(specs: Specs) -> tuple[_Field, ...]:
    return tuple(_field(spec) for spec in specs)


def _field(spec: Spec) -> _Field:
    head, inside = spec if isinstance(spec, tuple) else (spec, ())
    found = _FIELD.fullmatch(head)
    assert found is not None, head
    type_name = found["type"] or "struct"
    is_array = found["array"] is not None
    return _Field(
        found["name"],
        type_name,
        is_array,
        found["nullable"] is not None,
        int(found["first"] or 0),
        32767 if found["first"] is None or found["onward"] else int(found["first"]),
        int(found["tag"]) if found["tag"] else None,
        [] if is_array else _default(type_name, inside, int(found["default"] or 0)),
        _fields(inside),
    )


def _default(type_name: str, inside: Specs, number: int) -> Any:
    if type_name == "struct":
        return {field.name: field.hidden_value for field in _fields(inside)}
    return NO_ID if type_name == "uuid" else number


class _Reader:
    def __init__(self, data: bytes, *, version: int, flexible: bool) -> None:
        self._data = data
        self._position = 0
        self._version = version
        self._flexible = flexible

    def struct(self, fields: tuple[_Field, ...]) -> dict[str, Any]:
        present = [f for f in fields if f.first_version <= self._version <= f.last_version]
        values = {field.name: self._value(field) for field in present if field.tag is None}
        if self._flexible:
            tagged = {field.tag: field for field in present if field.tag is not None}
            for _ in range(self._varint()):
                tag, size = self._varint(), self._varint()
                end = self._position + size
                field = tagged.get(tag)
                if field is not None:
                    value = self._value(field)
                    if value != field.hidden_value:
                        values[field.name] = value
                self._position = end
        return {field.name: values[field.name] for field in present if field.name in values}

    def _value(self, field: _Field) -> Any:
        if not field.is_array:
            return self._one(field)
        count = self._varint() - 1 if self._flexible else self._number("int32")
        if count < 0:
            if not field.is_nullable:
                raise Unreadable(f"non-nullable field {field.name} was serialized as null")
            return None
        if count > len(self._data) - self._position:
            raise Unreadable(
                f"Tried to allocate a collection of size {count}, but there are only "
                f"{len(self._data) - self._position} bytes remaining."
            )
        return [self._one(field) for _ in range(count)]

    def _one(self, field: _Field) -> Any:
        if field.type in NUMBERS:
            return self._number(field.type)
        if field.type == "uuid":
            return self._take(16)
        if field.type == "struct":
            if field.is_nullable and not field.is_array and self._is_null_struct(field):
                return None
            return self.struct(field.inside)
        if self._flexible:
            size = self._varint() - 1
        else:
            size = self._number("int16" if field.type == "string" else "int32")
        if size < 0:
            if not field.is_nullable:
                raise Unreadable(f"non-nullable field {field.name} was serialized as null")
            return None
        data = self._take(size)
        return data.decode("utf-8", "replace") if field.type == "string" else _Bytes(data)

    def _is_null_struct(self, field: _Field) -> bool:
        return self._number("int8") < 0 if field.tag is None else self._varint() == 0

    def _number(self, kind: str) -> int:
        layout = NUMBERS[kind]
        return int(layout.unpack(self._take(layout.size))[0])

    def _varint(self) -> int:
        try:
            value, self._position = read_uvarint(self._data, self._position)
        except IndexError:
            raise Unreadable("Error reading a varint: too few bytes are left") from None
        except Malformed as error:
            raise Unreadable(str(error)) from None
        return value

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise Unreadable(f"Error reading byte array of {size} byte(s): too few bytes are left")
        data = self._data[self._position : end]
        self._position = end
        return data


class _Bytes(bytes):
    """Told from a topic id, which is bytes as well."""


def read(schema: Schema, data: bytes, version: int) -> dict[str, Any]:
    """The fields of a record; Unreadable when the bytes are not what the schema says."""
    if not 0 <= version <= schema.highest_version:
        raise Unreadable(f"Can't read version {version}")
    reader = _Reader(data, version=version, flexible=version >= schema.flexible_from)
    return reader.struct(_fields(schema.fields))


def to_json(value: Any) -> str:
    """Compact, as Jackson writes it."""
    return json.dumps(_shown(value), separators=(",", ":"), ensure_ascii=False)


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shown(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_shown(one) for one in value]
    if isinstance(value, _Bytes):
        return base64.b64encode(value).decode()
    return id_text(value) if isinstance(value, bytes) else value


def versioned(schema: Schema, data: bytes) -> str:
    """A control record of the quorum, which opens with its version."""
    return to_json(read(schema, data, int.from_bytes(data[:2], "big", signed=True)))


class CoordinatorRecord(NamedTuple):
    type_id: int
    key: dict[str, Any]
    version: int
    value: dict[str, Any] | None
    """None: it deletes what had this key."""


def read_record(types: dict[int, RecordType], key: bytes, value: bytes | None) -> CoordinatorRecord:
    """UnknownType, or Unreadable."""
    type_id = _leading_number(key, "key")
    if type_id not in types:
        raise UnknownType(type_id)
    fields = _read_part(types[type_id].key, key[2:], 0, "key")
    if value is None:
        return CoordinatorRecord(type_id, fields, 0, None)
    version = _leading_number(value, "value")
    return CoordinatorRecord(
        type_id, fields, version, _read_part(types[type_id].value, value[2:], version, "value")
    )


def record_decoder(types: dict[int, RecordType]) -> Callable[[bytes, bytes | None], tuple[str, str]]:
    """Key and value of a coordinator's record as text; UnknownType, or Unreadable."""

    def decode(key: bytes, value: bytes | None) -> tuple[str, str]:
        type_id, key_fields, version, fields = read_record(types, key, value)
        key_text = to_json({"type": str(type_id), "data": key_fields})
        if fields is None:
            return key_text, "<DELETE>"
        if type_id == CLASSIC_GROUP_TYPE and fields.get("protocolType") == CONSUMER_PROTOCOL:
            for member in fields["members"]:
                _unfold(member, "subscription", SUBSCRIPTION)
                _unfold(member, "assignment", ASSIGNMENT)
        return key_text, to_json({"version": str(version), "data": fields})

    return decode


def _leading_number(data: bytes, what: str) -> int:
    if len(data) < 2:
        raise Unreadable(f"Could not read version from {what}'s buffer.")
    return int.from_bytes(data[:2], "big", signed=True)


def _read_part(schema: Schema, data: bytes, version: int, what: str) -> dict[str, Any]:
    try:
        return read(schema, data, version)
    except Unreadable as error:
        raise Unreadable(
            f"Could not read record with version {version} from {what}'s buffer due to: {error}."
        ) from None


def _unfold(member: dict[str, Any], name: str, schema: Schema) -> None:
    """In place of the bytes what they say; where that cannot be read the bytes stay."""
    data: bytes = member[name]
    try:
        member[name] = read(schema, data[2:], _leading_number(data, name))
    except Unreadable:
        pass
