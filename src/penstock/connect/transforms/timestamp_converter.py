"""TimestampConverter: a time becomes another kind of time, in a field or as the whole key or value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from penstock.connect.data.logical import DATE, DATE_NAME, TIME, TIME_NAME, TIMESTAMP, TIMESTAMP_NAME
from penstock.connect.data.schema import INT64, STRING, Schema, Type
from penstock.connect.data.structs import Struct
from penstock.connect.errors import ConnectError, DataError, InvalidConfig
from penstock.connect.records import ConnectRecord
from penstock.connect.settings import HIGH, LOW, Kind, Setting, Settings, one_of
from penstock.connect.transforms.java_numbers import wrapped
from penstock.connect.transforms.sides import (
    NULL_SETTING,
    PACKAGE,
    REPLACE_NULL,
    BySchema,
    Copier,
    OnKeyOrValue,
    fields_of,
    java_class,
    require_map,
    require_struct,
    with_basics,
    with_struct_default,
)
from penstock.connect.transforms.simple_date_format import SimpleDateFormat
from penstock.connect.transforms.times import date_at, is_time, ms_of, time_at, timestamp_at

_PURPOSE: Final = "converting timestamp formats"
_STRING, _UNIX = "string", "unix"
_SCHEMAS: Final[Mapping[str, Schema]] = MappingProxyType(
    {_STRING: STRING, _UNIX: INT64, "Date": DATE, "Time": TIME, "Timestamp": TIMESTAMP}
)
_PER_SECOND: Final[Mapping[str, int]] = MappingProxyType(
    {"nanoseconds": 10**9, "microseconds": 10**6, "milliseconds": 1000, "seconds": 1}
)
_LONG_MAX: Final = (1 << 63) - 1


class TimestampConverter(OnKeyOrValue):
    settings = Settings(
        Setting(
            "field",
            Kind.STRING,
            "The field with the time; nothing for the whole key or value.",
            default="",
            importance=HIGH,
        ),
        Setting(
            "target.type",
            Kind.STRING,
            "What the time becomes.",
            importance=HIGH,
            check=one_of(*_SCHEMAS),
        ),
        Setting(
            "format",
            Kind.STRING,
            "The pattern (of Java's SimpleDateFormat) of times that are strings, before or after.",
            default="",
        ),
        Setting(
            "unix.precision",
            Kind.STRING,
            "What numbers count since 1970, before or after. Nothing finer than milliseconds is kept.",
            default="milliseconds",
            importance=LOW,
            check=one_of(*_PER_SECOND),
        ),
        NULL_SETTING,
    )

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        self._field: str = self.values["field"]
        self._target: str = self.values["target.type"]
        self._format = self._made_format(self.values["format"])
        self._per_second = _PER_SECOND[self.values["unix.precision"]]
        self._from_ms = self._writer()
        self._plans = BySchema(self._plan)

    def _made_format(self, pattern: str) -> SimpleDateFormat | None:
        if not pattern.strip():
            if self._target == _STRING:
                raise InvalidConfig(
                    "TimestampConverter requires format option to be specified when using string timestamps"
                )
            return None
        try:
            return SimpleDateFormat(pattern)
        except ValueError:
            raise InvalidConfig(
                f"TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps: {pattern}"
            ) from None

    def _writer(self) -> Callable[[int], Any]:
        if self._target == _STRING:
            assert self._format is not None
            return self._format.format
        if self._target == _UNIX:
            per_second = self._per_second
            return lambda ms: _scaled(ms, per_second, 1000)
        return {"Date": date_at, "Time": time_at, "Timestamp": timestamp_at}[self._target]

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self.operand(record)
        if schema is None:
            return self.made(record, None, self._without_schema(value))
        if not self._field:
            updated = self._schema(schema)
            return self.made(record, updated, None if value is None else self._converting(schema)(value))
        row = None if value is None else require_struct(value, _PURPOSE)
        updated, convert = self._plans(schema)
        return self.made(record, updated, None if row is None else convert(row))

    def _schema(self, source: Schema) -> Schema:
        target = _SCHEMAS[self._target]
        return target.optional() if source.is_optional else target

    def _plan(self, schema: Schema) -> tuple[Schema, Callable[[Struct], Struct]]:
        fields = fields_of(schema)
        found = schema.field(self._field)
        if found is not None:
            fields[found.index] = (found.name, self._schema(found.schema))
        updated = with_basics(schema, fields=fields, is_optional=schema.is_optional)
        copied = Copier(schema, with_defaults=self.values[REPLACE_NULL])
        place = -1 if found is None else found.index
        reads = None if found is None else self._converting(found.schema)

        def convert(row: Struct) -> Struct:
            values = copied(row)
            if reads is not None and values[place] is not None:
                values[place] = reads(values[place])
            return Struct.trusted(updated, values)

        if isinstance(schema.default, Struct):
            with_struct_default(updated, convert(schema.default).values)
        return updated, convert

    def _converting(self, schema: Schema) -> Callable[[Any], Any]:
        """From the values of a schema. One that is no time is refused when there is a value."""
        from_ms = self._from_ms
        if schema.name in (DATE_NAME, TIME_NAME, TIMESTAMP_NAME):
            if schema.name == TIMESTAMP_NAME == _SCHEMAS[self._target].name:
                return lambda value: value
            return lambda value: from_ms(ms_of(value))
        if schema.type is Type.STRING:
            return lambda value: from_ms(self._parsed(value))
        if schema.type is Type.INT64:
            return lambda value: from_ms(self._from_unix(value))
        raise ConnectError(f"Schema {schema!r} does not correspond to a known timestamp type format")

    def _without_schema(self, value: Any) -> Any:
        if value is None or not self._field:
            return self._inferred(value)
        updated = require_map(value, _PURPOSE).copy()
        updated[self._field] = self._inferred(value.get(self._field))
        return updated

    def _inferred(self, value: Any) -> Any:
        """By what it is in Python: a date or time, a number, a text."""
        if value is None:
            return None
        if is_time(value):
            ms = ms_of(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            ms = self._from_unix(value)
        elif isinstance(value, str):
            ms = self._parsed(value)
        else:
            raise DataError(
                f"TimestampConverter does not support class {java_class(value)} objects as timestamps"
            )
        return self._from_ms(ms)

    def _from_unix(self, value: int) -> int:
        return _scaled(value, 1000, self._per_second)

    def _parsed(self, text: str) -> int:
        if self._format is None:
            raise DataError(f"Could not parse timestamp: value ({text}) has no pattern: there is no format")
        ms = self._format.parse(text)
        if ms is None:
            raise DataError(
                f"Could not parse timestamp: value ({text}) does not match pattern ({self._format.pattern})"
            )
        return ms


def _scaled(value: int, wanted: int, given: int) -> int:
    """In another unit: cut towards zero, and the greatest of 64 bits if it is too large."""
    if wanted < given:
        factor = given // wanted
        return value // factor if value >= 0 else -(-value // factor)
    scaled = value * (wanted // given)
    return scaled if wrapped(scaled, 64) == scaled else _LONG_MAX if scaled > 0 else -_LONG_MAX - 1


class TimestampConverterKey(TimestampConverter):
    is_key = True
    java_names = (PACKAGE + "TimestampConverter$Key",)


class TimestampConverterValue(TimestampConverter):
    java_names = (PACKAGE + "TimestampConverter$Value",)
