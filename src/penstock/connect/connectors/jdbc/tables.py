"""Tables of the sink: what columns they have; made and widened where that is allowed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import inspect
from sqlalchemy.engine import Connection
from sqlalchemy.exc import NoSuchTableError

from penstock.connect.connectors.jdbc.column_types import SQLITE, default_of, inferred, type_of
from penstock.connect.connectors.jdbc.database import Database
from penstock.connect.connectors.jdbc.rows import Column, Row, Shape
from penstock.connect.connectors.jdbc.sink_settings import SinkChoices
from penstock.connect.data.schema import Schema
from penstock.connect.errors import DataError

log = logging.getLogger("penstock.connect")


class Table(NamedTuple):
    quoted: str
    """With its schema, for statements."""
    columns: Mapping[str, Any]
    """SQLAlchemy's types by name."""


class Tables:
    def __init__(self, database: Database, choices: SinkChoices) -> None:
        self._database, self._choices = database, choices
        self._known: dict[str, Table] = {}
        database.on_open.append(lambda _: self.forget())

    def forget(self) -> None:
        self._known.clear()

    def fit(self, shape: Shape, rows: Sequence[Row]) -> Table:
        """The table with all columns of the shape; rows show the types where there is no schema. DataError."""
        table = self._known.get(shape.table) or self._look(shape.table)
        wanted = [column for column in shape.columns if column.is_key] if shape.is_delete else shape.columns
        if table is None:
            if not self._choices.creates or shape.is_delete:
                raise DataError(f"There is no table {shape.table}, and auto.create is not set")
            table = self._make(shape, rows)
        missing = [column for column in wanted if self._column(table, column.name) is None]
        if missing:
            table = self._look(shape.table) or table  # somebody may have added them
            missing = [column for column in wanted if self._column(table, column.name) is None]
        if missing:
            table = self._widen(shape, table, missing, rows)
        return table

    def _column(self, table: Table, name: str) -> Any:
        found = table.columns.get(name)
        return found if found is not None or self._database.quotes else table.columns.get(name.lower())

    def types_of(self, table: Table, shape: Shape) -> list[Any]:
        return [self._column(table, name) for name in shape.names]

    def split(self, name: str) -> tuple[str | None, str]:
        """Schema and name."""
        if self._database.family == SQLITE:
            return None, name
        schema, dot, last = name.rpartition(".")
        return (schema.rpartition(".")[2].strip('"`'), last.strip('"`')) if dot else (None, name.strip('"`'))

    def quoted(self, name: str) -> str:
        schema, last = self.split(name)
        quote = self._database.quote
        return f"{quote(schema)}.{quote(last)}" if schema else quote(last)

    def _look(self, name: str) -> Table | None:
        schema, last = self.split(name)
        if not self._database.quotes:
            last = last.lower()
        connection = self._database.connection()
        with self._database.failures(f"cannot look at the table {name}"):
            try:
                found = inspect(connection).get_columns(last, schema=schema)
            except NoSuchTableError:
                return None
            finally:
                connection.rollback()
        table = Table(self.quoted(name), {column["name"]: column["type"] for column in found})
        self._known[name] = table
        return table

    def _make(self, shape: Shape, rows: Sequence[Row]) -> Table:
        lines = [self._line(column, schema) for column, schema in _typed(shape.columns, shape, rows)]
        if shape.keys:
            lines.append(f"PRIMARY KEY ({', '.join(map(self._database.quote, shape.keys))})")
        statement = f"CREATE TABLE {self.quoted(shape.table)} ({', '.join(lines)})"
        found = self._change(shape.table, statement)
        if found is None:
            raise DataError(f"The table {shape.table} cannot be seen after it was made")
        return found

    def _widen(self, shape: Shape, table: Table, missing: Sequence[Column], rows: Sequence[Row]) -> Table:
        names = ", ".join(column.name for column in missing)
        if not self._choices.evolves or any(column.is_key for column in missing):
            more = "" if self._choices.evolves else ", and auto.evolve is not set"
            raise DataError(f"The table {shape.table} has no columns {names}{more}")
        found: Table | None = table
        for column, schema in _typed(missing, shape, rows):
            if not schema.is_optional and default_of(self._database.family, schema) is None:
                raise DataError(
                    f"The column {column.name} cannot be added to {shape.table}: its field is required and has no default, so "
                    "rows that are there would have no value for it"
                )
            found = self._change(
                shape.table, f"ALTER TABLE {table.quoted} ADD COLUMN {self._line(column, schema)}"
            )
        assert found is not None
        return found

    def _line(self, column: Column, schema: Schema) -> str:
        family = self._database.family
        line = f"{self._database.quote(column.name)} {type_of(family, schema, is_key=column.is_key)}"
        default = default_of(family, schema)
        if default is not None:
            line += f" DEFAULT {default}"
        return line if schema.is_optional and not column.is_key else f"{line} NOT NULL"

    def _change(self, name: str, statement: str) -> Table | None:
        """Another task may do the same at the same time: what counts is what the table is then."""
        connection = self._database.connection()
        try:
            run(connection, statement)
            connection.commit()
        except Exception as error:
            self._database.rollback()
            log.debug("%s: %s", statement, error)
            before = self._known.get(name)
            found = self._look(name)
            if found is None or (before is not None and found.columns.keys() == before.columns.keys()):
                with self._database.failures(f"cannot change the table {name}"):
                    raise
            return found
        log.info("%s", statement)
        return self._look(name)


def run(connection: Connection, statement: str) -> None:
    """A statement without values: a percent sign in a name is none of the driver's."""
    if not connection.in_transaction():
        connection.begin()
    cursor = connection.connection.cursor()
    try:
        cursor.execute(statement)
    finally:
        cursor.close()


def _typed(columns: Iterable[Column], shape: Shape, rows: Sequence[Row]) -> list[tuple[Column, Schema]]:
    found = []
    for column in columns:
        schema = column.schema
        if schema is None:
            place = shape.names.index(column.name)
            schema = inferred(row[place] for row in rows)
        found.append((column, schema))
    return found
