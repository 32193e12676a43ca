"""Rows of a database to topics."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy.engine import Connection

import penstock
from penstock.connect.connectors.jdbc.column_types import MYSQL, POSTGRESQL
from penstock.connect.connectors.jdbc.database import Database
from penstock.connect.connectors.jdbc.queries import Place
from penstock.connect.connectors.jdbc.source_reading import (
    QUERY,
    Reading,
    old_partition_of,
    partition_of,
)
from penstock.connect.connectors.jdbc.source_settings import (
    INCREMENTING,
    SOURCE_SETTINGS,
    TABLES,
    TIMESTAMP_INCREMENTING,
    SourceChoices,
    mistakes_of,
)
from penstock.connect.connectors.jdbc.source_tables import TableId, tables_of
from penstock.connect.connectors.jdbc.urls import checked
from penstock.connect.errors import ConnectError, RetriableError
from penstock.connect.interface import Config, SourceConnector, SourcePlace, SourceTask
from penstock.connect.records import SourceRecord

MAX_WAIT_S: Final = 1.0
# As text: what psycopg would make objects of.
_TEXTS: Final = ("json", "jsonb", "uuid", "interval", "inet", "cidr", "money")


class JdbcSourceTask(SourceTask):
    version = penstock.__version__
    settings = SOURCE_SETTINGS
    java_names = ("io.confluent.connect.jdbc.source.JdbcSourceTask",)

    def start(self) -> None:
        self._choices = choices = SourceChoices.of(self.values)
        self._database = Database(self.values)
        self._database.on_open.append(lambda connection: _prepare(self._database, connection))
        tables: list[TableId | None] = [TableId(*each) for each in json.loads(self.values[TABLES] or "[]")]
        if choices.query:
            tables = [None]
        self._readings = [
            Reading(self._database, choices, table, self._kept_offset(table)) for table in tables
        ]
        self._open: Reading | None = None

    def _kept_offset(self, table: TableId | None) -> dict[str, Any] | None:
        found = self.context.offset(partition_of(table))
        if found is None and table is not None:
            found = self.context.offset(old_partition_of(table))
        return found

    def poll(self) -> Sequence[SourceRecord] | None:
        reading = self._open
        try:
            if reading is None:
                reading = self._due()
                if reading is None:
                    return None
                self._open = reading
                reading.open()
            records, refused = reading.poll(self._choices.batch_rows)
        except RetriableError:
            self._let_go()
            self._database.close()
            self.context.wait(MAX_WAIT_S)
            raise
        if reading.is_at_end:
            # At once: in SQLite who reads keeps all others from writing.
            reading.close(is_ended=True)
            reading.due_s = time.monotonic() + self._choices.interval_s
            # The others come first.
            self._readings.remove(reading)
            self._readings.append(reading)
            self._open = None
        for record, error in refused:
            self.context.report(record, error)
        return records

    def _due(self) -> Reading | None:
        """The one that waits longest; none before its time."""
        soonest_s = min((each.due_s for each in self._readings), default=time.monotonic() + MAX_WAIT_S)
        wait_s = soonest_s - time.monotonic()
        if wait_s > 0:
            self.context.wait(min(wait_s, MAX_WAIT_S))
            return None
        return next(each for each in self._readings if each.due_s <= time.monotonic())

    def _let_go(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def stop(self) -> None:
        if hasattr(self, "_readings"):
            self._let_go()
        if hasattr(self, "_database"):
            self._database.close()


def _prepare(database: Database, connection: Connection) -> None:
    driver: Any = connection.connection.driver_connection
    if database.family == MYSQL:
        connection.exec_driver_sql("SET time_zone = '+00:00'")
        connection.commit()
    elif database.family == POSTGRESQL:
        from psycopg.types.string import TextLoader

        for name in _TEXTS:
            driver.adapters.register_loader(name, TextLoader)


class JdbcSource(SourceConnector):
    """Looks for new tables while it runs, and asks for other tasks when there are some."""

    version = penstock.__version__
    settings = SOURCE_SETTINGS
    java_names = (
        "io.confluent.connect.jdbc.JdbcSourceConnector",
        "io.aiven.connect.jdbc.JdbcSourceConnector",
    )
    task_class = JdbcSourceTask

    @classmethod
    def check(cls, given: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        return checked(SOURCE_SETTINGS, given, mistakes_of, SourceChoices.of)

    def start(self) -> None:
        self._tables: list[TableId] = []
        self._stopping = threading.Event()
        self._watcher: threading.Thread | None = None
        if self.values["query"]:
            return
        self._tables = self._look()
        self._watcher = threading.Thread(target=self._watch, name="penstock-jdbc-tables", daemon=True)
        self._watcher.start()

    def _look(self) -> list[TableId]:
        database = Database(self.values)
        try:
            return tables_of(database, self.values)
        finally:
            database.close()

    def _watch(self) -> None:
        while not self._stopping.wait(self.values["table.poll.interval.ms"] / 1000):
            try:
                found = self._look()
            except ConnectError:
                continue  # its tasks tell that the database is away
            if found != self._tables and not self._stopping.is_set():
                self._tables = found
                self.context.request_reconfiguration()

    def task_configs(self, max_tasks: int) -> list[Config]:
        if self.values["query"]:
            return [dict(self.given)]
        count = min(max_tasks, len(self._tables))
        return [
            {**self.given, TABLES: json.dumps([list(table) for table in self._tables[number::count]])}
            for number in range(count)
        ]

    def stop(self) -> None:
        if hasattr(self, "_stopping"):
            self._stopping.set()

    def exactly_once_support(self, given: Mapping[str, str]) -> bool | None:
        """Rows of the same time come again where only their time tells them apart."""
        return given.get("mode") in (INCREMENTING, TIMESTAMP_INCREMENTING)

    def alter_offsets(self, given: Mapping[str, str], offsets: Mapping[Any, SourcePlace | None]) -> bool:
        if given.get("mode") == "bulk":
            raise ConnectError("Offsets cannot be altered with mode=bulk: it keeps none")
        for partition, offset in offsets.items():
            if offset is None:
                continue  # what is taken away may be anything
            if partition is None or not ("table" in partition or partition.get(QUERY) == QUERY):
                raise ConnectError(
                    'A partition is {"protocol": "1", "table": "schema.name"}, or {"query": "query"}'
                )
            place = Place.of(offset)
            if place == Place():
                raise ConnectError("An offset has incrementing, or timestamp with timestamp_nanos, or both")
        return True
