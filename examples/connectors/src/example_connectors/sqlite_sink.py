"""Each record becomes a row of a SQLite table, exactly once: rows and the offset behind them are in one transaction.

When a task begins, or gets other partitions, it goes on where the database says. So a record that comes again after a crash is
not written again, whatever the group of the sink had committed.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence

from penstock.connect import (
    DataError,
    Kind,
    RetriableError,
    Setting,
    Settings,
    SinkConnector,
    SinkRecord,
    SinkTask,
)
from penstock.connect.interface import TopicPlace
from penstock.connect.settings import HIGH

SETTINGS = Settings(
    Setting("database", Kind.STRING, "The file of the database.", importance=HIGH),
    Setting("table", Kind.STRING, "The table; it is made if it is missing.", default="records"),
)


class SqliteTask(SinkTask):
    settings = SETTINGS

    def start(self) -> None:
        self.database = sqlite3.connect(self.values["database"], timeout=1, isolation_level=None)
        self.table = '"{}"'.format(self.values["table"].replace('"', '""'))
        self.database.execute(f"CREATE TABLE IF NOT EXISTS {self.table} (key TEXT, value TEXT)")
        self.database.execute(
            "CREATE TABLE IF NOT EXISTS offsets (topic TEXT, partition INT, next INT, PRIMARY KEY (topic, partition))"
        )

    def open(self, partitions: Sequence[TopicPlace]) -> None:
        for place in partitions:
            query = "SELECT next FROM offsets WHERE topic = ? AND partition = ?"
            for (offset,) in self.database.execute(query, place):
                self.context.seek(place, offset)

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        try:
            self.database.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise RetriableError(f"the database is busy: {error}") from error
        try:
            for record in records:
                self.write(record)
            self.database.execute("COMMIT")
        except BaseException:
            self.database.execute("ROLLBACK")
            raise

    def write(self, record: SinkRecord) -> None:
        try:
            value = json.dumps(record.value)
        except TypeError as error:
            self.context.report(record, DataError(f"not JSON: {error}"))
        else:
            self.database.execute(f"INSERT INTO {self.table} VALUES (?, ?)", (record.key, value))
        # `original` is where the record really is, whatever transforms have made of it.
        topic, partition, offset = record.original
        self.database.execute(
            "INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)", (topic, partition, offset + 1)
        )

    def flush(self, offsets: Mapping[TopicPlace, int]) -> None:
        pass  # `put` has written everything

    def stop(self) -> None:
        self.database.close()


class SqliteSink(SinkConnector):
    version = "0.1.0"
    settings = SETTINGS
    task_class = SqliteTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self.given) for _ in range(max_tasks)]  # the topics' partitions are shared among them
