"""Which table, columns and values a record stands for.

Records of one form (topic, schemas; for plain JSON objects the names of their fields) share a `Shape`, which is made once and
takes the values out of each record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from penstock.connect.connectors.jdbc.sink_settings import KAFKA, NONE, RECORD_KEY, SinkChoices
from penstock.connect.data.schema import INT32, INT64, STRING, Schema
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError
from penstock.connect.records import SinkRecord

Row = tuple[Any, ...]
Part = Callable[[SinkRecord], Row]
"""Some of a row's values."""

KAFKA_COLUMNS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")
_KAFKA_SCHEMAS: Final = (STRING, INT32, INT64)
MOST_SHAPES: Final = 10_000
"""Objects with ever new names of fields must not fill the memory."""


class Column(NamedTuple):
    name: str
    schema: Schema | None
    """None: the values say it."""
    is_key: bool


class Shape:
    """Equal only to itself."""

    def __init__(self, table: str, columns: Sequence[Column], row: Part, *, is_delete: bool = False) -> None:
        self.table = table
        self.columns = tuple(columns)
        self.names = tuple(column.name for column in columns)
        self.keys = tuple(column.name for column in columns if column.is_key)
        """They come first."""
        self.row = row
        self.is_delete = is_delete


class Shapes:
    def __init__(self, choices: SinkChoices) -> None:
        self._choices = choices
        self._known: dict[Any, Shape] = {}
        self._last: tuple[Any, Any, Any, Shape] | None = None

    def of(self, record: SinkRecord) -> Shape:
        """DataError for a record that no row can be made of."""
        value, last = record.value, self._last
        if (
            last is not None
            and record.value_schema is last[0]
            and record.key_schema is last[1]
            and record.topic == last[2]
            and type(value) is Struct
            and type(record.key) is not dict
        ):
            return last[3]
        sign = (
            record.topic,
            record.value_schema if type(value) is not dict else tuple(value),
            record.key_schema if type(record.key) is not dict else tuple(record.key),
            type(value),
            type(record.key),
        )
        found = self._known.get(sign)
        if found is None:
            found = self._made(record)
            if len(self._known) >= MOST_SHAPES:
                self._known.clear()
            self._known[sign] = found
        if type(value) is Struct and type(record.key) is not dict:
            self._last = (record.value_schema, record.key_schema, record.topic, found)
        return found

    def _made(self, record: SinkRecord) -> Shape:
        choices, value = self._choices, record.value
        table = choices.table_format.replace("${topic}", record.topic)
        if not table:
            raise DataError(f"The topic {record.topic} gives no name of a table with {choices.table_format}")
        if value is None:
            if not choices.deletes:
                raise DataError(
                    f"A record without a value fits no row of {table}: set delete.enabled=true (with pk.mode=record_key) "
                    "where it means that the row goes"
                )
            columns, part = self._key(record)
            return Shape(table, columns, part, is_delete=True)
        fields, get = self._fields(value, record.value_schema, table)
        columns, keys = self._keys_of(record, fields, get)
        named = {column.name for column in columns}
        wanted = choices.fields
        others = [
            Column(name, schema, False)
            for name, schema in fields
            if name not in named and (not wanted or name in wanted)
        ]
        if not columns and not others:
            raise DataError(f"No fields are left for {table}: see fields.whitelist")
        rest = get([column.name for column in others])
        return Shape(table, [*columns, *others], _joined(keys, rest))

    def _fields(
        self, value: Any, schema: Schema | None, table: str
    ) -> tuple[list[tuple[str, Schema | None]], Callable[[Sequence[str]], Part | None]]:
        """Names with schemas, and what takes the values of some of them."""
        if isinstance(value, Struct):
            struct = value.schema
            return [(field.name, field.schema) for field in struct.fields], lambda names: _of_struct(
                struct, names
            )
        if isinstance(value, dict):
            if not self._choices.infers:
                raise DataError(
                    f"The record for {table} has no schema: penstock.infer.schema=true takes objects without one"
                )
            return [(str(name), None) for name in value], _of_map
        raise DataError(
            f"A record for {table} must be a struct or an object, and this one is {type(value).__name__}: its fields are the "
            "columns"
        )

    def _keys_of(
        self,
        record: SinkRecord,
        fields: Iterable[tuple[str, Schema | None]],
        get: Callable[[Sequence[str]], Part | None],
    ) -> tuple[list[Column], Part | None]:
        choices = self._choices
        if choices.pk_mode == NONE:
            return [], None
        if choices.pk_mode == RECORD_KEY:
            return self._key(record)
        if choices.pk_mode == KAFKA:
            names = choices.pk_fields or KAFKA_COLUMNS
            columns = [Column(name, schema, True) for name, schema in zip(names, _KAFKA_SCHEMAS, strict=True)]
            return columns, _original
        known = dict(fields)
        chosen = choices.pk_fields or tuple(known)
        for name in chosen:
            if name not in known:
                raise DataError(f"The value has no field {name}, which pk.fields names")
        return [Column(name, known[name], True) for name in chosen], get(chosen)

    def _key(self, record: SinkRecord) -> tuple[list[Column], Part]:
        key, chosen = record.key, self._choices.pk_fields
        if key is None:
            raise DataError("The record has no key, and pk.mode=record_key makes the primary key of it")
        if isinstance(key, Struct | dict):
            if isinstance(key, Struct):
                known: dict[str, Schema | None] = {field.name: field.schema for field in key.schema.fields}
            else:
                known = dict.fromkeys(map(str, key))
            names = chosen or tuple(known)
            for name in names:
                if name not in known:
                    raise DataError(f"The key has no field {name}, which pk.fields names")
            part = _of_key_struct(key.schema, names) if isinstance(key, Struct) else _of_key_map(names)
            return [Column(name, known[name], True) for name in names], part
        if len(chosen) != 1:
            raise DataError("The key is one value: pk.fields must name the one column for it")
        return [Column(chosen[0], record.key_schema, True)], lambda each: (each.key,)


def _joined(first: Part | None, second: Part | None) -> Part:
    if first is None or second is None:
        only = first or second
        assert only is not None
        return only
    one, other = first, second
    return lambda record: one(record) + other(record)


def _original(record: SinkRecord) -> Row:
    return record.original


def _picked(places: Sequence[Any]) -> Callable[[Any], Row]:
    if len(places) == 1:
        [place] = places
        return lambda values: (values[place],)
    return itemgetter(*places)


def _of_struct(schema: Schema, names: Sequence[str]) -> Part | None:
    if not names:
        return None
    if any(_field(schema, name).schema.default is not None for name in names):
        chosen = tuple(names)
        return lambda record: tuple([record.value[name] for name in chosen])
    pick = _picked([_field(schema, name).index for name in names])
    return lambda record: pick(record.value.values)


def _of_map(names: Sequence[str]) -> Part | None:
    if not names:
        return None
    pick = _picked(names)
    return lambda record: pick(record.value)


def _of_key_struct(schema: Schema, names: Sequence[str]) -> Part:
    chosen = tuple(names)
    return lambda record: tuple([record.key[name] for name in chosen])


def _of_key_map(names: Sequence[str]) -> Part:
    pick = _picked(names)
    return lambda record: pick(record.key)


def _field(schema: Schema, name: str) -> Any:
    return schema.field(name)
