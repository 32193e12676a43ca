"""Connectors that count, for tests that kill their tasks: which number was written, and which was put, can be told afterwards."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.connect import (
    DataError,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
)
from penstock.connect.converters.simple import StringConverter
from penstock.connect.data import Schema
from penstock.connect.interface import TopicPlace


class CountingSourceTask(SourceTask):
    """Numbers from 0 to `count`, `batch` at a time; each task has its own."""

    def start(self) -> None:
        self.count, self.batch = int(self.given["count"]), int(self.given["batch"])
        self.place = {"task": self.context.task}
        self.next = (self.context.offset(self.place) or {"next": 0})["next"]

    def poll(self) -> Sequence[SourceRecord] | None:
        if self.next >= self.count:
            self.context.wait(0.1)
            return None
        numbers = range(self.next, min(self.next + self.batch, self.count))
        self.next = numbers.stop
        self.context.wait(0.002)
        return [
            SourceRecord(
                self.place, {"next": number + 1}, self.given["topic"], f"{self.context.task}:{number}"
            )
            for number in numbers
        ]


class CountingSource(SourceConnector):
    task_class = CountingSourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self.given) for _ in range(max_tasks)]


class AppendingSinkTask(SinkTask):
    """A line in a file for each record, at once."""

    def start(self) -> None:
        self.file = os.open(self.given["file"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def put(self, records: Sequence[SinkRecord]) -> None:
        if records:
            self.context.request_commit()
            os.write(self.file, "".join(f"{record.value}\n" for record in records).encode())

    def stop(self) -> None:
        os.close(self.file)


class AppendingSink(SinkConnector):
    task_class = AppendingSinkTask


class TableSinkTask(SinkTask):
    """Keeps its offsets in one transaction with the records, and goes on from there."""

    def start(self) -> None:
        self.db = sqlite3.connect(self.given["file"], timeout=30)
        self.db.execute("create table if not exists records (value text)")
        self.db.execute("create table if not exists places (place text primary key, next integer)")

    def open(self, partitions: Sequence[TopicPlace]) -> None:
        for place in partitions:
            found = self.db.execute("select next from places where place = ?", [str(place)]).fetchone()
            self.context.seek(place, found[0] if found else 0)

    def put(self, records: Sequence[SinkRecord]) -> None:
        with self.db:
            self.db.executemany("insert into records values (?)", [[record.value] for record in records])
            ends = {record.original[:2]: record.original[2] + 1 for record in records}
            self.db.executemany(
                "insert or replace into places values (?, ?)",
                [[str(place), end] for place, end in ends.items()],
            )

    def pre_commit(self, offsets: Mapping[TopicPlace, int]) -> Mapping[TopicPlace, int]:
        return {}

    def stop(self) -> None:
        self.db.close()


class TableSink(SinkConnector):
    task_class = TableSinkTask


class StrictStrings(StringConverter):
    """Of strings, and nothing else."""

    def from_value(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if not isinstance(value, str):
            raise DataError("not a string")
        return super().from_value(topic, schema, value)


CLASSES: dict[str, type[Any]] = {
    each.__name__: each for each in (CountingSource, AppendingSink, TableSink, StrictStrings)
}


def load(name: str, *kinds: str) -> type[Any]:
    """As the worker's plugins, but for these."""
    from penstock.connect.converters import header, json, simple

    for module in (simple, json, header):
        for each in vars(module).values():
            if name in getattr(each, "java_names", ()):
                found: type[Any] = each
                return found
    return CLASSES[name]
