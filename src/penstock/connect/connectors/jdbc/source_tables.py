"""Which tables the source reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import inspect
from sqlalchemy.engine import Inspector

from penstock.connect.connectors.jdbc.column_types import POSTGRESQL, SQLITE
from penstock.connect.connectors.jdbc.database import Database

_SYSTEM_SCHEMAS = ("information_schema", "pg_catalog", "pg_toast")


class TableId(NamedTuple):
    schema: str | None
    name: str

    @property
    def full_name(self) -> str:
        """As offsets have it: public.orders in PostgreSQL, database.orders in MySQL."""
        return f"{self.schema}.{self.name}" if self.schema else self.name


def tables_of(database: Database, values: Mapping[str, Any]) -> list[TableId]:
    """Those that the configuration wants and that are there, in order."""
    connection = database.connection()
    with database.failures("cannot list the tables"):
        try:
            inspector = inspect(connection)
            found = [
                TableId(schema, name)
                for schema in _schemas(database, inspector, values["schema.pattern"])
                for name in _names(inspector, schema, {kind.upper() for kind in values["table.types"]})
            ]
        finally:
            database.rollback()
    return sorted(table for table in found if is_wanted(table, values, database.url.database))


def is_wanted(table: TableId, values: Mapping[str, Any], database: str | None = None) -> bool:
    names = {table.name, table.full_name, f"{database}.{table.full_name}"}
    if values["table.whitelist"]:
        return bool(names & {_bare(name) for name in values["table.whitelist"]})
    if names & {_bare(name) for name in values["table.blacklist"]}:
        return False
    # Patterns are of full names; that without a schema is one where there is none.
    full = [table.full_name, f"{database}.{table.full_name}"]
    if values["table.include.list"] and not _is_any(values["table.include.list"], full):
        return False
    return not _is_any(values["table.exclude.list"], full)


def _bare(name: str) -> str:
    return name.replace('"', "").replace("`", "")


def _is_any(patterns: list[str], names: list[str]) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns for name in names)


def _schemas(database: Database, inspector: Inspector, like: str | None) -> list[str | None]:
    if database.family == SQLITE:
        return [None]
    if database.family != POSTGRESQL:
        return [database.url.database]
    names = [
        name
        for name in inspector.get_schema_names()
        if name not in _SYSTEM_SCHEMAS and not name.startswith("pg_")
    ]
    if like:
        pattern = re.escape(like).replace("%", ".*").replace("_", ".")
        names = [name for name in names if re.fullmatch(pattern, name)]
    return list(names)


def _names(inspector: Inspector, schema: str | None, kinds: set[str]) -> list[str]:
    found: list[str] = []
    if "TABLE" in kinds or "PARTITIONED TABLE" in kinds:
        found += inspector.get_table_names(schema=schema)
    if "VIEW" in kinds:
        found += inspector.get_view_names(schema=schema)
    if "MATERIALIZED VIEW" in kinds and inspector.dialect.name == "postgresql":
        found += inspector.get_materialized_view_names(schema=schema)
    return found
