"""WITH (…): which properties there are, and what each may say."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from penstock.sql.analysis.checking import unprepared
from penstock.sql.parsing.statements import Properties
from penstock.streams.functions.date_patterns import elements_of
from penstock.streams.functions.refusals import FunctionFailed
from penstock.streams.plan.sources import WindowKind

_TEXT, _INT, _SHORT, _LONG, _FLAG = "STRING", "INT", "SHORT", "LONG", "BOOLEAN"
_COMMON: Final = {
    "KAFKA_TOPIC": _TEXT,
    "PARTITIONS": _INT,
    "REPLICAS": _SHORT,
    "RETENTION_MS": _LONG,
    "CLEANUP_POLICY": _TEXT,
    "FORMAT": _TEXT,
    "KEY_FORMAT": _TEXT,
    "VALUE_FORMAT": _TEXT,
    "TIMESTAMP": _TEXT,
    "TIMESTAMP_FORMAT": _TEXT,
    "WRAP_SINGLE_VALUE": _FLAG,
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION": _TEXT,
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION": _TEXT,
    "VALUE_AVRO_SCHEMA_FULL_NAME": _TEXT,
    "KEY_SCHEMA_FULL_NAME": _TEXT,
    "VALUE_SCHEMA_FULL_NAME": _TEXT,
    "KEY_DELIMITER": _TEXT,
    "VALUE_DELIMITER": _TEXT,
    "KEY_SCHEMA_ID": _INT,
    "VALUE_SCHEMA_ID": _INT,
}
OF_SOURCE: Final = {
    **_COMMON,
    "WINDOW_TYPE": _TEXT,
    "WINDOW_SIZE": _TEXT,
    "SOURCE_CONNECTOR": _TEXT,
    "SOURCED_BY_CONNECTOR": _TEXT,
}
OF_SINK: Final = _COMMON
OF_INSERT: Final = {"QUERY_ID": _TEXT}
_BITS: Final = {
    _INT: (32, "32-bit integer"),
    _SHORT: (16, "16-bit integer (short)"),
    _LONG: (64, "64-bit integer (long)"),
}
_JAVA_TYPES: Final = {bool: "Boolean", int: "Integer", str: "String", float: "Double", Decimal: "BigDecimal"}


@dataclass(frozen=True, slots=True)
class With:
    """Properties that have been checked, by name."""

    values: dict[str, Any]

    def text(self, name: str) -> str | None:
        value = self.values.get(name)
        return None if value is None else str(value)

    def number(self, name: str) -> int | None:
        value: int | None = self.values.get(name)
        return value

    def flag(self, name: str) -> bool | None:
        value: bool | None = self.values.get(name)
        return value

    @property
    def key_format(self) -> str | None:
        return self.text("FORMAT") or self.text("KEY_FORMAT")

    @property
    def value_format(self) -> str | None:
        return self.text("FORMAT") or self.text("VALUE_FORMAT")

    def format_properties(
        self, target: str, format_name: str, *, avro_key_of: str | None = None
    ) -> dict[str, str]:
        """Of the key's or value's format. `target` is KEY or VALUE; `avro_key_of` names the source whose key it is."""
        found: dict[str, str] = {}
        full_name = self.text(f"{target}_SCHEMA_FULL_NAME")
        if target == "VALUE":
            full_name = self.text("VALUE_AVRO_SCHEMA_FULL_NAME") or full_name
        if full_name is not None:
            found["full_name"] = full_name
        elif target == "KEY" and format_name.upper() == "AVRO" and avro_key_of is not None:
            found["full_name"] = f"io.confluent.ksql.avro_schemas.{avro_key_of}Key"
        delimiter = self.text(f"{target}_DELIMITER")
        if delimiter is not None:
            found["delimiter"] = delimiter
        nullable = self.text(f"{target}_PROTOBUF_NULLABLE_REPRESENTATION")
        if nullable is not None:
            if not format_name.upper().startswith("PROTOBUF"):
                raise unprepared(
                    f"Property {target}_PROTOBUF_NULLABLE_REPRESENTATION can only be enabled with protobuf format"
                )
            found["nullable_representation"] = nullable
        schema_id = self.number(f"{target}_SCHEMA_ID")
        if schema_id is not None:
            found["schema_id"] = str(schema_id)
        return found


def read_with(properties: Properties, known: dict[str, str]) -> With:
    values: dict[str, Any] = {}
    for name, value in properties:
        if name in known and value is not None:
            values[name] = _typed(name, value, known[name])
    unknown = [name for name, _ in properties if name not in known]
    if unknown:
        raise unprepared(f"Invalid config variable(s) in the WITH clause: {','.join(unknown)}")
    for name, check in _CHECKS.items():
        if name in values:
            check(name, values[name])
    _check_together(values)
    return With(values)


def _typed(name: str, value: Any, kind: str) -> Any:
    if kind == _TEXT:
        if isinstance(value, str):
            return value
        raise _invalid(name, value, "a string")
    if kind == _FLAG:
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.strip().lower() in ("true", "false"):
            return value.strip().lower() == "true"
        raise _invalid(name, value, "either true or false")
    bits, shown = _BITS[kind]
    if isinstance(value, str):
        try:
            value = int(value.strip())
        except ValueError:
            raise unprepared(
                f"Invalid value {value} for property {name}: Not a number of type {kind}"
            ) from None
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
    ):
        raise _invalid(name, value, f"a {shown}")
    return value


def _invalid(name: str, value: Any, wanted: str) -> Exception:
    java = _JAVA_TYPES.get(type(value), type(value).__name__)
    return unprepared(
        f"Invalid value {value} for property {name}: Expected value to be {wanted}, but it was a java.lang.{java}"
    )


def _check_delimiter(name: str, value: str) -> None:
    if not value.strip():
        raise unprepared(
            f"Configuration {name} is invalid: Delimiter cannot be empty, if you meant to have a tab or space for delimiter, "
            "please use the special values 'TAB' or 'SPACE'\nExample valid value: ';'"
        )
    if len(value) != 1 and value not in ("TAB", "SPACE"):
        raise unprepared(
            f"Configuration {name} is invalid: Invalid delimiter value: '{value}'. "
            "Delimiter must be a single character or TAB,SPACE\nExample valid value: ';'"
        )


def _check_nullable(name: str, value: str) -> None:
    _check_one_of(name, value, ("OPTIONAL", "WRAPPER"))


def _check_window_type(name: str, value: str) -> None:
    _check_one_of(name, value, ("SESSION", "HOPPING", "TUMBLING"))


def _check_one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value.upper() not in allowed:
        shown = ", ".join(allowed)
        raise unprepared(f"Invalid value {value} for property {name}: String must be one of: {shown}, null")


def _check_window_size(name: str, value: str) -> None:
    try:
        duration_ms(value)
    except ValueError as refused:
        raise unprepared(f"Configuration {name} is invalid: {refused}") from None


def _check_topic(name: str, value: str) -> None:
    if not value:
        raise unprepared(f"Invalid value  for property {name}: String must be non-empty")


def _check_pattern(name: str, value: str) -> None:
    try:
        elements_of(value)
    except FunctionFailed as failed:
        raise unprepared(f"Invalid datetime format for config:{name}, reason:{failed}") from None


_CHECKS: Final[dict[str, Callable[[str, str], None]]] = {
    "KAFKA_TOPIC": _check_topic,
    "KEY_DELIMITER": _check_delimiter,
    "VALUE_DELIMITER": _check_delimiter,
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION": _check_nullable,
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION": _check_nullable,
    "TIMESTAMP_FORMAT": _check_pattern,
    "WINDOW_TYPE": _check_window_type,
    "WINDOW_SIZE": _check_window_size,
}
_TIMES: Final = {
    "NANOSECOND": Decimal("0.000001"),
    "MICROSECOND": Decimal("0.001"),
    "MILLISECOND": Decimal(1),
    "SECOND": Decimal(1000),
    "MINUTE": Decimal(60_000),
    "HOUR": Decimal(3_600_000),
    "DAY": Decimal(86_400_000),
}


def duration_ms(text: str) -> int:
    """`30 SECONDS`; ValueError says what is wrong."""
    parts = re.split(r"\s", text)
    if len(parts) != 2:
        raise ValueError(f"Invalid duration: '{text}'. Expected 2 tokens, got: {len(parts)}")
    if not re.fullmatch(r"[+-]?\d+", parts[0]):
        raise ValueError(f"Invalid duration: '{text}'. Not numeric: '{parts[0]}'")
    unit = parts[1].upper()
    factor = _TIMES.get(unit.removesuffix("S"))
    if factor is None:
        units = ", ".join(f"{each}S" for each in _TIMES)
        raise ValueError(
            f"Invalid duration: '{text}'. Unknown time unit: '{unit}'\nSupported time units are: {units}"
        )
    return int(int(parts[0]) * factor)


def _check_together(values: dict[str, Any]) -> None:
    if "FORMAT" in values:
        for name in ("KEY_FORMAT", "VALUE_FORMAT"):
            if name in values:
                raise unprepared(
                    f"Cannot supply both '{name}' and 'FORMAT' properties, as 'FORMAT' sets both key and value formats. "
                    "Either use just 'FORMAT', or use 'KEY_FORMAT' and 'VALUE_FORMAT'."
                )
    if "VALUE_AVRO_SCHEMA_FULL_NAME" in values and "VALUE_SCHEMA_FULL_NAME" in values:
        raise unprepared(
            "Cannot supply both 'VALUE_AVRO_SCHEMA_FULL_NAME' and 'VALUE_SCHEMA_FULL_NAME' properties. "
            "Please only set 'VALUE_SCHEMA_FULL_NAME'."
        )
    kind = values.get("WINDOW_TYPE", "").upper()
    needs_size = kind in (WindowKind.HOPPING, WindowKind.TUMBLING)
    if needs_size and "WINDOW_SIZE" not in values:
        raise unprepared(
            f"{kind} windows require 'WINDOW_SIZE' to be provided in the WITH clause. "
            "For example: 'WINDOW_SIZE'='10 SECONDS'"
        )
    if not needs_size and "WINDOW_SIZE" in values:
        raise unprepared("'WINDOW_SIZE' should not be set for SESSION windows.")
