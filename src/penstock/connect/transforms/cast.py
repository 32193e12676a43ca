"""Cast: fields, or the whole key or value, become another type."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from penstock.connect.data.floats import float_text, to_single
from penstock.connect.data.logical import DATE_NAME, LOGICAL, TIME_NAME, TIMESTAMP_NAME
from penstock.connect.data.schema import Schema, Type
from penstock.connect.data.structs import Struct
from penstock.connect.data.text import time_text
from penstock.connect.errors import ConnectError, DataError, InvalidConfig
from penstock.connect.records import ConnectRecord
from penstock.connect.settings import HIGH, Check, Kind, Setting, Settings
from penstock.connect.transforms.java_numbers import (
    float64_of,
    integer_of,
    parsed_float,
    parsed_integer,
)
from penstock.connect.transforms.sides import (
    NULL_SETTING,
    PACKAGE,
    REPLACE_NULL,
    BySchema,
    Copier,
    OnKeyOrValue,
    java_class,
    require_map,
    require_struct,
    with_basics,
)

_PURPOSE: Final = "cast types"
_WHOLE: Final = ""
_BY_NAME: Final[Mapping[str, Type]] = MappingProxyType({each.name: each for each in Type})
_TARGETS: Final = (
    Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING,
)  # fmt: skip
_SOURCES: Final = frozenset((*_TARGETS, Type.BYTES))
_BITS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
Casting = Callable[[Any], Any]


def _listed(types: tuple[Type, ...]) -> str:
    return f"[{', '.join(each.name for each in types)}]"


def parse_spec(spec: list[str]) -> dict[str, Type]:
    """Types by the names of fields; that of the whole value is under the empty name. InvalidConfig."""
    casts: dict[str, Type] = {}
    for item in spec:
        parts = item.rstrip(":").split(":")
        if len(parts) > 2:
            raise InvalidConfig(
                f"Invalid value [{', '.join(spec)}] for configuration renames: Invalid rename mapping: {item}"
            )
        target = _BY_NAME.get(parts[-1].strip().upper())
        if target is None:
            raise InvalidConfig(f"Invalid type found in casting spec: {parts[-1].strip()}")
        if target not in _TARGETS:
            raise InvalidConfig(
                f"Cast transformation does not support casting to {target.name}; supported types are {_listed(_TARGETS)}"
            )
        casts[parts[0].strip() if len(parts) == 2 else _WHOLE] = target
    if _WHOLE in casts and len(spec) > 1:
        raise InvalidConfig(
            "Cast transformations that specify a type to cast the entire value to may only specify a single cast in their spec"
        )
    return casts


def _refusal(name: str, value: list[str]) -> Any:
    if not value:
        return InvalidConfig("Must specify at least one field to cast.")
    try:
        parse_spec(value)
    except InvalidConfig as error:
        return error
    return None


class Cast(OnKeyOrValue):
    settings = Settings(
        Setting(
            "spec",
            Kind.LIST,
            "What becomes what, as field:type,field:type; or one type for the whole key or value. The types are int8, int16, "
            "int32, int64, float32, float64, boolean and string. Bytes become strings only (base64).",
            importance=HIGH,
            check=Check("field:type,…", _refusal),
        ),
        NULL_SETTING,
    )

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        self._casts = parse_spec(self.values["spec"])
        self._whole = self._casts.get(_WHOLE)
        self._plans = BySchema(self._plan)
        self._whole_plans = BySchema(self._whole_plan)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self.operand(record)
        if value is None:
            return record
        if schema is None:
            return self.made(record, None, self._without_schema(value))
        if self._whole is not None:
            updated, casting = self._whole_plans(schema)
            return self.made(record, updated, casting(value))
        updated, copier, castings = self._plans(schema)
        values = copier(require_struct(value, _PURPOSE))
        for index, casting in castings:
            found = values[index]
            if found is not None:
                values[index] = casting(found)
        return self.made(record, updated, Struct.trusted(updated, values))

    def _without_schema(self, value: Any) -> Any:
        if self._whole is not None:
            return cast_without_schema(value, self._whole)
        updated = require_map(value, _PURPOSE).copy()
        for name, target in self._casts.items():
            updated[name] = cast_without_schema(value.get(name), target)
        return updated

    def _whole_plan(self, schema: Schema) -> tuple[Schema, Casting]:
        """What was a date, a time or a decimal is none any more. Kafka leaves it the name, and no converter takes that."""
        assert self._whole is not None
        make = _bare if schema.name in LOGICAL else with_basics
        return _cast_schema(schema, self._whole, make), casting_of(schema, self._whole)

    def _plan(self, schema: Schema) -> tuple[Schema, Copier, tuple[tuple[int, Casting], ...]]:
        fields, castings = [], []
        for field in schema.fields:
            target = self._casts.get(field.name)
            if target is None:
                fields.append((field.name, field.schema))
            else:
                fields.append((field.name, _cast_schema(field.schema, target, _bare)))
                castings.append((field.index, casting_of(field.schema, target)))
        if schema.default is not None:
            raise _not_from(schema.type)
        updated = with_basics(schema, fields=fields, is_optional=schema.is_optional)
        return updated, Copier(schema, with_defaults=self.values[REPLACE_NULL]), tuple(castings)


def _bare(source: Schema, **attributes: Any) -> Schema:
    return Schema(**attributes)


def _cast_schema(schema: Schema, target: Type, make: Callable[..., Schema]) -> Schema:
    default = None if schema.default is None else casting_of(schema, target)(schema.default)
    return make(schema, type=target, is_optional=schema.is_optional, default=default)


def _not_from(source: Type) -> ConnectError:
    supported = _listed((*_TARGETS, Type.BYTES))
    return DataError(
        f"Cast transformation does not support casting from {source.name}; supported types are {supported}"
    )


def cast_without_schema(value: Any, target: Type) -> Any:
    """By the type that the value has in Python: an int is Java's long."""
    if value is None:
        return None
    source = _TYPES.get(type(value))
    if source is None:
        raise DataError(
            f"Cast transformation was passed a value of type class {java_class(value)} which is not supported by Connect's "
            "data API"
        )
    return casting_of(Schema(source) if source in _SOURCES else None, target, source)(value)


