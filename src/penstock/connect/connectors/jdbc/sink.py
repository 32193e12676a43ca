"""Records of topics to rows of a database."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.engine import Connection

import penstock
from penstock.connect.connectors.jdbc.batches import DELETE, Item, Stage, staged
from penstock.connect.connectors.jdbc.database import Database
from penstock.connect.connectors.jdbc.failures import Sort, failure_of, sort_of
from penstock.connect.connectors.jdbc.offsets_table import OffsetsTable
from penstock.connect.connectors.jdbc.rows import Row, Shape, Shapes
from penstock.connect.connectors.jdbc.sink_settings import (
    INSERT,
    SINK_SETTINGS,
    UPSERT,
    SinkChoices,
    mistakes_of,
)
from penstock.connect.connectors.jdbc.tables import Table, Tables
from penstock.connect.connectors.jdbc.urls import checked
from penstock.connect.connectors.jdbc.values import Convert, converter_of
from penstock.connect.connectors.jdbc.writers import writer_of
from penstock.connect.errors import ConnectError, DataError, RetriableError
from penstock.connect.interface import Config, SinkConnector, SinkTask, TopicPlace
from penstock.connect.records import SinkRecord

Converters = list[tuple[int, Convert]]


class JdbcSinkTask(SinkTask):
    version = penstock.__version__
    settings = SINK_SETTINGS
    java_names = ("io.confluent.connect.jdbc.sink.JdbcSinkTask",)

    def start(self) -> None:
        self._choices = SinkChoices.of(self.values)
        self._database = Database(self.values)
        self._tables = Tables(self._database, self._choices)
        self._shapes = Shapes(self._choices)
        self._writer = writer_of(self._database)
        self._fitted: dict[Shape, tuple[Table, Converters]] = {}
        self._database.on_open.append(lambda _: self._fitted.clear())
        self._retries_left: int = self.values["max.retries"]
        self._backoff_s: float = self.values["retry.backoff.ms"] / 1000
        name = self.values["penstock.offsets.table"]
        self._offsets = (
            OffsetsTable(self._database, self._tables, name, self.context.connector) if name else None
        )
        try:
            self._database.connection()
        except RetriableError as error:
            self.log.warning("%s", error)  # it may be there when records come

    def open(self, partitions: Sequence[TopicPlace]) -> None:
        if self._offsets is None:
            return
        for place, offset in self._patiently(lambda: self._offsets_of(partitions)).items():
            self.context.seek(place, offset)

    def _offsets_of(self, partitions: Sequence[TopicPlace]) -> dict[TopicPlace, int]:
        assert self._offsets is not None
        return self._offsets.read(partitions)

    def _patiently(self, call: Any) -> Any:
        """Outside of `put` nobody calls again."""
        for left in range(self.values["max.retries"], -1, -1):
            try:
                return call()
            except RetriableError:
                self._database.rollback()
                if not left:
                    raise
                time.sleep(self._backoff_s)
        raise AssertionError

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        try:
            self._write(records)
        except RetriableError as error:
            self._database.close()
            if self._retries_left <= 0:
                self._retries_left = self.values["max.retries"]
                raise ConnectError(f"{error}; that was the last of max.retries attempts") from error
            self._retries_left -= 1
            self.context.retry_after(self._backoff_s)
            raise
        except BaseException:
            self._taken_back()
            raise
        self._retries_left = self.values["max.retries"]

    def _write(self, records: Sequence[SinkRecord]) -> None:
        connection = self._database.connection()
        with self._database.failures("cannot write"):
            refused: list[tuple[SinkRecord, BaseException]] = []
            items = self._items(records, refused)
            try:
                self._transact(connection, records, items, refused, is_careful=False)
            except Exception as error:
                if isinstance(error, ConnectError) or sort_of(error) is not Sort.ROW:
                    raise
                # Some row does not fit: again, to find out which.
                self._taken_back()
                del refused[:]
                items = self._items(records, refused)
                self._transact(self._database.connection(), records, items, refused, is_careful=True)

    def _items(
        self, records: Sequence[SinkRecord], refused: list[tuple[SinkRecord, BaseException]]
    ) -> list[Item]:
        """Rows as their columns want them; tables are made and widened on the way."""
        by_shape: dict[Shape, list[tuple[int, SinkRecord]]] = {}
        of = self._shapes.of
        for number, record in enumerate(records):
            try:
                by_shape.setdefault(of(record), []).append((number, record))
            except DataError as error:
                refused.append((record, error))
        found: list[tuple[int, Item]] = []
        for shape, numbered in by_shape.items():
            take = shape.row
            rows = [take(record) for _, record in numbered]
            try:
                _, converters = self._fit(shape, rows)
            except DataError as error:
                refused.extend((record, error) for _, record in numbered)
                continue
            converted = self._converted(rows, converters, [record for _, record in numbered], refused)
            keys = len(shape.keys)
            for (number, record), row in zip(numbered, converted, strict=True):
                if row is None:
                    continue
                if keys and None in row[:keys]:
                    refused.append(
                        (record, DataError(f"The primary key {', '.join(shape.keys)} must have no null"))
                    )
                    continue
                found.append((number, Item(shape, row, record)))
        if len(by_shape) > 1:
            found.sort(key=lambda each: each[0])
        return [item for _, item in found]

    def _fit(self, shape: Shape, rows: Sequence[Row]) -> tuple[Table, Converters]:
        found = self._fitted.get(shape)
        if found is None:
            table = self._tables.fit(shape, rows)
            self._writer.forget()
            types = self._tables.types_of(table, shape)
            chosen = [
                converter_of(self._database.family, column.schema, kind, self._choices.zone)
                for column, kind in zip(shape.columns, types, strict=True)
            ]
            found = table, [(place, each) for place, each in enumerate(chosen) if each is not None]
            if len(self._fitted) >= 10_000:
                self._fitted.clear()
            self._fitted[shape] = found
        return found

    def _converted(
        self,
        rows: list[Row],
        converters: Converters,
        records: Sequence[SinkRecord],
        refused: list[tuple[SinkRecord, BaseException]],
    ) -> Sequence[Row | None]:
        if not converters:
            return rows
        try:
            columns: list[Any] = list(zip(*rows, strict=True))
            for place, convert in converters:
                columns[place] = [None if value is None else convert(value) for value in columns[place]]
            return list(zip(*columns, strict=True))
        except Exception:
            if len(rows) == 1:
                return [self._alone(rows[0], converters, records[0], refused)]
            return [
                self._alone(row, converters, record, refused)
                for row, record in zip(rows, records, strict=True)
            ]

    def _alone(
        self,
        row: Row,
        converters: Converters,
        record: SinkRecord,
        refused: list[tuple[SinkRecord, BaseException]],
    ) -> Row | None:
        values = list(row)
        try:
            for place, convert in converters:
                if values[place] is not None:
                    values[place] = convert(values[place])
        except Exception as error:
            refused.append((record, DataError(f"A value cannot be told to the database: {error}")))
            return None
        return tuple(values)

    def _transact(
        self,
        connection: Connection,
        records: Sequence[SinkRecord],
        items: list[Item],
        refused: list[tuple[SinkRecord, BaseException]],
        *,
        is_careful: bool,
    ) -> None:
        self._writer.begin()
        offsets, ends = self._offsets, _ends_of(records)
        if offsets is not None:
            offsets.make()
            written = offsets.lock(connection, ends)
            if any(record.original[2] < written[record.original[:2]] for record in records):
                items = [item for item in items if _is_new(item.record, written)]
                refused[:] = [each for each in refused if _is_new(each[0], written)]
            ends = {place: offset for place, offset in ends.items() if offset > written[place]}
        for stage in staged(items, self._choices.insert_mode):
            for start in range(0, len(stage.items), self._choices.batch_rows):
                part = stage._replace(items=stage.items[start : start + self._choices.batch_rows])
                if is_careful:
                    self._carefully(connection, part, refused)
                else:
                    self._run(connection, part)
        for record, error in refused:
            self.context.report(record, error)
        if offsets is not None:
            offsets.write(connection, ends)
        connection.commit()
        if offsets is not None:
            offsets.committed()

    def _run(self, connection: Connection, stage: Stage) -> None:
        table = self._fitted[stage.shape][0].quoted
        names, rows, writer = stage.shape.names, [item.row for item in stage.items], self._writer
        keys = len(stage.shape.keys)
        if stage.action == DELETE:
            writer.delete(connection, table, names, rows)
        elif stage.action == INSERT:
            writer.insert(connection, table, names, rows)
        elif stage.action == UPSERT:
            writer.upsert(connection, table, names, keys, rows)
        else:
            writer.update(connection, table, names, keys, rows)

    def _carefully(
        self, connection: Connection, stage: Stage, refused: list[tuple[SinkRecord, BaseException]]
    ) -> None:
        """By halves, until the rows that do not fit are alone."""
        point = connection.begin_nested()
        try:
            self._run(connection, stage)
            point.commit()
        except Exception as error:
            if sort_of(error) is not Sort.ROW:
                raise
            point.rollback()
            self._writer.forget()
            if len(stage.items) == 1:
                refused.append((stage.items[0].record, failure_of(error, stage.shape.table)))
                return
            middle = len(stage.items) // 2
            for items in (stage.items[:middle], stage.items[middle:]):
                self._carefully(connection, stage._replace(items=items), refused)

    def _taken_back(self) -> None:
        self._database.rollback()
        self._writer.forget()

    def flush(self, offsets: Mapping[TopicPlace, int]) -> None:
        """All is written when `put` returns."""

    def stop(self) -> None:
        if hasattr(self, "_database"):
            self._database.close()


def _ends_of(records: Sequence[SinkRecord]) -> dict[TopicPlace, int]:
    ends: dict[TopicPlace, int] = {}
    for record in records:
        topic, partition, offset = record.original
        ends[topic, partition] = offset + 1
    return ends


def _is_new(record: SinkRecord, written: Mapping[TopicPlace, int]) -> bool:
    return record.original[2] >= written[record.original[:2]]


class JdbcSink(SinkConnector):
    version = penstock.__version__
    settings = SINK_SETTINGS
    java_names = (
        "io.confluent.connect.jdbc.JdbcSinkConnector",
        "io.aiven.connect.jdbc.JdbcSinkConnector",
    )
    task_class = JdbcSinkTask

    @classmethod
    def check(cls, given: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        return checked(SINK_SETTINGS, given, mistakes_of, SinkChoices.of)

    def task_configs(self, max_tasks: int) -> list[Config]:
        return [dict(self.given) for _ in range(max_tasks)]

    def alter_offsets(self, given: Mapping[str, str], offsets: Mapping[TopicPlace, int | None]) -> bool:
        values = SINK_SETTINGS.parse(given)
        name = values["penstock.offsets.table"]
        if name:
            database = Database(values)
            tables = Tables(database, SinkChoices.of(values))
            try:
                OffsetsTable(database, tables, name, given.get("name", "")).change(offsets)
            finally:
                database.close()
        return True
