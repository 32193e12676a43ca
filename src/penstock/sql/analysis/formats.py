"""What formats can hold, and what may be said of them in WITH."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.sql.analysis.refusals import StatementRefused
from penstock.streams.formats import delimited, kafka_values
from penstock.streams.formats.failures import FormatRefused
from penstock.streams.formats.schema_texts import schema_text
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Format, Formats
from penstock.streams.plan.types import Kind, SqlType

_SHOWN: Final = {
    "full_name": "fullSchemaName",
    "schema_id": "schemaId",
    "nullable_representation": "nullableRepresentation",
}
_NESTED: Final = (Kind.ARRAY, Kind.MAP, Kind.STRUCT)


@dataclass(frozen=True, slots=True)
class FormatRules:
    properties: tuple[str, ...] = ()
    inherited: tuple[str, ...] = ()
    wraps: bool = True
    unwraps: bool = True
    infers: bool = False  # its columns can come from the schema registry


RULES: Final = {
    "NONE": FormatRules(wraps=False, unwraps=False),
    "KAFKA": FormatRules(wraps=False),
    "DELIMITED": FormatRules(("delimiter",), ("delimiter",), wraps=False),
    "JSON": FormatRules(),
    "JSON_SR": FormatRules(("full_name", "schema_id"), infers=True),
    "AVRO": FormatRules(("full_name", "schema_id"), infers=True),
    "PROTOBUF": FormatRules(
        ("full_name", "schema_id", "nullable_representation"), ("full_name",), unwraps=False, infers=True
    ),
    "PROTOBUF_NOSR": FormatRules(("nullable_representation",)),
}


def rules_of(name: str) -> FormatRules:
    found = RULES.get(name.upper())
    if found is None:
        raise StatementRefused(f"Unknown format: {name}")
    return found


def format_of(name: str, properties: Mapping[str, str]) -> Format:
    rules = rules_of(name)
    unknown = [_SHOWN.get(each, each) for each in properties if each not in rules.properties]
    if unknown:
        raise StatementRefused(
            f"{name.upper()} does not support the following configs: [{', '.join(unknown)}]"
        )
    for each, value in properties.items():
        if not value.strip():
            shown = ", ".join(f"{_SHOWN.get(k, k)}={v}" for k, v in properties.items())
            raise StatementRefused(
                f"{_SHOWN.get(each, each)} cannot be empty. Format configuration: {{{shown}}}"
            )
    return Format(name.upper(), tuple(sorted(properties.items())))


def inherited(name: str, properties: Mapping[str, str], source: Format) -> Format:
    """A sink's format: what its WITH does not say comes from the source, where both are of one format."""
    kept = dict(source.properties) if source.name == name.upper() else {}
    rules = rules_of(name)
    return format_of(name, {**{k: v for k, v in kept.items() if k in rules.inherited}, **properties})


def value_wrapping(format_: Format, column_count: int, explicit: bool | None, default: str | None) -> bool:
    """Whether the one value column stands in an object. `explicit` is WRAP_SINGLE_VALUE, `default` the server's setting."""
    rules = rules_of(format_.name)
    if explicit is not None:
        if not (rules.wraps if explicit else rules.unwraps):
            shown = "true" if explicit else "false"
            raise StatementRefused(
                f"Format '{format_.name}' does not support 'WRAP_SINGLE_VALUE' set to '{shown}'."
            )
        if column_count != 1:
            raise StatementRefused("'WRAP_SINGLE_VALUE' is only valid for single-field value schemas")
        return explicit
    if column_count != 1 or default is None:
        return True
    wrap = default.lower() == "true"
    return wrap if (rules.wraps if wrap else rules.unwraps) else True


def check_formats(schema: Schema, formats: Formats) -> None:
    check_key(formats.key, schema.key)
    header_names = {name for name, _ in schema.headers}
    check_value(formats, [column for column in schema.value if column.name not in header_names])


def check_key(format_: Format, columns: Sequence[Column]) -> None:
    check_key_types(columns)
    rules = rules_of(format_.name)
    single = len(columns) == 1 and rules.wraps and rules.unwraps
    problem = _problem(format_, columns, key=True, is_wrapped=len(columns) != 1)
    if problem:
        raise _unsupported("Key", format_, columns, ["UNWRAP_SINGLES"] if single else [], problem)


def check_key_types(columns: Sequence[Column]) -> None:
    for column in columns:
        if _has_map(column.type):
            raise StatementRefused(
                "Map keys, including types that contain maps, are not supported as they may lead to unexpected behavior "
                f"due to inconsistent serialization. Key column name: `{column.name}`. Column type: {column.type}. "
                "See https://github.com/confluentinc/ksql/issues/6621 for more."
            )


def check_value(formats: Formats, columns: Sequence[Column]) -> None:
    is_wrapped = formats.wrap_value or len(columns) != 1
    problem = _problem(formats.value, columns, key=False, is_wrapped=is_wrapped)
    if problem:
        features = [] if formats.wrap_value else ["UNWRAP_SINGLES"]
        raise _unsupported("Value", formats.value, columns, features, problem)


def supports_key_types(format_: Format, types: Sequence[SqlType]) -> bool:
    """Whether a key of these types can be written; else an internal topic has JSON keys."""
    if format_.name == "NONE":
        return False
    if format_.name == "KAFKA":
        return len(types) <= 1 and all(each.kind in kafka_values.KINDS for each in types)
    if format_.name == "DELIMITED":
        return all(each.kind not in _NESTED for each in types)
    return True


def _has_map(type_: SqlType | None) -> bool:
    if type_ is None:
        return False
    return (
        type_.kind is Kind.MAP or _has_map(type_.element) or any(_has_map(each) for _, each in type_.fields)
    )


def _unsupported(
    target: str, format_: Format, columns: Sequence[Column], features: list[str], problem: str
) -> StatementRefused:
    return StatementRefused(
        f"{target} format does not support schema.\nformat: {format_.name}\n"
        f"schema: Persistence{{columns={_shown(columns, key=target == 'Key')}, features=[{', '.join(features)}]}}\n"
        f"reason: {problem}"
    )


def _shown(columns: Sequence[Column], *, key: bool) -> str:
    ending = " KEY" if key else ""
    return "[" + ", ".join(f"`{column.name}` {column.type}{ending}" for column in columns) + "]"


def _problem(format_: Format, columns: Sequence[Column], *, key: bool, is_wrapped: bool) -> str | None:
    """Why these columns cannot be written."""
    name = format_.name
    if not columns:
        return None
    if name == "NONE":
        return (
            f"The 'NONE' format can only be used when no columns are defined. Got: {_shown(columns, key=key)}"
        )
    if name == "KAFKA" and len(columns) > 1:
        return f"The 'KAFKA' format only supports a single field. Got: {_shown(columns, key=key)}"
    if name == "JSON":
        wrong = any(_has_other_keys(column.type) for column in columns)
        return "JSON only supports MAP types with STRING keys" if wrong else None
    try:
        if name == "KAFKA":
            kafka_values.check(columns)
        elif name == "DELIMITED":
            delimited.check(columns)
        else:
            schema_text(columns, format_, is_wrapped=is_wrapped)
    except FormatRefused as refused:
        return str(refused)
    return None


def _has_other_keys(type_: SqlType | None) -> bool:
    """A MAP somewhere, whose keys are not STRING."""
    if type_ is None:
        return False
    if type_.kind is Kind.MAP and type_.key is not None and type_.key.kind is not Kind.STRING:
        return True
    return _has_other_keys(type_.element) or any(_has_other_keys(each) for _, each in type_.fields)
