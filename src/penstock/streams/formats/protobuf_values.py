"""Rows from and to Protobuf's bytes, by messages of the library that are made from the schema.

Steps are made once for a message and the columns: for each column, how its field becomes the value, or the other way.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError

from penstock.streams.formats import protobuf_schemas
from penstock.streams.formats.failures import BadRecord
from penstock.streams.formats.protobuf_schemas import in_oneof, is_map, is_repeated, is_wrapper
from penstock.streams.formats.values import WIDE, fitted, text_of, unscaled_bytes
from penstock.streams.plan.schema import Column
from penstock.streams.plan.types import Kind, SqlType, struct

Convert = Callable[[Any], Any]
Step = Callable[[Any], Any]
_EPOCH: Final = datetime.date(1970, 1, 1).toordinal()
_WHOLE: Final = {Kind.INTEGER, Kind.BIGINT, Kind.DATE, Kind.TIME, Kind.TIMESTAMP}
_SMALL: Final = {FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SFIXED32}
_FLOATS: Final = {FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE}
_TEXTS: Final = {FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_ENUM}


def protobuf_reader(message: Descriptor, columns: Sequence[Column]) -> Callable[[bytes], tuple[Any, ...]]:
    """BadRecord when the message does not fit the columns, and later for bytes that cannot be read."""
    make = message_factory.GetMessageClass(message)
    row = _reading_struct(message, struct(*((column.name, column.type) for column in columns)), "")
    names = [column.name for column in columns]

    def read(data: bytes) -> tuple[Any, ...]:
        try:
            found = row(make.FromString(data))
        except (DecodeError, ValueError, ArithmeticError) as error:
            raise BadRecord(f"the schema does not read it: {' '.join(str(error).split())}") from None
        return tuple([found[name] for name in names])

    return read


def _reading_struct(message: Descriptor, type_: SqlType, path: str) -> Convert:
    wanted = dict(type_.fields)
    steps: list[tuple[str, Step]] = []
    for oneof, members in protobuf_schemas.real_oneofs(message):
        own = oneof if oneof in wanted else oneof.upper()
        if own in wanted and wanted[own].kind == Kind.STRUCT:
            steps.append((own, _reading_oneof(members, wanted[own], f"{path}->{own}")))
    for field in message.fields:
        own = field.name if field.name in wanted else field.name.upper()
        if own in wanted and not (in_oneof(field) and any(own == name for name, _ in steps)):
            steps.append((own, _reading_field(field, wanted[own], f"{path}->{own}")))
    nothing = dict.fromkeys(wanted)

    def convert(found: Any) -> dict[str, Any]:
        made = nothing.copy()
        for own, step in steps:
            made[own] = step(found)
        return made

    return convert


def _reading_oneof(members: list[Any], type_: SqlType, path: str) -> Step:
    wanted = dict(type_.fields)
    steps = []
    for field in members:
        own = field.name if field.name in wanted else field.name.upper()
        if own in wanted:
            steps.append((own, _reading_field(field, wanted[own], f"{path}->{own}")))

    def step(found: Any) -> dict[str, Any] | None:
        made = dict.fromkeys(wanted)
        for own, each in steps:
            made[own] = each(found)
        return made

    return step


def _reading_field(field: Any, type_: SqlType, path: str) -> Step:
    name = field.name
    if is_map(field):
        if type_.kind != Kind.MAP or type_.element is None:
            raise _unfit("map", type_, path)
        return _reading_map(field, type_.element, path)
    if is_repeated(field):
        if type_.kind != Kind.ARRAY or type_.element is None:
            raise _unfit("array", type_, path)
        convert_item = _reading_value(field, type_.element, f"{path}->ARRAY")
        return lambda found: [convert_item(each) for each in getattr(found, name)]
    convert = _reading_value(field, type_, path)
    if field.has_presence:
        return lambda found: convert(getattr(found, name)) if found.HasField(name) else None
    return lambda found: convert(getattr(found, name))


def _reading_map(field: Any, type_: SqlType, path: str) -> Step:
    name, entry = field.name, field.message_type
    value = entry.fields_by_name["value"]
    if entry.GetOptions().map_entry:
        convert = _reading_value(value, type_, f"{path}->MAP_VAL")
        return lambda found: {text_of(key): convert(each) for key, each in getattr(found, name).items()}
    key_step = _reading_field(entry.fields_by_name["key"], _STRING, f"{path}->MAP_KEY")
    value_step = _reading_field(value, type_, f"{path}->MAP_VAL")
    return lambda found: {key_step(each): value_step(each) for each in getattr(found, name)}


def _reading_value(field: Any, type_: SqlType, path: str) -> Convert:
    message = field.message_type
    if message is not None:
        return _reading_message(message, type_, path)
    kind, wire = type_.kind, field.type
    if wire == FieldDescriptor.TYPE_ENUM and kind == Kind.STRING:
        names = {each.number: each.name for each in field.enum_type.values}
        return lambda value: names.get(value, str(value))
    if kind == Kind.STRING and wire != FieldDescriptor.TYPE_BYTES:
        return str if wire == FieldDescriptor.TYPE_STRING else text_of
    fits = {
        Kind.BOOLEAN: wire == FieldDescriptor.TYPE_BOOL,
        Kind.DOUBLE: wire in _FLOATS,
        Kind.BYTES: wire == FieldDescriptor.TYPE_BYTES,
    }.get(kind, False)
    is_whole = wire not in _FLOATS | _TEXTS | {FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_BOOL}
    if kind in (Kind.BIGINT, Kind.TIMESTAMP):
        fits = is_whole
    elif kind in _WHOLE:
        fits = wire in _SMALL
    if not fits:
        raise _unfit("a scalar", type_, path)
    return _as_it_is


def _reading_message(message: Any, type_: SqlType, path: str) -> Convert:
    if is_wrapper(message):
        inner = _reading_value(message.fields_by_name["value"], type_, path)
        return lambda found: inner(found.value)
    match message.full_name, type_.kind:
        case protobuf_schemas.DECIMAL, Kind.DECIMAL:
            return lambda found: fitted(
                Decimal(int.from_bytes(found.value, "big", signed=True)).scaleb(-found.scale, WIDE), type_
            )
        case protobuf_schemas.DATE, Kind.DATE | Kind.INTEGER:
            return lambda found: datetime.date(found.year, found.month, found.day).toordinal() - _EPOCH
        case protobuf_schemas.TIME, Kind.TIME | Kind.INTEGER:
            return lambda found: (
                ((found.hours * 60 + found.minutes) * 60 + found.seconds) * 1000 + found.nanos // 1_000_000
            )
        case protobuf_schemas.TIMESTAMP, Kind.TIMESTAMP | Kind.BIGINT:
            return lambda found: found.seconds * 1000 + found.nanos // 1_000_000
    if type_.kind != Kind.STRUCT:
        raise _unfit(message.full_name, type_, path)
    return _reading_struct(message, type_, path)


def _unfit(found: str, type_: SqlType, path: str) -> BadRecord:
    return BadRecord(f"Cannot deserialize type {found} as type {type_} for path: {path}")


def _as_it_is(value: Any) -> Any:
    return value


def protobuf_writer(message: Descriptor, columns: Sequence[Column]) -> Callable[[tuple[Any, ...]], bytes]:
    """BadRecord when the message has no place for a column."""
    make = message_factory.GetMessageClass(message)
    for column in columns:
        if column.name not in message.fields_by_name:
            raise BadRecord(f"Schema from Schema Registry misses field with name: {column.name}")
    fill = _writing_struct(message, struct(*((column.name, column.type) for column in columns)))
    names = [column.name for column in columns]

    def write(row: tuple[Any, ...]) -> bytes:
        made = make()
        try:
            fill(made, dict(zip(names, row, strict=True)))
            data: bytes = made.SerializeToString()
        except (EncodeError, ValueError, TypeError, ArithmeticError, AttributeError) as error:
            raise BadRecord(f"the schema does not carry it: {' '.join(str(error).split())}") from None
        return data

    return write


Fill = Callable[[Any, Any], None]


def _writing_struct(message: Descriptor, type_: SqlType) -> Fill:
    """Fills a message from a struct."""
    wanted = dict(type_.fields)
    fills = [
        (field.name, _writing_field(field, wanted[field.name]))
        for field in message.fields
        if field.name in wanted
    ]

    def fill(made: Any, value: dict[str, Any]) -> None:
        for name, each in fills:
            inner = value[name]
            if inner is not None:
                each(made, inner)

    return fill


def _writing_field(field: Any, type_: SqlType) -> Fill:
    """Of values that are not None."""
    name, message = field.name, field.message_type
    if is_map(field) and type_.element is not None:
        return _writing_map(field, type_.element)
    if is_repeated(field) and type_.element is not None:
        if message is None:
            empty = _empty(field)
            return lambda made, value: getattr(made, name).extend(
                empty if each is None else each for each in value
            )
        fill_item = _writing_message(message, type_.element)

        def extend(made: Any, value: Any) -> None:
            for each in value:
                item = getattr(made, name).add()
                if each is not None:
                    fill_item(item, each)

        return extend
    if message is not None:
        fill = _writing_message(message, type_)

        def fill_field(made: Any, value: Any) -> None:
            inner = getattr(made, name)
            inner.SetInParent()
            fill(inner, value)

        return fill_field
    if field.type == FieldDescriptor.TYPE_ENUM:
        numbers = {each.name: each.number for each in field.enum_type.values}
        return lambda made, value: setattr(made, name, numbers[value] if value in numbers else int(value))
    return lambda made, value: setattr(made, name, value)


def _writing_map(field: Any, type_: SqlType) -> Fill:
    name, entry = field.name, field.message_type
    if entry.GetOptions().map_entry:
        inner = entry.fields_by_name["value"]
        if inner.message_type is None:
            empty = _empty(inner)

            def fill_map(made: Any, value: Any) -> None:
                target = getattr(made, name)
                for key, each in value.items():
                    target[key] = empty if each is None else each

            return fill_map
        fill_inner = _writing_message(inner.message_type, type_)

        def fill_messages(made: Any, value: Any) -> None:
            target = getattr(made, name)
            for key, each in value.items():
                item = target[key]
                if each is not None:
                    fill_inner(item, each)

        return fill_messages
    fill = _writing_struct(entry, struct(("key", _STRING), ("value", type_)))

    def fill_entries(made: Any, value: Any) -> None:
        for key, each in value.items():
            fill(getattr(made, name).add(), {"key": key, "value": each})

    return fill_entries


def _writing_message(message: Any, type_: SqlType) -> Fill:
    if is_wrapper(message):
        return lambda made, value: setattr(made, "value", value)
    match message.full_name:
        case protobuf_schemas.DECIMAL:
            return _fill_decimal
        case protobuf_schemas.DATE:
            return _fill_date
        case protobuf_schemas.TIME:
            return _fill_time
        case protobuf_schemas.TIMESTAMP:
            return _fill_timestamp
    if type_.kind != Kind.STRUCT:
        raise BadRecord(f"{type_} is not written as the message {message.full_name}")
    return _writing_struct(message, type_)


def _fill_decimal(made: Any, value: Decimal) -> None:
    _, digits, exponent = value.as_tuple()
    scale = -int(exponent)
    made.value, made.precision, made.scale = unscaled_bytes(value, scale), len(digits), scale


def _fill_date(made: Any, value: int) -> None:
    date = datetime.date.fromordinal(value + _EPOCH)
    made.year, made.month, made.day = date.year, date.month, date.day


def _fill_time(made: Any, value: int) -> None:
    made.hours, rest = divmod(value, 3_600_000)
    made.minutes, rest = divmod(rest, 60_000)
    made.seconds, rest = divmod(rest, 1000)
    made.nanos = rest * 1_000_000


def _fill_timestamp(made: Any, value: int) -> None:
    made.seconds, rest = divmod(value, 1000)
    made.nanos = rest * 1_000_000


def _empty(field: Any) -> Any:
    if field.type in _TEXTS:
        return "" if field.type == FieldDescriptor.TYPE_STRING else 0
    return b"" if field.type == FieldDescriptor.TYPE_BYTES else 0


_STRING: Final = SqlType(Kind.STRING)
