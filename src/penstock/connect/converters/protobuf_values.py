"""Connect's values from and to Protobuf's messages, by functions that are made once for a message and a schema."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from google.protobuf import message_factory
from google.protobuf.message import DecodeError, EncodeError

from penstock.connect.converters.protobuf_schemas import (
    ProtobufForm,
    clean,
    from_protobuf,
    is_map,
    is_union,
    is_wrapper,
    real_oneof,
    union_field,
)
from penstock.connect.data.logical import (
    DATE_NAME,
    DECIMAL_NAME,
    EPOCH,
    LOGICAL,
    TIME_NAME,
    TIMESTAMP_NAME,
    decimal_from_bytes,
    decimal_of,
    decimal_to_bytes,
    scale_of,
    timestamp_to_ms,
)
from penstock.connect.data.schema import Schema, Type
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError
from penstock.schemas.model import InvalidValue
from penstock.schemas.protobuf import indexes
from penstock.schemas.protobuf.schema import ProtobufSchema
from penstock.schemas.protobuf.values import message_descriptor

Fill = Callable[[Any, Any], None]
Convert = Callable[[Any], Any]
_FAILED: Final = (EncodeError, TypeError, ValueError, OverflowError, AttributeError, RecursionError)
MAX_READERS: Final = 1_000


def protobuf_writer(schema: Schema, written: ProtobufSchema, form: ProtobufForm) -> Callable[[Any], bytes]:
    name = clean((schema.name or "").rpartition(".")[2], form)
    package = written.proto.package
    path = written.indexes.of(f"{package}.{name}" if package else name) or (0,)
    message = message_descriptor(written, path)
    make = message_factory.GetMessageClass(message)
    prefix = indexes.written(path)
    fill = _filling(schema, message, form)

    def write(value: Any) -> bytes:
        made = make()
        try:
            fill(made, value)
            return b"".join((prefix, made.SerializeToString()))
        except _FAILED as error:
            raise DataError(f"the schema does not carry it: {error}") from None

    return write


def _filling(schema: Schema, message: Any, form: ProtobufForm) -> Fill:
    steps: list[tuple[int, Fill]] = []
    for field in schema.fields:
        if is_union(field.schema):
            steps.append((field.index, _filling_union(field.schema, message, form)))
            continue
        target = message.fields_by_name.get(clean(field.name, form))
        if target is not None:
            steps.append((field.index, _setting(field.schema, target, form)))

    def fill(made: Any, value: Any) -> None:
        if not isinstance(value, Struct) or (value.schema is not schema and value.schema != schema):
            raise DataError("Mismatching schema.")
        for index, step in steps:
            step(made, value.values[index])

    return fill


def _filling_union(schema: Schema, message: Any, form: ProtobufForm) -> Fill:
    steps = []
    for field in schema.fields:
        target = message.fields_by_name.get(clean(field.name, form))
        if target is None:
            raise DataError(f"the message {message.full_name} has no field {field.name}")
        steps.append((field.index, _setting(field.schema, target, form)))

    def fill(made: Any, value: Any) -> None:
        if value is not None:
            for index, step in steps:
                if value.values[index] is not None:
                    step(made, value.values[index])

    return fill


def _setting(schema: Schema, field: Any, form: ProtobufForm) -> Fill:
    """Nothing is set for null."""
    default = schema.default
    set_value = _setting_present(schema, field, form)

    def step(made: Any, value: Any) -> None:
        given = default if value is None else value
        if given is not None:
            set_value(made, given)
        elif not schema.is_optional:
            raise DataError(f'Invalid value: null used for required field: "{field.name}"')

    return step


def _setting_present(schema: Schema, field: Any, form: ProtobufForm) -> Fill:
    name = field.name
    if schema.type is Type.MAP:
        return _setting_map(schema, field, form)
    if schema.type is Type.ARRAY and schema.items is not None:
        fill_item = _filling_message(schema.items, field, form)
        if fill_item is None:
            convert = _scalar(schema.items, field)
            return lambda made, value: getattr(made, name).extend(
                [convert(each) for each in _of(list, value)]
            )

        def add(made: Any, value: Any) -> None:
            items = getattr(made, name)
            for each in _of(list, value):
                fill_item(items.add(), each)

        return add
    fill_one = _filling_message(schema, field, form)
    if fill_one is None:
        convert = _scalar(schema, field)
        return lambda made, value: setattr(made, name, convert(value))

    def fill(made: Any, value: Any) -> None:
        inner = getattr(made, name)
        inner.SetInParent()
        fill_one(inner, value)

    return fill


def _setting_map(schema: Schema, field: Any, form: ProtobufForm) -> Fill:
    assert schema.items is not None
    if not is_map(field):
        raise DataError(f"{field.full_name} is no map")
    name, value_field = field.name, field.message_type.fields_by_name["value"]
    fill_item = _filling_message(schema.items, value_field, form)
    convert = _scalar(schema.items, value_field) if fill_item is None else None

    def fill(made: Any, value: Any) -> None:
        items = getattr(made, name)
        for key, each in _of(Mapping, value).items():
            if each is None:
                items[key]  # there is no null in it: the key is there, with the value that is the type's own
            elif convert is not None:
                items[key] = convert(each)
            elif fill_item is not None:
                fill_item(items[key], each)

    return fill


def _filling_message(schema: Schema, field: Any, form: ProtobufForm) -> Fill | None:
    """None: the field is no message."""
    message = field.message_type
    if message is None:
        return None
    if is_wrapper(message, form):
        convert = _scalar(schema, message.fields_by_name["value"])

        def wrap(made: Any, value: Any) -> None:
            made.value = convert(value)

        return wrap
    if schema.name in _LOGICAL_FILLS:
        return _LOGICAL_FILLS[schema.name](schema)
    if schema.type is not Type.STRUCT:
        raise DataError(
            f"the Protobuf schema has {message.full_name} where the record has {schema.type.name}"
        )
    return _filling(schema, message, form)


def _of(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind):
        raise DataError(f"Invalid type: {type(value).__name__}")
    return value


def _scalar(schema: Schema, field: Any) -> Convert:
    logical = LOGICAL.get(schema.name or "")
    if logical is not None and schema.type is logical.base:
        return lambda value: logical.to_base(schema, value)
    if field.enum_type is not None and schema.type is Type.STRING:
        numbers = {each.name: each.number for each in field.enum_type.values}
        return lambda value: numbers[value] if value in numbers else _no_symbol(value, field)
    return bytes if schema.type is Type.BYTES else lambda value: value


def _no_symbol(value: Any, field: Any) -> Any:
    raise DataError(f"{value!r} is no symbol of {field.enum_type.full_name}")


def _fill_decimal(schema: Schema) -> Fill:
    def fill(made: Any, value: Any) -> None:
        made.value = decimal_to_bytes(schema, _of(Decimal, value))
        made.scale = scale_of(schema)

    return fill


def _fill_date(schema: Schema) -> Fill:
    def fill(made: Any, value: Any) -> None:
        made.year, made.month, made.day = value.year, value.month, value.day

    return fill


def _fill_time(schema: Schema) -> Fill:
    def fill(made: Any, value: Any) -> None:
        made.hours, made.minutes, made.seconds = value.hour, value.minute, value.second
        made.nanos = value.microsecond // 1000 * 1_000_000

    return fill


def _fill_timestamp(schema: Schema) -> Fill:
    def fill(made: Any, value: Any) -> None:
        seconds, ms = divmod(timestamp_to_ms(schema, value), 1000)
        made.seconds, made.nanos = seconds, ms * 1_000_000

    return fill


_LOGICAL_FILLS: Final[Mapping[str | None, Callable[[Schema], Fill]]] = {
    DECIMAL_NAME: _fill_decimal, DATE_NAME: _fill_date, TIME_NAME: _fill_time, TIMESTAMP_NAME: _fill_timestamp,
}  # fmt: skip


def protobuf_reader(
    written: ProtobufSchema, form: ProtobufForm
) -> Callable[[memoryview], tuple[Schema | None, Any]]:
    """Which of the file's messages a value is stands before it."""
    known: dict[tuple[int, ...], tuple[Schema, Any, Convert]] = {}

    def reader_of(path: tuple[int, ...]) -> tuple[Schema, Any, Convert]:
        message = message_descriptor(written, path)
        schema = from_protobuf(message, form)
        made = (schema, message_factory.GetMessageClass(message), _reading(schema, message, form))
        if len(known) < MAX_READERS:
            known[path] = made
        return made

    def read(data: memoryview) -> tuple[Schema | None, Any]:
        found = indexes.read(data)
        schema, make, convert = known.get(found.indexes) or reader_of(found.indexes)
        try:
            return schema, convert(make.FromString(bytes(data[found.end :])))
        except (DecodeError, InvalidValue, *_FAILED) as error:
            raise DataError(f"the schema does not read it: {' '.join(str(error).split())}") from None

    return read


