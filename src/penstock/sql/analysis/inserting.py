"""INSERT INTO … VALUES: one record, computed without any row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.sql.analysis.catalog import Catalog
from penstock.sql.analysis.checking import check_no_special, unprepared, within_depth
from penstock.sql.analysis.planned import InsertedRow
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.scopes import alternatives
from penstock.sql.analysis.trees import columns_of
from penstock.sql.analysis.types import resolved
from penstock.sql.parsing.statements import InsertValues
from penstock.streams.functions import coercion, java_text
from penstock.streams.functions.refusals import FunctionFailed, TypeRefused
from penstock.streams.functions.typing import type_of
from penstock.streams.kernel.compiling import evaluate
from penstock.streams.plan.expressions import Expression
from penstock.streams.plan.schema import PSEUDO_COLUMNS, ROWTIME
from penstock.streams.plan.sources import Source, SourceKind
from penstock.streams.plan.types import Kind, SqlType

_FORMS = {
    Kind.TIMESTAMP: ". Timestamp format must be yyyy-mm-ddThh:mm:ss[.S]",
    Kind.TIME: ". Time format must be hh:mm:ss[.S]",
    Kind.DATE: ". Date format must be yyyy-mm-dd",
}


@within_depth
def insert_values(statement: InsertValues, catalog: Catalog) -> InsertedRow:
    _check_shape(statement)
    statement = resolved(statement, catalog)
    source = _target(statement.name, catalog)
    _check_headers(statement, source)
    try:
        values = _values(statement, source)
    except StatementRefused as refused:
        raise StatementRefused(
            f"Failed to insert values into '{statement.name}'. {refused.message}", refused.place
        ) from None
    schema = source.schema
    key = tuple(values.get(column.name) for column in schema.key)
    headers = {name for name, _ in schema.headers}
    value = tuple(values.get(column.name) for column in schema.value if column.name not in headers)
    return InsertedRow(
        source,
        None if all(each is None for each in key) else key,
        value,
        values.get(ROWTIME),
    )


def _check_shape(statement: InsertValues) -> None:
    if statement.columns and len(statement.columns) != len(statement.values):
        raise unprepared(
            f"Expected number columns and values to match: {len(statement.columns)}, {len(statement.values)}"
        )
    for value in statement.values:
        for column in columns_of(value):
            if column.source is not None:
                raise unprepared(
                    f"'{column.source}' is not a valid stream/table name or alias.", column.place
                )


def _target(name: str, catalog: Catalog) -> Source:
    source = catalog.source(name)
    if source is None:
        raise StatementRefused(
            f"Cannot insert values into an unknown stream/table: `{name}`{alternatives(name, catalog)}"
        )
    if source.window is not None:
        raise StatementRefused("Cannot insert values into windowed stream/table!")
    if source.is_read_only:
        raise StatementRefused(f"Cannot insert values into read-only {source.kind.lower()}: {name}")
    return source


def _check_headers(statement: InsertValues, source: Source) -> None:
    headers = [name for name, _ in source.schema.headers]
    named = [name for name in headers if not statement.columns or name in statement.columns]
    if named:
        raise StatementRefused(f"Cannot insert into HEADER columns: {', '.join(named)}")


def _values(statement: InsertValues, source: Source) -> dict[str, Any]:
    schema = source.schema
    names: Sequence[str] = statement.columns or [each.name for each in (*schema.key, *schema.value)]
    if len(names) != len(statement.values):
        shown = ", ".join(f"`{name}`" for name in statement.columns)
        values = ", ".join(str(each) for each in statement.values)
        raise StatementRefused(
            f"Expected a value for each column. Expected Columns: [{shown}]. Got [{values}]"
        )
    found: dict[str, Any] = {}
    for name, expression in zip(names, statement.values, strict=True):
        type_ = schema.type_of(name) or PSEUDO_COLUMNS.get(name)
        if type_ is None:
            raise StatementRefused(f"Column name `{name}` does not exist.")
        if name in PSEUDO_COLUMNS and name != ROWTIME:
            raise StatementRefused(f"Inserting into column `{name}` is not allowed.")
        found[name] = _value(name, expression, type_)
    missing = [each.name for each in schema.key if each.name not in found]
    if source.kind is SourceKind.TABLE and missing:
        raise StatementRefused(f"Value for primary key column(s) {', '.join(missing)} is required for tables")
    return found


def _value(name: str, expression: Expression, wanted: SqlType) -> Any:
    if columns_of(expression):
        raise StatementRefused(
            f"Unsupported column reference in insert value: {expression}", expression.place
        )
    check_no_special(expression)
    try:
        given = type_of(expression, lambda _: None)
        value = evaluate(expression)
    except (TypeRefused, FunctionFailed, ArithmeticError, ValueError) as failed:
        raise StatementRefused(str(failed), expression.place) from None
    if value is None or given is None:
        return None
    try:
        return coercion.coerced(value, given, wanted)
    except (TypeRefused, FunctionFailed):
        ending = _FORMS.get(wanted.kind, "") if given.kind is Kind.STRING else ""
        raise StatementRefused(
            f"Expected type {wanted} for field `{name}` but got {given.kind}({java_text.text_of(value, given)}){ending}",
            expression.place,
        ) from None