_TYPES: Final[Mapping[type, Type]] = MappingProxyType({
    bool: Type.BOOLEAN, int: Type.INT64, float: Type.FLOAT64, str: Type.STRING, bytes: Type.BYTES, bytearray: Type.BYTES,
    list: Type.ARRAY, dict: Type.MAP, Struct: Type.STRUCT,
})  # fmt: skip


def casting_of(schema: Schema | None, target: Type, source: Type | None = None) -> Casting:
    """How values of a schema become this type; one that never can raises when it is asked to. Not for nulls."""
    source = schema.type if schema is not None else source
    if source not in _SOURCES:
        assert source is not None
        refusal = _not_from(source)
        return lambda value: _raise(refusal)
    if target is Type.STRING:
        return _to_text(source)
    name = schema.name if schema is not None else None
    if schema is not None and name in (DATE_NAME, TIME_NAME, TIMESTAMP_NAME):
        assert name is not None
        to_base, after = LOGICAL[name].to_base, _to_type(target)
        return lambda value: after(to_base(schema, value))
    return _to_type(target)


def _raise(error: Exception) -> Any:
    raise error


def _to_type(target: Type) -> Casting:
    if target in _BITS:
        return _to_integer(_BITS[target])
    if target is Type.BOOLEAN:
        return _to_boolean
    return _to_float(to_single if target is Type.FLOAT32 else float64_of)


def _to_integer(bits: int) -> Casting:
    def cast(value: Any) -> int:
        if isinstance(value, (int, float, Decimal)):
            return integer_of(value, bits)
        if isinstance(value, str):
            number: int = _read(lambda text: parsed_integer(text, bits), value)
            return number
        raise _unexpected(value)

    return cast


def _to_float(narrowed: Callable[[float], float]) -> Casting:
    def cast(value: Any) -> float:
        if isinstance(value, (int, float, Decimal)):
            return narrowed(float64_of(value))
        if isinstance(value, str):
            return narrowed(_read(parsed_float, value))
        raise _unexpected(value)

    return cast


def _to_boolean(value: Any) -> bool:
    if isinstance(value, (int, float, Decimal)):
        return integer_of(value, 64) != 0
    if isinstance(value, str):
        return value.lower() == "true"
    raise _unexpected(value)


def _read(parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except ValueError:
        raise DataError(f"Value ({text}) was out of range for requested data type") from None


def _to_text(source: Type) -> Casting:
    is_single = source is Type.FLOAT32

    def cast(value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (bytes, bytearray, memoryview)):
            return base64.b64encode(value).decode()
        if isinstance(value, float) or source in (Type.FLOAT32, Type.FLOAT64):
            return float_text(float(value), is_single=is_single)
        if isinstance(value, (dt.date, dt.time)):
            return time_text(value)
        return str(value)

    return cast


def _unexpected(value: Any) -> DataError:
    return DataError(f"Unexpected type in Cast transformation: class {java_class(value)}")


class CastKey(Cast):
    is_key = True
    java_names = (PACKAGE + "Cast$Key",)


class CastValue(Cast):
    java_names = (PACKAGE + "Cast$Value",)
