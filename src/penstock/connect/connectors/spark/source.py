"""What Spark reads, to a topic: a batch read, once or again and again, or a stream.

The source partition is {"spark": path, table or format}, with {"stream": id of the checkpoint} for a stream; the source offset is
{"batch": number, "row": rows of it}. A batch that is read again after a failure begins behind that row: this counts on Spark
giving the rows of a batch in the same order again, as it does for files, tables of files and topics, and for other formats where
nothing was changed in between.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

import penstock
from penstock.connect.connectors.spark.driving import Driving
from penstock.connect.connectors.spark.spark_settings import SOURCE_SETTINGS, STREAM, mistakes_of
from penstock.connect.connectors.spark.values import Rows
from penstock.connect.errors import ConnectError, InvalidConfig
from penstock.connect.interface import Config, SourceConnector, SourcePlace, SourceTask
from penstock.connect.records import SourceRecord

WAIT_S = 0.5
ROW, BATCH = "row", "batch"


class SparkSourceTask(SourceTask):
    version = penstock.__version__
    settings = SOURCE_SETTINGS

    def start(self) -> None:
        values = self.values
        self._driving = Driving(
            self.context.connector, self.given, values, is_over=self.context.is_stopping, log=self.log
        )
        self._partition = partition_of(values)
        self._is_stream = values["spark.mode"] == STREAM
        self._go_on()
        self._number = max(0, self._kept[0])
        self._rows: Rows | None = None
        self._left: tuple[int, int, pa.Table] | None = None
        self._polled = self._delivered = 0
        self._ended: list[tuple[int, int]] = []
        """Batches of which all rows were polled, with how many rows were polled until then."""
        self._reads = False
        self._next_s = 0.0

    def _go_on(self) -> None:
        kept = self.context.offset(self._partition) or {}
        self._kept = int(kept.get(BATCH, -1)), int(kept.get(ROW, 0))

    def poll(self) -> Sequence[SourceRecord] | None:
        self._acknowledge()
        if not self._reads:
            if time.monotonic() < self._next_s:
                self.context.wait(min(WAIT_S, self._next_s - time.monotonic()))
                return None
            self._driving.tell("read", self.values["spark.mode"], self._number)
            self._reads = True
        if self._left is None:
            message = self._driving.look(WAIT_S)
            if message is None:
                return None
            if message[0] == "stream":
                self._partition = {**self._partition, "stream": message[1]}
                self._go_on()
                return None
            if message[0] == "end":
                self._end(message[1])
                return None
            _, batch, first, table = message
            self._driving.tell("more")
            self._left = batch, first, table
        return self._some()

    def _some(self) -> list[SourceRecord]:
        assert self._left is not None
        batch, first, table = self._left
        kept_batch, kept_row = self._kept
        skipped = 0
        if batch < kept_batch:
            skipped = table.num_rows
        elif batch == kept_batch:
            skipped = min(table.num_rows, max(0, kept_row - first))
        most = self.values["spark.poll.rows"]
        taken = table.slice(skipped, most)
        start = first + skipped
        rest = table.slice(skipped + most)
        self._left = (batch, start + taken.num_rows, rest) if rest.num_rows else None
        if self._rows is None or self._rows.arrow != table.schema:
            self._rows = Rows(table.schema)
        schema, topic, partition = self._rows.schema, self.values["topic"], self._partition
        records = [
            SourceRecord(partition, {BATCH: batch, ROW: row}, topic, struct, value_schema=schema)
            for row, struct in enumerate(self._rows.structs(taken), start + 1)
        ]
        self._polled += len(records)
        return records

    def _end(self, batch: int) -> None:
        self._ended.append((batch, self._polled))
        self._acknowledge()
        if not self._is_stream:
            self._reads = False
            self._number = batch + 1
            self._next_s = self._after()

    def _after(self) -> float:
        pause_ms = self.values["spark.repeat.interval.ms"]
        return time.monotonic() + pause_ms / 1000 if pause_ms else float("inf")

    def committed(self, record: SourceRecord) -> None:
        self._delivered += 1

    def _acknowledge(self) -> None:
        """A stream's checkpoint goes on behind what is delivered."""
        while self._ended and self._ended[0][1] <= self._delivered:
            self._driving.tell("done", self._ended.pop(0)[0])

    def stop(self) -> None:
        if hasattr(self, "_driving"):
            self._driving.close()


def partition_of(values: Mapping[str, Any]) -> dict[str, str]:
    return {"spark": values["spark.path"] or values["spark.table"] or values["spark.format"]}


class SparkSource(SourceConnector):
    version = penstock.__version__
    settings = SOURCE_SETTINGS
    task_class = SparkSourceTask

    @classmethod
    def check(cls, given: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        try:
            return mistakes_of(SOURCE_SETTINGS.parse(given))
        except InvalidConfig:
            return {}  # the table has told it

    def task_configs(self, max_tasks: int) -> list[Config]:
        """One: Spark divides the work."""
        return [dict(self.given)]

    def exactly_once_support(self, given: Mapping[str, str]) -> bool | None:
        return True

    def alter_offsets(self, given: Mapping[str, str], offsets: Mapping[Any, SourcePlace | None]) -> bool:
        if given.get("spark.mode") == STREAM:
            raise ConnectError(
                "How far a stream is stands in its spark.checkpoint.location: name another folder to begin anew"
            )
        for offset in offsets.values():
            if offset is not None and not all(isinstance(offset.get(name), int) for name in (BATCH, ROW)):
                raise ConnectError(f"An offset must have numbers {BATCH} and {ROW}, or be null")
        return True
