"""Statements as KSQL 5.1 read them, where `ksql.query.legacy.format` is true.

    CREATE STREAM s (a VARCHAR) WITH (…, KEY='a');   → CREATE STREAM s (ROWKEY VARCHAR KEY, a VARCHAR) WITH (…);
    SELECT * FROM s;                                 → SELECT ROWTIME, * FROM s EMIT CHANGES;

KEY named a column of the value that has what the key has. It said so that no repartition was needed; here it is checked, and has
no other effect.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from penstock.sql.analysis.catalog import Catalog
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.parsing.statements import (
    ColumnDeclaration,
    ColumnRole,
    CreateSource,
    Emit,
    Select,
    SelectAll,
    SelectExpression,
)
from penstock.streams.plan.expressions import ColumnRef
from penstock.streams.plan.schema import ROWTIME
from penstock.streams.plan.sources import SourceKind
from penstock.streams.plan.types import STRING

LEGACY: Final = "ksql.query.legacy.format"
ROWKEY: Final = "ROWKEY"
_KEYS: Final = (ColumnRole.KEY, ColumnRole.PRIMARY_KEY)


def is_legacy(catalog: Catalog) -> bool:
    return catalog.property(LEGACY) == "true"


def with_old_key(statement: CreateSource, catalog: Catalog) -> CreateSource:
    """A statement that says a key column itself stays as it is."""
    if not is_legacy(catalog) or any(column.role in _KEYS for column in statement.columns):
        return statement
    named = dict(statement.properties).get("KEY")
    if named is not None:
        key = _name(str(named))
        if key not in {column.name for column in statement.columns}:
            raise StatementRefused(
                f"The KEY column set in the WITH clause does not exist in the schema: '{key}'"
            )
    elif statement.kind is SourceKind.TABLE:
        raise StatementRefused(
            "Cannot define a TABLE without providing the KEY column name in the WITH clause."
        )
    columns = statement.columns
    if columns and ROWKEY not in {column.name for column in columns}:
        role = ColumnRole.PRIMARY_KEY if statement.kind is SourceKind.TABLE else ColumnRole.KEY
        columns = (ColumnDeclaration(ROWKEY, STRING, role), *columns)
    properties = tuple(each for each in statement.properties if each[0] != "KEY")
    return replace(statement, columns=columns, properties=properties)


def as_push(select: Select, catalog: Catalog) -> Select:
    """A client's SELECT: it went on for ever, and `*` began with the time."""
    if select.emit is not None or not is_legacy(catalog):
        return select
    items = select.items
    if items == (SelectAll(),):
        items = (SelectExpression(ColumnRef(ROWTIME), ROWTIME), *items)
    return replace(select, items=items, emit=Emit.CHANGES)


def _name(text: str) -> str:
    return text[1:-1] if text.startswith("`") and text.endswith("`") else text.upper()
