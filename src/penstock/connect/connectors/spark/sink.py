"""Records of topics to whatever Spark writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import pyarrow as pa

import penstock
from penstock.connect.connectors.columns import joined, table_of
from penstock.connect.connectors.spark.batches import Batches, Plan
from penstock.connect.connectors.spark.driving import Driving
from penstock.connect.connectors.spark.spark_settings import FAIL, SINK_SETTINGS, mistakes_of
from penstock.connect.data.schema import Schema, Type
from penstock.connect.errors import ConnectError, DataError, InvalidConfig
from penstock.connect.interface import Config, SinkConnector, SinkTask, TopicPlace
from penstock.connect.records import SinkRecord

VALUE = "value"


class SparkSinkTask(SinkTask):
    version = penstock.__version__
    settings = SINK_SETTINGS

    def start(self) -> None:
        self._stopping = False
        self._driving = Driving(
            self.context.connector, self.given, self.values, is_over=lambda: self._stopping, log=self.log
        )
        self._batches = Batches()
        self._keeps = bool(self.values["spark.checkpoint.location"])
        if self._keeps:
            _, last, is_written = self._driving.ask("log")
            self._batches = Batches(None if last is None else Plan.from_json(last), is_written=is_written)

    def open(self, partitions: Sequence[TopicPlace]) -> None:
        if self._keeps:
            self._batches.forget(partitions)
            for place, offset in self._batches.starts(partitions).items():
                self.context.seek(place, offset)

    def close(self, partitions: Sequence[TopicPlace]) -> None:
        self._batches.forget(partitions)

    def put(self, records: Sequence[SinkRecord]) -> None:
        self._batches.add(records)
        if self._batches.waits_for is not None or len(self._batches) >= self.values["spark.batch.rows"]:
            self._write()

    def pre_commit(self, offsets: Mapping[TopicPlace, int]) -> Mapping[TopicPlace, int]:
        self._batches.seen(offsets)
        if self._keeps:
            self._check_waited()
        while self._write():
            pass
        return {} if len(self._batches) else offsets

    def _check_waited(self) -> None:
        waited = self._batches.waits_for
        if waited is None:
            return
        missing = waited.ranges.keys() - set(self.context.assignment())
        if missing:
            raise ConnectError(
                f"batch {waited.number} of the checkpoint was begun with records of {sorted(missing)}, which the task does not "
                "read: let it read them, or begin with another spark.checkpoint.location"
            )

    def _write(self) -> bool:
        """Whether there was a batch."""
        cut = self._batches.cut()
        if cut is None:
            return False
        plan, records = cut
        if self._keeps and self._batches.waits_for is None:
            self._driving.ask("plan", plan.to_json())
            self._batches.begun(plan)
        table = self._table(records)
        self._driving.ask("write", plan.number if self._keeps else None, table)
        self._batches.written(plan)
        return True

    def _table(self, records: Sequence[SinkRecord]) -> pa.Table | None:
        """None when there is nothing to write. What has no columns is refused."""
        tables = []
        for _, group in groupby(records, key=lambda record: record.value_schema):
            taken = [record for record in group if self._takes(record)]
            try:
                tables.append(self._part(taken))
            except DataError:
                for record in taken:
                    try:
                        tables.append(self._part([record]))
                    except DataError as error:
                        self.context.report(record, error)
        tables = [table for table in tables if table is not None]
        return joined(tables) if tables else None

    def _takes(self, record: SinkRecord) -> bool:
        if record.value is not None:
            return True
        if self.values["behavior.on.null.values"] == FAIL:
            self.context.report(record, DataError("a record without a value cannot be a row"))
        return False

    def _part(self, records: Sequence[SinkRecord]) -> pa.Table | None:
        if not records:
            return None
        schema: Schema | None = records[0].value_schema
        values = [record.value for record in records]
        if (schema is not None and schema.type is Type.STRUCT) or (
            schema is None and isinstance(values[0], dict)
        ):
            table = table_of(schema, values)
        else:
            table = table_of(None, [{VALUE: value} for value in values])
        for name in self.values["spark.metadata.columns"]:
            table = table.append_column(f"record_{name}", _metadata(name, records))
        return _for_spark(table)

    def stop(self) -> None:
        self._stopping = True
        if hasattr(self, "_driving"):
            self._driving.close()


def _metadata(name: str, records: Sequence[SinkRecord]) -> pa.Array:
    if name == "topic":
        return pa.array([record.original[0] for record in records], pa.string())
    if name == "partition":
        return pa.array([record.original[1] for record in records], pa.int32())
    if name == "offset":
        return pa.array([record.original[2] for record in records], pa.int64())
    if name == "timestamp":
        return pa.array([record.timestamp_ms for record in records], pa.timestamp("ms", tz="UTC"))
    keys = [record.key for record in records]
    return pa.array([key if key is None or isinstance(key, str) else str(key) for key in keys], pa.string())


def _for_spark(table: pa.Table) -> pa.Table:
    """Spark has no time of the day."""
    for number, field in enumerate(table.schema):
        if pa.types.is_time(field.type):
            table = table.set_column(number, field.name, table.column(number).cast(pa.string()))
    return table


class SparkSink(SinkConnector):
    version = penstock.__version__
    settings = SINK_SETTINGS
    task_class = SparkSinkTask

    @classmethod
    def check(cls, given: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        try:
            return mistakes_of(SINK_SETTINGS.parse(given))
        except InvalidConfig:
            return {}  # the table has told it

    def task_configs(self, max_tasks: int) -> list[Config]:
        """One: batches have one order, and Spark divides the work."""
        return [dict(self.given)]

    def alter_offsets(self, given: Mapping[str, str], offsets: Mapping[TopicPlace, int | None]) -> bool:
        if given.get("spark.checkpoint.location"):
            raise ConnectError(
                "The offsets of this connector are in its spark.checkpoint.location: name another folder, or remove it"
            )
        return True
