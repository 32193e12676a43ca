"""Exactly once: the offsets of a sink in a table, written in the transaction of its rows.

    penstock_offsets (connector, topic, partition, next_offset)

The rows of the partitions are locked first, and what they say is already written is left out. So it does not matter whether a
batch is put again, or whether a task that has lost a partition writes once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy.engine import Connection

from penstock.connect.connectors.jdbc.column_types import MYSQL, SQLITE
from penstock.connect.connectors.jdbc.database import Database
from penstock.connect.connectors.jdbc.tables import Tables, run
from penstock.connect.interface import TopicPlace


class OffsetsTable:
    def __init__(self, database: Database, tables: Tables, name: str, connector: str) -> None:
        self._database, self._connector = database, connector
        self._table = tables.quoted(name)
        self._mark = "?" if database.family == SQLITE else "%s"
        self._known: set[TopicPlace] = set()  # rows that are committed
        self._new: set[TopicPlace] = set()
        self._is_made = False
        database.on_open.append(lambda _: self._known.clear())

    def make(self) -> None:
        if self._is_made:
            return
        connection = self._database.connection()
        text = "VARCHAR(249)" if self._database.family == MYSQL else "TEXT"
        # In MySQL a key has 3,072 bytes at most: names of topics are ASCII.
        ascii_text = f"{text} CHARACTER SET ascii" if self._database.family == MYSQL else text
        statement = (
            f"CREATE TABLE IF NOT EXISTS {self._table} (connector {text} NOT NULL, topic {ascii_text} NOT NULL, "
            f"{self._partition} INTEGER NOT NULL, next_offset BIGINT NOT NULL, PRIMARY KEY (connector, topic, {self._partition}))"
        )
        try:
            run(connection, statement)
            connection.commit()
        except Exception:
            # Two tasks at once: PostgreSQL tells one of them that the table is there.
            self._database.rollback()
            with self._database.failures(f"cannot make the table {self._table}"):
                run(connection, f"SELECT next_offset FROM {self._table} WHERE 1 = 0")
                self._database.rollback()
        self._is_made = True

    @property
    def _partition(self) -> str:
        return "`partition`" if self._database.family == MYSQL else '"partition"'

    def read(self, places: Iterable[TopicPlace]) -> dict[TopicPlace, int]:
        wanted = set(places)
        self.make()
        connection = self._database.connection()
        with self._database.failures(f"cannot read {self._table}"):
            try:
                found = connection.exec_driver_sql(
                    f"SELECT topic, {self._partition}, next_offset FROM {self._table} WHERE connector = {self._mark}",
                    (self._connector,),
                ).all()
            finally:
                self._database.rollback()
        return {
            (topic, partition): offset
            for topic, partition, offset in found
            if (topic, partition) in wanted and offset > 0
        }

    def lock(self, connection: Connection, places: Iterable[TopicPlace]) -> dict[TopicPlace, int]:
        """What is written, until the end of the transaction. In the same order everywhere, so that none waits for ever."""
        found = {}
        mark = self._mark
        lock = "" if self._database.family == SQLITE else " FOR UPDATE"
        self._new.clear()
        for place in sorted(places):
            if place not in self._known:
                self._new.add(place)
                connection.exec_driver_sql(self._insert_new(), (self._connector, *place))
            row = connection.exec_driver_sql(
                f"SELECT next_offset FROM {self._table} WHERE connector = {mark} AND topic = {mark} "
                f"AND {self._partition} = {mark}{lock}",
                (self._connector, *place),
            ).one()
            found[place] = int(row[0])
        return found

    def committed(self) -> None:
        """The transaction of the last `lock`."""
        self._known |= self._new

    def _insert_new(self) -> str:
        mark = self._mark
        values = f"{self._table} (connector, topic, {self._partition}, next_offset) VALUES ({mark}, {mark}, {mark}, 0)"
        if self._database.family == MYSQL:
            return f"INSERT IGNORE INTO {values}"
        return f"INSERT INTO {values} ON CONFLICT DO NOTHING"

    def write(self, connection: Connection, offsets: Mapping[TopicPlace, int]) -> None:
        mark = self._mark
        rows = [(offset, self._connector, *place) for place, offset in sorted(offsets.items())]
        if rows:
            connection.exec_driver_sql(
                f"UPDATE {self._table} SET next_offset = {mark} WHERE connector = {mark} AND topic = {mark} "
                f"AND {self._partition} = {mark}",
                rows,
            )

    def change(self, offsets: Mapping[TopicPlace, int | None]) -> None:
        """By hand; None takes one away."""
        self.make()
        connection = self._database.connection()
        with self._database.failures(f"cannot write {self._table}"):
            places: Any = list(offsets)
            self.lock(connection, places)
            self.write(connection, {place: offset or 0 for place, offset in offsets.items()})
            connection.commit()
