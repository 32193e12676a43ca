"""MaskField: fields lose what they say. They become zero, empty or false, or a text or number of one's own."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from penstock.connect.data.floats import to_single
from penstock.connect.data.logical import DATE_NAME, DECIMAL_NAME, EPOCH, TIME_NAME, TIMESTAMP_NAME, scale_of
from penstock.connect.data.schema import INTEGER_BITS, Schema, Type
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError
from penstock.connect.records import ConnectRecord
from penstock.connect.settings import HIGH, LOW, Kind, Setting, Settings
from penstock.connect.transforms.checks import NOT_EMPTY, NOT_EMPTY_TEXT
from penstock.connect.transforms.java_numbers import float64_of, integer_of, parsed_decimal
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
)

_PURPOSE: Final = "mask fields"
Mask = Callable[[], Any]
"""What stands in the place of a value."""
_EMPTY: Final[Mapping[Type, Mask]] = MappingProxyType({
    Type.INT8: int, Type.INT16: int, Type.INT32: int, Type.INT64: int, Type.FLOAT32: float, Type.FLOAT64: float,
    Type.BOOLEAN: bool, Type.STRING: str, Type.ARRAY: list, Type.MAP: dict,
})  # fmt: skip
_EMPTY_LOGICAL: Final[Mapping[str, Mask]] = MappingProxyType(
    {DATE_NAME: EPOCH.date, TIME_NAME: dt.time, TIMESTAMP_NAME: lambda: EPOCH}
)
_PYTHON: Final[Mapping[type, Mask]] = MappingProxyType({
    bool: bool, int: int, float: float, str: str, list: list, dict: dict, Decimal: Decimal, dt.date: EPOCH.date, dt.time: dt.time,
    dt.datetime: lambda: EPOCH,
})  # fmt: skip


class MaskField(OnKeyOrValue):
    settings = Settings(
        Setting("fields", Kind.LIST, "The fields that are masked.", importance=HIGH, check=NOT_EMPTY),
        Setting(
            "replacement",
            Kind.STRING,
            "What all of them become, if they are numbers or strings. Without it they become 0, false or empty.",
            default=None,
            importance=LOW,
            check=NOT_EMPTY_TEXT,
        ),
        NULL_SETTING,
    )

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        self._fields = frozenset(self.values["fields"])
        self._replacement: str | None = self.values["replacement"]
        self._plans = BySchema(self._plan)

    def _plan(self, schema: Schema) -> tuple[Copier, tuple[tuple[int, Mask], ...]]:
        masks = tuple(
            (field.index, self._mask(field.schema)) for field in schema.fields if field.name in self._fields
        )
        return Copier(schema, with_defaults=self.values[REPLACE_NULL]), masks

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self.operand(record)
        if schema is None:
            updated = require_map(value, _PURPOSE).copy()
            for name in self._fields:
                updated[name] = self._masked(value.get(name))
            return self.made(record, None, updated)
        row = require_struct(value, _PURPOSE)
        copied, masks = self._plans(row.schema)
        values = copied(row)
        for index, mask in masks:
            if values[index] is not None:
                values[index] = mask()
        return self.made(record, schema, Struct.trusted(row.schema, values))

    def _mask(self, schema: Schema) -> Mask:
        """One that cannot be refuses when it is used: the field may always be null."""
        empty = _EMPTY_LOGICAL.get(schema.name or "") or _EMPTY.get(schema.type)
        if schema.name == DECIMAL_NAME and schema.type is Type.BYTES:
            return self._decimal(schema)
        if self._replacement is None:
            return empty or _refusing(f"Cannot mask value of type: class {_class_of(schema)}")
        if schema.name in _EMPTY_LOGICAL:
            return self._no_replacement("java.util.Date")
        replaced = self._replaced(schema.type, self._replacement)
        return replaced or self._no_replacement(_class_of(schema))

    def _no_replacement(self, java_name: str) -> Mask:
        return _refusing(f"Cannot mask value of type class {java_name} with custom replacement.")

    def _replaced(self, target: Type, text: str) -> Mask | None:
        if target is Type.STRING:
            return lambda: text
        if target not in INTEGER_BITS and target not in (Type.FLOAT32, Type.FLOAT64):
            return None
        try:
            number = parsed_decimal(text)
        except ValueError:
            return _refusing(f"Unable to convert {text} (class java.lang.String) to a number")
        bits = INTEGER_BITS.get(target)
        if bits is not None:
            whole = integer_of(number, bits)
            return lambda: whole
        near = float64_of(number) if target is Type.FLOAT64 else to_single(float64_of(number))
        return lambda: near

    def _decimal(self, schema: Schema) -> Mask:
        """With the scale of the schema; Kafka leaves the scale of the replacement, which no converter takes."""
        scale = scale_of(schema)
        text = self._replacement or "0"
        try:
            number = parsed_decimal(text)
        except ValueError:
            return _refusing(f"Unable to convert {text} (class java.lang.String) to number")
        scaled = number.quantize(Decimal(1).scaleb(-scale)) if number == 0 or _fits(number, scale) else None
        if scaled is None:
            return _refusing(f"The replacement {text} has more digits than the scale {scale} of the field")
        return lambda: scaled

    def _masked(self, value: Any) -> Any:
        """Without a schema: by its type in Python."""
        if value is None:
            return None
        kind = type(value)
        if self._replacement is None:
            empty = _PYTHON.get(kind)
            if empty is None:
                raise DataError(f"Cannot mask value of type: class {java_class(value)}")
            return empty()
        if kind is Decimal:
            try:
                return parsed_decimal(self._replacement)
            except ValueError:
                raise DataError(
                    f"Unable to convert {self._replacement} (class java.lang.String) to number"
                ) from None
        target = {int: Type.INT64, float: Type.FLOAT64, str: Type.STRING}.get(kind)
        mask = None if target is None else self._replaced(target, self._replacement)
        return (mask or self._no_replacement(java_class(value)))()


def _fits(number: Decimal, scale: int) -> bool:
    exponent = number.normalize().as_tuple().exponent
    return isinstance(exponent, int) and -exponent <= scale and number.adjusted() + scale < 28


def _refusing(message: str) -> Mask:
    def refuse() -> Any:
        raise DataError(message)

    return refuse


def _class_of(schema: Schema) -> str:
    classes = {
        Type.BYTES: "[B", Type.BOOLEAN: "java.lang.Boolean", Type.ARRAY: "java.util.ArrayList", Type.MAP: "java.util.HashMap",
        Type.STRUCT: "org.apache.kafka.connect.data.Struct",
    }  # fmt: skip
    return classes.get(schema.type, schema.type.name)


class MaskFieldKey(MaskField):
    is_key = True
    java_names = (PACKAGE + "MaskField$Key",)


class MaskFieldValue(MaskField):
    java_names = (PACKAGE + "MaskField$Value",)
