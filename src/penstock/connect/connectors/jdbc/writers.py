"""Statements that write many rows at once, for each family of databases.

`rows` hold the values of `names` in order, the columns of the key first. All run in the transaction of the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy.engine import Connection

from penstock.connect.connectors.jdbc.column_types import MYSQL, POSTGRESQL
from penstock.connect.connectors.jdbc.database import Database

Rows = Sequence[Sequence[Any]]
FEW: Final = 20
"""So many rows are not worth a COPY of their own."""
MOST_STAGES: Final = 200


class Writer:
    """SQLite, and what the others share."""

    mark = "?"

    def __init__(self, database: Database) -> None:
        self._database = database
        self._quote = database.quote

    def begin(self) -> None:
        """Of a transaction."""

    def forget(self) -> None:
        """A transaction was taken back, or a table has changed."""

    def insert(self, connection: Connection, table: str, names: Sequence[str], rows: Rows) -> None:
        self._many(connection, self._insert(table, names), rows)

    def upsert(self, connection: Connection, table: str, names: Sequence[str], keys: int, rows: Rows) -> None:
        self._many(connection, f"{self._insert(table, names)} {self._on_conflict(names, keys)}", rows)

    def update(self, connection: Connection, table: str, names: Sequence[str], keys: int, rows: Rows) -> None:
        changed = ", ".join(f"{name} = {self.mark}" for name in self._quoted(names[keys:]))
        if not changed:
            return
        statement = f"UPDATE {self._escaped(table)} SET {changed} WHERE {self._is_key(names[:keys])}"
        self._many(connection, statement, [(*row[keys:], *row[:keys]) for row in rows])

    def delete(self, connection: Connection, table: str, names: Sequence[str], rows: Rows) -> None:
        self._many(connection, f"DELETE FROM {self._escaped(table)} WHERE {self._is_key(names)}", rows)

    def _insert(self, table: str, names: Sequence[str]) -> str:
        marks = ", ".join([self.mark] * len(names))
        return f"INSERT INTO {self._escaped(table)} ({', '.join(self._quoted(names))}) VALUES ({marks})"

    def _on_conflict(self, names: Sequence[str], keys: int) -> str:
        key = ", ".join(self._quoted(names[:keys]))
        rest = ", ".join(f"{name} = EXCLUDED.{name}" for name in self._quoted(names[keys:]))
        return f"ON CONFLICT ({key}) DO " + (f"UPDATE SET {rest}" if rest else "NOTHING")

    def _is_key(self, names: Sequence[str]) -> str:
        return " AND ".join(f"{name} = {self.mark}" for name in self._quoted(names))

    def _quoted(self, names: Sequence[str]) -> list[str]:
        return [self._escaped(self._quote(name)) for name in names]

    def _escaped(self, text: str) -> str:
        return text

    def _many(self, connection: Connection, statement: str, rows: Rows) -> None:
        connection.exec_driver_sql(statement, [tuple(row) for row in rows])


class MySqlWriter(Writer):
    """MySQL and MariaDB. The driver makes one statement of many rows to insert."""

    mark = "%s"

    def _on_conflict(self, names: Sequence[str], keys: int) -> str:
        quoted = self._quoted(names)
        rest = quoted[keys:] or quoted[:1]
        return "ON DUPLICATE KEY UPDATE " + ", ".join(f"{name} = VALUES({name})" for name in rest)

    def delete(self, connection: Connection, table: str, names: Sequence[str], rows: Rows) -> None:
        one = f"({', '.join([self.mark] * len(names))})"
        statement = (
            f"DELETE FROM {self._escaped(table)} WHERE ({', '.join(self._quoted(names))}) IN "
            f"({', '.join([one] * len(rows))})"
        )
        connection.exec_driver_sql(statement, tuple(value for row in rows for value in row))

    def _escaped(self, text: str) -> str:
        return text.replace("%", "%%")


class PostgreSqlWriter(Writer):
    """COPY, into the table itself or into a temporary one whose rows one statement then takes over."""

    mark = "%s"

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._stages: dict[tuple[str, tuple[str, ...]], str] = {}
        self._full: set[str] = set()  # in this transaction
        database.on_open.append(lambda _: self._stages.clear())

    def insert(self, connection: Connection, table: str, names: Sequence[str], rows: Rows) -> None:
        if len(rows) < FEW:
            super().insert(connection, table, names, rows)
        else:
            self._copy(connection, table, names, rows)

    def upsert(self, connection: Connection, table: str, names: Sequence[str], keys: int, rows: Rows) -> None:
        if len(rows) < FEW:
            super().upsert(connection, table, names, keys, rows)
            return
        stage = self._filled(connection, table, names, rows)
        columns = ", ".join(self._named(names))
        key = ", ".join(self._named(names[:keys]))
        rest = ", ".join(f"{name} = EXCLUDED.{name}" for name in self._named(names[keys:]))
        action = f"UPDATE SET {rest}" if rest else "NOTHING"
        self._run(
            connection,
            f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {stage} ON CONFLICT ({key}) DO {action}",
        )

    def update(self, connection: Connection, table: str, names: Sequence[str], keys: int, rows: Rows) -> None:
        if len(rows) < FEW or len(names) == keys:
            super().update(connection, table, names, keys, rows)
            return
        stage = self._filled(connection, table, names, rows)
        changed = ", ".join(f"{name} = s.{name}" for name in self._named(names[keys:]))
        self._run(
            connection, f"UPDATE {table} t SET {changed} FROM {stage} s WHERE {self._same(names[:keys])}"
        )

    def delete(self, connection: Connection, table: str, names: Sequence[str], rows: Rows) -> None:
        if len(rows) < FEW:
            super().delete(connection, table, names, rows)
            return
        stage = self._filled(connection, table, names, rows)
        self._run(connection, f"DELETE FROM {table} t USING {stage} s WHERE {self._same(names)}")

    def _same(self, names: Sequence[str]) -> str:
        return " AND ".join(f"t.{name} = s.{name}" for name in self._named(names))

    def _named(self, names: Sequence[str]) -> list[str]:
        return [self._quote(name) for name in names]

    def _escaped(self, text: str) -> str:
        return text.replace("%", "%%")

    def _filled(self, connection: Connection, table: str, names: Sequence[str], rows: Rows) -> str:
        stage = self._stage(connection, table, tuple(names))
        if stage in self._full:
            self._run(connection, f"TRUNCATE {stage}")
        self._full.add(stage)
        self._copy(connection, stage, names, rows)
        return stage

    def _stage(self, connection: Connection, table: str, names: tuple[str, ...]) -> str:
        """Lives as long as the transaction that makes it is not taken back and the connection is not lost."""
        found = self._stages.get((table, names))
        if found is None:
            if len(self._stages) >= MOST_STAGES:
                self.forget()
            found = f"pg_temp.penstock_stage_{len(self._stages)}"
            columns = ", ".join(self._named(names))
            self._run(connection, f"DROP TABLE IF EXISTS {found}")
            bare = found.partition(".")[2]
            self._run(
                connection,
                f"CREATE TEMPORARY TABLE {bare} ON COMMIT DELETE ROWS AS SELECT {columns} FROM {table} WITH NO DATA",
            )
            self._stages[table, names] = found
        return found

    def begin(self) -> None:
        self._full.clear()

    def forget(self) -> None:
        self._stages.clear()

    def _copy(self, connection: Connection, table: str, names: Sequence[str], rows: Rows) -> None:
        cursor: Any = _driver(connection).cursor()
        with cursor, cursor.copy(f"COPY {table} ({', '.join(self._named(names))}) FROM STDIN") as copy:
            write = copy.write_row
            for row in rows:
                write(row)

    def _run(self, connection: Connection, statement: str) -> None:
        cursor: Any = _driver(connection).cursor()
        with cursor:
            cursor.execute(statement)


def _driver(connection: Connection) -> Any:
    """psycopg's own connection, in SQLAlchemy's transaction."""
    if not connection.in_transaction():
        connection.begin()
    return connection.connection.driver_connection


def writer_of(database: Database) -> Writer:
    kind = {POSTGRESQL: PostgreSqlWriter, MYSQL: MySqlWriter}.get(database.family, Writer)
    return kind(database)