def _reading(schema: Schema, message: Any, form: ProtobufForm) -> Convert:
    steps: list[Convert] = []
    done: set[str] = set()
    for field in message.fields:
        oneof = real_oneof(field)
        if oneof is None:
            target = schema.field(field.name)
            assert target is not None
            steps.append(_reading_field(target.schema, field, form))
        elif oneof.name not in done:
            done.add(oneof.name)
            target = schema.field(union_field(oneof, form))
            assert target is not None
            steps.append(_reading_union(target.schema, oneof, form))
    trusted = Struct.trusted
    return lambda found: trusted(schema, [step(found) for step in steps])


def _reading_union(schema: Schema, oneof: Any, form: ProtobufForm) -> Convert:
    steps = {
        member.name: (field.index, _reading_value(field.schema, member, form))
        for member, field in zip(oneof.fields, schema.fields, strict=True)
    }
    name, size = oneof.name, len(oneof.fields)

    def step(found: Any) -> Any:
        which = found.WhichOneof(name)
        if which is None:
            return None
        index, convert = steps[which]
        values: list[Any] = [None] * size
        values[index] = convert(getattr(found, which))
        return Struct.trusted(schema, values)

    return step


def _reading_field(schema: Schema, field: Any, form: ProtobufForm) -> Convert:
    name = field.name
    if is_map(field):
        assert schema.items is not None
        convert = _reading_value(schema.items, field.message_type.fields_by_name["value"], form)
        return lambda found: {key: convert(each) for key, each in getattr(found, name).items()}
    if field.is_repeated:
        assert schema.items is not None
        convert = _reading_value(schema.items, field, form)
        return lambda found: [convert(each) for each in getattr(found, name)]
    convert = _reading_value(schema, field, form)
    if field.has_presence:
        return lambda found: convert(getattr(found, name)) if found.HasField(name) else None
    return lambda found: convert(getattr(found, name))


