"""The object store sink's connector and task."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import penstock
from penstock.connect.connectors.object_store.compatibility import NONE
from penstock.connect.connectors.object_store.formats import Format, Part, format_of, plain_text
from penstock.connect.connectors.object_store.partitioners import (
    DefaultPartitioner,
    extractor_of,
    partitioner_of,
    zone_of,
)
from penstock.connect.connectors.object_store.rotation import TOMBSTONES, OpenFile, PartitionFiles, Rules
from penstock.connect.connectors.object_store.settings import SETTINGS
from penstock.connect.connectors.object_store.stores import store_of
from penstock.connect.data.schema import OPTIONAL_STRING, STRING, array, struct
from penstock.connect.errors import DataError, InvalidConfig
from penstock.connect.interface import Config, SinkConnector, SinkTask, TopicPlace
from penstock.connect.records import SinkRecord
from penstock.connect.tasks.columnar_sink import Columns

FAIL, IGNORE, WRITE = "fail", "ignore", "write"
_HEADER = struct("KafkaHeader", key=STRING, value=OPTIONAL_STRING)
_HEADERS = struct("KafkaHeaders", headers=array(_HEADER))


class ObjectStoreTask(SinkTask):
    version = penstock.__version__
    settings = SETTINGS
    java_names = ("io.confluent.connect.s3.S3SinkTask",)

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        values = self.values
        self._format: Format = format_of(values)
        self._keys = format_of(values, "keys.format.class") if values["store.kafka.keys"] else None
        self._headers = format_of(values, "headers.format.class") if values["store.kafka.headers"] else None
        self._extract = extractor_of(values)
        self._partitioner = partitioner_of(values, self._extract)
        self._rules = Rules(
            values["flush.size"], values["rotate.interval.ms"], values["rotate.schedule.interval.ms"],
            values["schema.compatibility"].upper(), self._keys is not None, self._headers is not None,
        )  # fmt: skip
        self._has_wall_clock = "Wallclock" in values["timestamp.extractor"]
        self._zone = zone_of(values["timezone"])
        self._on_null = values["behavior.on.null.values"].lower()
        if self._on_null == WRITE and self._keys is None:
            raise InvalidConfig("behavior.on.null.values=write needs store.kafka.keys=true")
        self.skips_nulls = self._on_null == IGNORE
        self._files: dict[TopicPlace, PartitionFiles] = {}

    def start(self) -> None:
        self._store = store_of(self.values)

    def open(self, partitions: Sequence[TopicPlace]) -> None:
        for place in partitions:
            self._files[place] = PartitionFiles(place[1], self._rules, self._write)

    def close(self, partitions: Sequence[TopicPlace]) -> None:
        """What is not finished comes again, here or elsewhere."""
        for place in partitions:
            self._files.pop(place, None)

    def put(self, records: Sequence[SinkRecord]) -> None:
        rotates = self._rules.rotate_ms > 0
        for record in records:
            topic, partition, offset = record.original
            files = self._files[topic, partition]
            if files.is_known(offset):
                continue
            try:
                if record.value is None and self._on_null != WRITE:
                    if self._on_null == FAIL:
                        raise DataError(
                            "a null value: behavior.on.null.values=ignore leaves it out, write keeps its key"
                        )
                    files.pass_over(offset)
                    continue
                folder = TOMBSTONES if record.value is None else self._partitioner.folder(record)
                self._check(record)
                files.add(record, folder, self._extract(record) if rotates else None)
            except DataError as error:
                self.context.report(record, error)
                files.pass_over(offset)
        self._tick()

    def takes_columns(self) -> bool:
        return (
            self._format.extension.endswith(".parquet")
            and isinstance(self._partitioner, DefaultPartitioner)
            and self._rules.rotate_ms <= 0
            and self._rules.compatibility == NONE
            and self._keys is None
            and self._headers is None
        )

    def put_columns(self, pieces: Sequence[Columns]) -> None:
        for piece in pieces:
            self._files[piece.topic, piece.partition].add_columns(piece, f"partition={piece.partition}")
        self._tick()

    def pre_commit(self, offsets: Mapping[TopicPlace, int]) -> Mapping[TopicPlace, int]:
        return {place: files.committed for place, files in self._files.items() if files.committed is not None}

    def _tick(self) -> None:
        now = dt.datetime.now(self._zone)
        now_ms = int(now.timestamp() * 1000)
        local_ms = now_ms + (now.utcoffset() or dt.timedelta()) // dt.timedelta(milliseconds=1)
        for files in self._files.values():
            files.tick(now_ms, local_ms=local_ms, is_wall_clock=self._has_wall_clock)

    def _check(self, record: SinkRecord) -> None:
        """What the format cannot write, before it is in a file with others."""
        name = type(self._format).__name__
        if record.value is None:
            return
        if name == "Bytes" and not isinstance(record.value, bytes):
            raise DataError(
                f"ByteArrayFormat takes bytes, not {type(record.value).__name__}: use ByteArrayConverter"
            )
        if name == "AvroFile" and record.value_schema is None:
            raise DataError("AvroFormat needs values with a schema: use a converter that gives one")
        if name == "Parquet" and not hasattr(record.value, "items"):
            raise DataError(
                f"ParquetFormat takes structs, or maps without a schema, not {type(record.value).__name__}"
            )

    def _write(self, partition: int, file: OpenFile) -> None:
        values = self.values
        slash, plus, width = (
            values["directory.delim"],
            values["file.delim"],
            values["filename.offset.zero.pad.width"],
        )
        name = plus.join([file.topic, str(partition), f"{file.start_offset:0{width}}"])
        path = slash.join([values["topics.dir"], file.topic, file.folder, name])
        # The values last: who sees them finds the others.
        if self._keys is not None and file.keys:
            self._store.write(f"{path}.keys{self._keys.extension}", self._keys.encode(_parts(file.keys)))
        if self._headers is not None and file.headers:
            self._store.write(
                f"{path}.headers{self._headers.extension}", self._headers.encode(_header_parts(file.headers))
            )
        if file.parts:
            self._store.write(path + self._format.extension, self._format.encode(file.parts))


def _parts(given: Sequence[tuple[Any, Any]]) -> list[Part]:
    return [(schema, [value for _, value in run]) for schema, run in groupby(given, lambda each: each[0])]


def _header_parts(given: Sequence[Sequence[Any]]) -> list[Part]:
    rows = [
        _HEADERS.new(headers=[_HEADER.new(key=each.name, value=plain_text(each.value)) for each in headers])
        for headers in given
    ]
    return [(_HEADERS, rows)]


class ObjectStoreSink(SinkConnector):
    version = penstock.__version__
    settings = SETTINGS
    java_names = ("io.confluent.connect.s3.S3SinkConnector",)
    task_class = ObjectStoreTask

    @classmethod
    def check(cls, given: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        try:
            values = SETTINGS.parse(given)
        except InvalidConfig:
            return {}  # the table has told it
        found: dict[str, Sequence[str]] = {}
        checks: dict[str, Callable[[], object]] = {
            "format.class": lambda: format_of(values),
            "timestamp.extractor": lambda: extractor_of(values),
            "partitioner.class": lambda: partitioner_of(values, lambda record: 0),
            "store.url": lambda: _check_store(values),
        }
        for name, check in checks.items():
            try:
                check()
            except InvalidConfig as error:
                found[name] = [str(error)]
        return found

    def task_configs(self, max_tasks: int) -> list[Config]:
        return [dict(self.given) for _ in range(max_tasks)]

    def alter_offsets(self, given: Mapping[str, str], offsets: Mapping[TopicPlace, int | None]) -> bool:
        return True


def _check_store(values: Mapping[str, Any]) -> None:
    url = values["store.url"] or ""
    if url.startswith(("file:", "/", "hdfs:")):
        return
    if not values["s3.bucket.name"]:
        raise InvalidConfig('Missing required configuration "s3.bucket.name" which has no default value.')
