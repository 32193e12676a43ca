"""Protobuf schemas of columns, as ksqlDB writes them by way of Kafka Connect, and the columns of messages.

The row is the message `ConnectDefault1`, unless it has a name; structs and maps inside are `ConnectDefault2` and so on. A map is
`repeated` messages with `key` and `value`. Without a property a column cannot be null: what was not written is read as 0, false
or an empty text. `nullable_representation` OPTIONAL or WRAPPER tells such values and NULL apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from penstock.streams.formats.avro_schemas import MAX_DEPTH, Unsupported
from penstock.streams.formats.failures import FormatRefused
from penstock.streams.plan import types
from penstock.streams.plan.schema import Column
from penstock.streams.plan.types import Kind, SqlType

DECIMAL: Final = "confluent.type.Decimal"
DATE: Final = "google.type.Date"
TIME: Final = "google.type.TimeOfDay"
TIMESTAMP: Final = "google.protobuf.Timestamp"
_SCALARS: Final = {
    Kind.BOOLEAN: ("bool", "Bool"),
    Kind.INTEGER: ("int32", "Int32"),
    Kind.BIGINT: ("int64", "Int64"),
    Kind.DOUBLE: ("double", "Double"),
    Kind.STRING: ("string", "String"),
    Kind.BYTES: ("bytes", "Bytes"),
}
_MESSAGES: Final = {
    Kind.DECIMAL: (DECIMAL, "confluent/type/decimal.proto"),
    Kind.DATE: (DATE, "google/type/date.proto"),
    Kind.TIME: (TIME, "google/type/timeofday.proto"),
    Kind.TIMESTAMP: (TIMESTAMP, "google/protobuf/timestamp.proto"),
}
_UNKNOWN_DECIMAL: Final = 64, 0
"""Precision and scale, as Connect has them where a schema says none."""
_WRAPPERS: Final = "google/protobuf/wrappers.proto"
_META: Final = "confluent/meta.proto"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEFAULT_NAME: Final = "ConnectDefault"


def protobuf_text(columns: Sequence[Column], *, full_name: str | None, nullable: str | None) -> str:
    """FormatRefused."""
    name = (full_name or "").strip()
    if name.startswith(_DEFAULT_NAME):
        name = ""
    making = _Making((nullable or "").upper())
    package, _, simple = name.rpartition(".")
    body = making.message(
        simple or making.next_name(), [(column.name, column.type) for column in columns], ""
    )
    lines = ['syntax = "proto3";']
    lines += [f"package {package};"] if package else []
    lines += ["", *(f'import "{path}";' for path in sorted(making.imports))] if making.imports else []
    return "\n".join([*lines, "", *body, ""])


class _Making:
    def __init__(self, nullable: str) -> None:
        self._nullable = nullable
        self._count = 0
        self.imports: set[str] = set()

    def next_name(self) -> str:
        self._count += 1
        return f"{_DEFAULT_NAME}{self._count}"

    def message(self, name: str, fields: Sequence[tuple[str, SqlType]], indent: str) -> list[str]:
        lines, inner = [], []
        for number, (field, type_) in enumerate(fields, start=1):
            written, nested = self._field(type_, indent + "  ")
            lines.append(
                f"{indent}  {written.replace('%', _checked(field))} = {number}{self._options(type_)};"
            )
            inner += [["", *nested]] if nested else []
        return [
            f"{indent}message {name} {{",
            *lines,
            *(line for each in inner for line in each),
            f"{indent}}}",
        ]

    def _field(self, type_: SqlType, indent: str, *, is_repeated: bool = False) -> tuple[str, list[str]]:
        """Its declaration with a % for the name, and the message that it needs."""
        word = "repeated " if is_repeated else ""
        if type_.kind in _SCALARS:
            scalar, wrapper = _SCALARS[type_.kind]
            if self._nullable == "WRAPPER":
                self.imports.add(_WRAPPERS)
                return f"{word}google.protobuf.{wrapper}Value %", []
            if self._nullable == "OPTIONAL" and not is_repeated:
                word = "optional "
            return f"{word}{scalar} %", []
        if type_.kind in _MESSAGES:
            message, path = _MESSAGES[type_.kind]
            self.imports.add(path)
            return f"{word}{message} %", []
        if type_.kind == Kind.STRUCT:
            name = self.next_name()
            return f"{word}{name} %", self.message(name, type_.fields, indent)
        if is_repeated:
            raise FormatRefused("Array cannot be nested")
        assert type_.element is not None
        if type_.kind == Kind.ARRAY:
            return self._field(type_.element, indent, is_repeated=True)
        if type_.key is None or type_.key.kind != Kind.STRING:
            raise FormatRefused(
                "PROTOBUF format only supports MAP types with STRING keys. "
                "See https://github.com/confluentinc/ksql/issues/6177."
            )
        name = f"{self.next_name()}Entry"
        return f"repeated {name} %", self.message(
            name, [("key", type_.key), ("value", type_.element)], indent
        )

    def _options(self, type_: SqlType) -> str:
        while type_.kind == Kind.ARRAY and type_.element is not None:
            type_ = type_.element
        if type_.kind != Kind.DECIMAL:
            return ""
        self.imports.add(_META)
        parameters = (
            f'{{ key: "precision", value: "{type_.precision}" }}, {{ key: "scale", value: "{type_.scale}" }}'
        )
        return f" [(confluent.field_meta) = {{ params: [{parameters}] }}]"


def _checked(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise FormatRefused(f"Schema is not compatible with Protobuf: '{name}' is not a name of a field")
    return name


# The other way: columns of a message

_NUMBERS: Final = {
    FieldDescriptor.TYPE_BOOL: types.BOOLEAN,
    FieldDescriptor.TYPE_INT32: types.INTEGER,
    FieldDescriptor.TYPE_SINT32: types.INTEGER,
    FieldDescriptor.TYPE_SFIXED32: types.INTEGER,
    FieldDescriptor.TYPE_UINT32: types.BIGINT,
    FieldDescriptor.TYPE_FIXED32: types.BIGINT,
    FieldDescriptor.TYPE_INT64: types.BIGINT,
    FieldDescriptor.TYPE_UINT64: types.BIGINT,
    FieldDescriptor.TYPE_SINT64: types.BIGINT,
    FieldDescriptor.TYPE_FIXED64: types.BIGINT,
    FieldDescriptor.TYPE_SFIXED64: types.BIGINT,
    FieldDescriptor.TYPE_FLOAT: types.DOUBLE,
    FieldDescriptor.TYPE_DOUBLE: types.DOUBLE,
    FieldDescriptor.TYPE_STRING: types.STRING,
    FieldDescriptor.TYPE_BYTES: types.BYTES,
    FieldDescriptor.TYPE_ENUM: types.STRING,
}
_KNOWN: Final = {DATE: types.DATE, TIME: types.TIME, TIMESTAMP: types.TIMESTAMP}


def type_of(message: Descriptor, *, keep_names: bool, depth: int = 0) -> SqlType:
    """Unsupported. Members of a oneof are in a struct with its name."""
    if depth > MAX_DEPTH:
        raise Unsupported("the types contain themselves")
    fields: list[tuple[str, SqlType]] = []
    for oneof, members in real_oneofs(message):
        inside = _fields(members, keep_names, depth)
        fields.append((_named(oneof, keep_names), types.struct(*inside)))
    fields += _fields([field for field in message.fields if not in_oneof(field)], keep_names, depth)
    return types.struct(*fields)


def real_oneofs(message: Descriptor) -> list[tuple[str, list[Any]]]:
    """As Connect names them: `choice_0`. Those that stand for `optional` are left out."""
    return [
        (f"{oneof.name}_{place}", list(oneof.fields))
        for place, oneof in enumerate(message.oneofs)
        if any(in_oneof(field) for field in oneof.fields)
    ]


def in_oneof(field: Any) -> bool:
    oneof = field.containing_oneof
    if oneof is None:
        return False
    return not (len(oneof.fields) == 1 and oneof.name == f"_{field.name}")


def is_repeated(field: Any) -> bool:
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED)


def is_map(field: Any) -> bool:
    """Protobuf's own, or Connect's, whose message has a name that ends with Entry."""
    message = field.message_type
    if message is None or not is_repeated(field):
        return False
    return bool(message.GetOptions().map_entry) or (
        message.name.endswith("Entry") and {each.name for each in message.fields} == {"key", "value"}
    )


def is_wrapper(message: Any) -> bool:
    return (
        message is not None
        and message.full_name.startswith("google.protobuf.")
        and message.full_name.endswith("Value")
        and [each.name for each in message.fields] == ["value"]
    )


def _named(name: str, keep_names: bool) -> str:
    return name if keep_names else name.upper()


def _fields(fields: Sequence[Any], keep_names: bool, depth: int) -> list[tuple[str, SqlType]]:
    found = []
    for field in fields:
        try:
            found.append((_named(field.name, keep_names), _field_type(field, keep_names, depth + 1)))
        except Unsupported:
            if depth >= MAX_DEPTH:
                raise
    return found


def _field_type(field: Any, keep_names: bool, depth: int) -> SqlType:
    if is_map(field):
        value = field.message_type.fields_by_name["value"]
        return types.map_of(types.STRING, _field_type(value, keep_names, depth + 1))
    one = _single_type(field, keep_names, depth)
    return types.array(one) if is_repeated(field) else one


def _single_type(field: Any, keep_names: bool, depth: int) -> SqlType:
    message = field.message_type
    if message is None:
        if field.type not in _NUMBERS:
            raise Unsupported(f"Unsupported type: {field.type}")
        return _NUMBERS[field.type]
    if message.full_name == DECIMAL:
        precision, scale = _decimal_parameters(field)
        return types.decimal(precision, scale)
    if message.full_name in _KNOWN:
        return _KNOWN[message.full_name]
    if is_wrapper(message):
        return _NUMBERS[message.fields_by_name["value"].type]
    return type_of(message, keep_names=keep_names, depth=depth)


def _decimal_parameters(field: Any) -> tuple[int, int]:
    """The library keeps an option that it does not know as bytes; the pool of the schema knows it."""
    pool = field.file.pool
    try:
        option = pool.FindExtensionByName("confluent.field_meta")
        known = message_factory.GetMessageClass(pool.FindMessageTypeByName("google.protobuf.FieldOptions"))
    except KeyError:
        return _UNKNOWN_DECIMAL
    meta = known.FromString(field.GetOptions().SerializeToString()).Extensions[option]
    return int(meta.params.get("precision", 64)), int(meta.params.get("scale", 0))
