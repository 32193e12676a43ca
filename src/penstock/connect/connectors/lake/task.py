"""The lake sink's connector and task."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import penstock
from penstock.connect.connectors.columns import table_of
from penstock.connect.connectors.lake.catalogs import catalog_of, catalog_properties
from penstock.connect.connectors.lake.partitions import partition_fields
from penstock.connect.connectors.lake.settings import CREATE_PREFIX, SETTINGS, TABLE_PREFIX, WRITE_PREFIX
from penstock.connect.connectors.lake.tables import LakeTable, Making, Rows
from penstock.connect.data.structs import Struct
from penstock.connect.errors import ConnectError, DataError, InvalidConfig
from penstock.connect.interface import Config, SinkConnector, SinkTask, TopicPlace
from penstock.connect.records import SinkRecord
from penstock.connect.tasks.columnar_sink import Columns, NotColumns
from penstock.connect.tasks.settings import with_prefix

ROUTE_FIELD: Final = "iceberg.tables.route-field"


class Routing:
    """The tables of a record."""

    def __init__(self, given: Mapping[str, str], values: Mapping[str, Any]) -> None:
        """InvalidConfig."""
        self.tables: list[str] = values["iceberg.tables"]
        self.is_dynamic: bool = values["iceberg.tables.dynamic-enabled"]
        self.field: str | None = values[ROUTE_FIELD]
        if self.is_dynamic and not self.field:
            raise InvalidConfig(f"iceberg.tables.dynamic-enabled=true needs {ROUTE_FIELD}")
        if not self.is_dynamic and not self.tables:
            raise InvalidConfig('Missing required configuration "iceberg.tables" which has no default value.')
        self._patterns = {}
        for table in self.tables if self.field else ():
            text = given.get(f"{TABLE_PREFIX}{table}.route-regex")
            if text is None:
                raise InvalidConfig(
                    f"{TABLE_PREFIX}{table}.route-regex: with {ROUTE_FIELD} each table needs one"
                )
            try:
                self._patterns[table] = re.compile(text)
            except re.error as error:
                raise InvalidConfig(f"{TABLE_PREFIX}{table}.route-regex: {error}") from None

    @property
    def is_static(self) -> bool:
        return self.field is None

    def tables_of(self, value: Any) -> Sequence[str]:
        if self.field is None:
            return self.tables
        for part in self.field.split("."):
            value = value.get(part) if isinstance(value, Struct | dict) else None
        if value is None:
            return ()
        if self.is_dynamic:
            return (str(value).lower(),)
        return [table for table, pattern in self._patterns.items() if pattern.fullmatch(str(value))]


class LakeTask(SinkTask):
    version = penstock.__version__
    settings = SETTINGS
    java_names = ("org.apache.iceberg.connect.IcebergSinkTask",)
    skips_nulls = True

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        values = self.values
        self._routing = Routing(given, values)
        self._making = Making(
            values["iceberg.tables.auto-create-enabled"],
            values["iceberg.tables.evolve-schema-enabled"],
            values["iceberg.tables.schema-force-optional"],
            with_prefix(given, CREATE_PREFIX),
            with_prefix(given, WRITE_PREFIX),
            values["iceberg.control.commit.timeout-ms"] / 1000,
        )
        self._interval_s = values["iceberg.control.commit.interval-ms"] / 1000
        self._tables: dict[str, LakeTable] = {}
        self._places: set[TopicPlace] = set()
        self._seen: dict[TopicPlace, int] = {}
        self._done: dict[TopicPlace, int] = {}
        self._due_s = time.monotonic() + self._interval_s

    def start(self) -> None:
        self._catalog = catalog_of(self.values["iceberg.catalog"], self.given)
        for name in self._routing.tables:
            self._table(name)

    def stop(self) -> None:
        if hasattr(self, "_catalog"):
            self._catalog.close()

    def open(self, partitions: Sequence[TopicPlace]) -> None:
        """What the tables have already is not read again, where there is one way to tell."""
        self._places.update(partitions)
        found = [table.open(partitions) for table in self._tables.values()]
        for place in partitions:
            known = [offsets[place] for offsets in found if place in offsets]
            if self._routing.is_static and known and len(known) == len(found):
                self.context.seek(place, min(known))
                self._done[place] = self._seen[place] = min(known)

    def close(self, partitions: Sequence[TopicPlace]) -> None:
        try:
            if any(self._seen.get(place, 0) != self._done.get(place, 0) for place in self._seen):
                self._commit()
        finally:
            for table in self._tables.values():
                table.close(partitions)
            for place in partitions:
                self._places.discard(place)
                self._seen.pop(place, None)
                self._done.pop(place, None)

    def put(self, records: Sequence[SinkRecord]) -> None:
        kept = [record for record in records if record.value is not None]
        for (place, schema, names), run in groupby(kept, self._kind_of):
            self._add(place, schema, names, list(run))
        for record in records:
            self._seen[record.original[:2]] = record.original[2] + 1
        self._commit_when_due()

    def takes_columns(self) -> bool:
        return self._routing.is_static

    def put_columns(self, pieces: Sequence[Columns]) -> None:
        given = [
            Rows((each.topic, each.partition), each.table, [message.offset() for message in each.messages])
            for each in pieces
        ]
        tables = [self._table(name) for name in self._routing.tables]
        try:
            fitted = [(table, table.fit(rows)) for table in tables for rows in given]
        except DataError as error:
            raise NotColumns(str(error)) from None
        for table, rows in fitted:
            table.add(rows)
        for rows in given:
            if rows.offsets:
                self._seen[rows.place] = rows.offsets[-1] + 1
        self._commit_when_due()

    def pre_commit(self, offsets: Mapping[TopicPlace, int]) -> Mapping[TopicPlace, int]:
        return dict(self._done)

    def _kind_of(self, record: SinkRecord) -> tuple[TopicPlace, Any, tuple[str, ...]]:
        return record.original[:2], record.value_schema, tuple(self._routing.tables_of(record.value))

    def _add(self, place: TopicPlace, schema: Any, names: Sequence[str], records: list[SinkRecord]) -> None:
        tables = [self._table(name) for name in names]
        if not tables:
            return
        try:
            rows = self._rows(place, schema, records)
            fitted = [(table, table.fit(rows)) for table in tables]
        except DataError as error:
            records = self._without_bad(tables, place, schema, records, error)
            if not records:
                return
            rows = self._rows(place, schema, records)
            fitted = [(table, table.fit(rows)) for table in tables]
        for table, each in fitted:
            table.add(each)

    def _without_bad(
        self,
        tables: Sequence[LakeTable],
        place: TopicPlace,
        schema: Any,
        records: list[SinkRecord],
        error: DataError,
    ) -> list[SinkRecord]:
        """One by one; what no table takes goes where `errors.…` says."""
        kept = []
        for record in records:
            try:
                rows = self._rows(place, schema, [record])
                for table in tables:
                    table.fit(rows)
                kept.append(record)
            except DataError as of_record:
                self.context.report(record, of_record)
        if len(kept) == len(records):
            # Each alone fits and all together do not: nobody can say which is wrong.
            raise ConnectError(f"records cannot be written together: {error}") from error
        return kept

    @staticmethod
    def _rows(place: TopicPlace, schema: Any, records: Sequence[SinkRecord]) -> Rows:
        return Rows(
            place, table_of(schema, [each.value for each in records]), [each.original[2] for each in records]
        )

    def _table(self, name: str) -> LakeTable:
        found = self._tables.get(name)
        if found is None:
            text = (
                self.given.get(f"{TABLE_PREFIX}{name}.partition-by")
                or self.values["iceberg.tables.default-partition-by"]
            )
            found = self._tables[name] = LakeTable(
                self._catalog, name, self.context.connector, self._making, partition_fields(text)
            )
            if self._places:
                found.open(sorted(self._places))
        return found

    def _commit_when_due(self) -> None:
        if time.monotonic() < self._due_s:
            return
        if self._seen != self._done:
            self._commit()
            self.context.request_commit()
        self._due_s = time.monotonic() + self._interval_s

    def _commit(self) -> None:
        for table in self._tables.values():
            table.commit()
        self._done.update(self._seen)


class LakeSink(SinkConnector):
    version = penstock.__version__
    settings = SETTINGS
    java_names = ("org.apache.iceberg.connect.IcebergSinkConnector",)
    task_class = LakeTask

    @classmethod
    def check(cls, given: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        try:
            values = SETTINGS.parse(given)
        except InvalidConfig:
            return {}  # the table has told it
        checks: dict[str, Callable[[], object]] = {
            "iceberg.tables": lambda: Routing(given, values),
            "iceberg.catalog.uri": lambda: catalog_properties(given),
            "iceberg.tables.default-partition-by": lambda: partition_fields(
                values["iceberg.tables.default-partition-by"]
            ),
        }
        found: dict[str, Sequence[str]] = {}
        for name, check in checks.items():
            try:
                check()
            except InvalidConfig as error:
                found[name] = [str(error)]
        return found

    def task_configs(self, max_tasks: int) -> list[Config]:
        return [dict(self.given) for _ in range(max_tasks)]

    def alter_offsets(self, given: Mapping[str, str], offsets: Mapping[TopicPlace, int | None]) -> bool:
        """The tables have them."""
        raise ConnectError(
            "The offsets of this sink are kept in its tables: roll a table back to an older snapshot to write its records again"
        )
