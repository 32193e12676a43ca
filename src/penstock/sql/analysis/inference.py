"""Columns that the statement does not name come from the schema registry; and a schema that is named by its id has to fit.

What the registry said is remembered in properties beside the statement (`remembered`): when the statement is read again, after a
restart, it means the same, though there may be newer schemas by then, or no registry that answers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from penstock.sql.analysis.catalog import Catalog
from penstock.sql.analysis.formats import format_of, rules_of
from penstock.sql.analysis.properties import OF_SOURCE, With, read_with
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.parsing.parser import parse
from penstock.sql.parsing.statements import ColumnDeclaration, ColumnRole, CreateAsSelect, CreateSource
from penstock.streams.formats.failures import FormatRefused
from penstock.streams.formats.inference import Inferred, infer
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Format, Formats, Source, SourceKind

_KEYS: Final = (ColumnRole.KEY, ColumnRole.PRIMARY_KEY)
INFERRED_KEY: Final = "penstock.sql.inferred.key"
INFERRED_VALUE: Final = "penstock.sql.inferred.value"


def with_inferred(
    statement: CreateSource, topic: str, given: With, formats: Formats, catalog: Catalog
) -> tuple[Sequence[ColumnDeclaration], Formats]:
    """The columns of CREATE STREAM and CREATE TABLE, and formats that name the schemas which were asked for."""
    keys = [column for column in statement.columns if column.role in _KEYS]
    values = [column for column in statement.columns if column.role is ColumnRole.VALUE]
    headers = [column for column in statement.columns if column.role is ColumnRole.HEADERS]
    key_format, value_format = formats.key, formats.value
    if _infers(given, "KEY", key_format, bool(keys)):
        found = _looked_up(topic, key_format, given, catalog, is_key=True)
        role = ColumnRole.PRIMARY_KEY if statement.kind is SourceKind.TABLE else ColumnRole.KEY
        keys = [ColumnDeclaration(column.name, column.type, role) for column in found.columns]
        key_format = _named(key_format, found, given, "KEY")
    if _infers(given, "VALUE", value_format, bool(values)):
        found = _looked_up(topic, value_format, given, catalog, is_key=False)
        values = [ColumnDeclaration(column.name, column.type) for column in found.columns]
        value_format = _named(value_format, found, given, "VALUE")
    columns = [*keys, *values, *headers]
    if not columns:
        raise StatementRefused("No columns supplied.")
    return columns, replace(formats, key=key_format, value=value_format)


def _infers(given: With, target: str, format_: Format, has_columns: bool) -> bool:
    if given.number(f"{target}_SCHEMA_ID") is not None:
        if has_columns:
            raise StatementRefused(
                f"Table elements and {target}_SCHEMA_ID cannot both exist for create statement."
            )
        return True
    return not has_columns and rules_of(format_.name).infers


def _looked_up(topic: str, format_: Format, given: With, catalog: Catalog, *, is_key: bool) -> Inferred:
    known = catalog.property(INFERRED_KEY if is_key else INFERRED_VALUE)
    if known is not None:
        return _recalled(known)
    lookup = catalog.schemas()
    if lookup is None:
        raise StatementRefused(
            f"Cannot use the format {format_.name}: no schema registry is configured. Set 'ksql.schema.registry.url'."
        )
    wrapped = not is_key and given.flag("WRAP_SINGLE_VALUE") is not False
    schema_id = given.number("KEY_SCHEMA_ID" if is_key else "VALUE_SCHEMA_ID")
    form = format_
    if is_key and given.text("KEY_SCHEMA_FULL_NAME") is None:
        form = Format(format_.name, tuple(each for each in format_.properties if each[0] != "full_name"))
    try:
        return infer(lookup, topic=topic, form=form, is_key=is_key, is_wrapped=wrapped, schema_id=schema_id)
    except FormatRefused as refused:
        raise StatementRefused(str(refused)) from None


def _named(format_: Format, found: Inferred, given: With, target: str) -> Format:
    """With the name of the record, where the schema was named by its id."""
    if given.number(f"{target}_SCHEMA_ID") is None or found.full_name is None:
        return format_
    return format_of(format_.name, {**dict(format_.properties), "full_name": found.full_name})


def checked_by_id(topic: str, schema: Schema, formats: Formats, given: With, catalog: Catalog) -> Formats:
    """Of CREATE … AS SELECT: columns that do not stand in the schema with the id are refused."""
    key, value = formats.key, formats.value
    if given.number("KEY_SCHEMA_ID") is not None:
        found = _looked_up(topic, key, given, catalog, is_key=True)
        _check_fit(schema.key, found.columns, "key")
        key = _named(key, found, given, "KEY")
    if given.number("VALUE_SCHEMA_ID") is not None:
        found = _looked_up(topic, value, given, catalog, is_key=False)
        _check_fit(schema.value, found.columns, "value")
        value = _named(value, found, given, "VALUE")
    return replace(formats, key=key, value=value)


def _check_fit(columns: Sequence[Column], registered: Sequence[Column], what: str) -> None:
    """Each column stands at its place in the schema; more may follow."""
    ending = " KEY" if what == "key" else ""
    wrong = [column for at, column in enumerate(columns) if at >= len(registered) or registered[at] != column]
    if wrong and columns:
        shown = ", ".join(f"`{each.name}` {each.type}{ending}" for each in wrong)
        have = ", ".join(f"`{each.name}` {each.type}{ending}" for each in registered)
        raise StatementRefused(
            f"The following {what} columns are changed, missing or reordered: [{shown}]. "
            f"Schema from schema registry is [{have}]"
        )


def remembered(statement: CreateSource | CreateAsSelect, source: Source, catalog: Catalog) -> dict[str, str]:
    """The properties that a statement has to be kept with, so that it means the same once more."""
    given = read_with(statement.properties, OF_SOURCE)
    has_key = has_value = True
    if isinstance(statement, CreateSource):
        has_key = any(column.role in _KEYS for column in statement.columns)
        has_value = any(column.role is ColumnRole.VALUE for column in statement.columns)
    found = {}
    for name, target, format_, has_columns in (
        (INFERRED_KEY, "KEY", source.formats.key, has_key),
        (INFERRED_VALUE, "VALUE", source.formats.value, has_value),
    ):
        by_id = given.number(f"{target}_SCHEMA_ID") is not None
        if by_id or (not has_columns and rules_of(format_.name).infers):
            inferred = _looked_up(source.topic, format_, given, catalog, is_key=target == "KEY")
            columns = ", ".join(f"`{column.name}` {column.type}" for column in inferred.columns)
            found[name] = json.dumps([columns, inferred.schema_id, inferred.full_name])
    return found


def _recalled(text: str) -> Inferred:
    columns, schema_id, full_name = json.loads(text)
    (statement,) = parse(f"CREATE STREAM x ({columns});")
    assert isinstance(statement, CreateSource)
    return Inferred(tuple(Column(each.name, each.type) for each in statement.columns), schema_id, full_name)