def _reading_value(schema: Schema, field: Any, form: ProtobufForm) -> Convert:
    message = field.message_type
    if message is not None:
        if is_wrapper(message, form):
            return lambda found: found.value
        if schema.name in _LOGICAL_READS:
            return _LOGICAL_READS[schema.name](schema)
        return _reading(schema, message, form)
    if field.enum_type is not None and schema.type is Type.STRING:
        names = {each.number: each.name for each in reversed(field.enum_type.values)}
        return lambda found: names.get(found, str(found))
    if schema.type is Type.INT64:
        return lambda found: found - (1 << 64) if found >= 1 << 63 else found
    return lambda found: found


def _read_decimal(schema: Schema) -> Convert:
    def read(found: Any) -> Any:
        if found.scale == scale_of(schema):
            return decimal_from_bytes(schema, found.value)
        return decimal_of(int.from_bytes(found.value, "big", signed=True), found.scale)

    return read


def _read_time(schema: Schema) -> Convert:
    return lambda found: dt.time(found.hours, found.minutes, found.seconds, found.nanos // 1_000_000 * 1000)


def _read_timestamp(schema: Schema) -> Convert:
    return lambda found: EPOCH + dt.timedelta(seconds=found.seconds, milliseconds=found.nanos // 1_000_000)


_LOGICAL_READS: Final[Mapping[str | None, Callable[[Schema], Convert]]] = {
    DECIMAL_NAME: _read_decimal,
    DATE_NAME: lambda schema: lambda found: dt.date(found.year, found.month, found.day),
    TIME_NAME: _read_time,
    TIMESTAMP_NAME: _read_timestamp,
}
