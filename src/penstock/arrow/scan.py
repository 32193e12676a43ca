"""`read` and `batches`: a range of a topic as Arrow columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from penstock.arrow.positions import Places, check_places, chosen_partitions, find_ranges
from penstock.arrow.registry_columns import typed_columns
from penstock.arrow.registry_schemas import PREFIX
from penstock.client.errors import BadOption, ReadFailed
from penstock.client.fetching import READ_COMMITTED, Range, fetch
from penstock.client.options import DEFAULT_BOOTSTRAP, client_options
from penstock.client.topics import Client
from penstock.records.batch import InvalidRecord
from penstock.records.columnar.columns import FIELDS, HEADERS, KEY, VALUE
from penstock.records.columnar.decode import (
    DEFAULT_COLUMNS,
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_ROWS,
    Decoder,
)

ISOLATION_LEVELS: Final = {"read_uncommitted": 0, "read_committed": READ_COMMITTED}


def read(
    topic: str,
    start: Places = "earliest",
    end: Places = "latest",
    *,
    partitions: Iterable[int] | None = None,
    bootstrap: str = DEFAULT_BOOTSTRAP,
    isolation: str = "read_committed",
    include_headers: bool = False,
    columns: Sequence[str] | None = None,
    value_schema: pa.Schema | None = None,
    value_format: str | None = None,
    key_format: str | None = None,
    schema_registry_url: str | None = None,
    options: Mapping[str, str | int] | None = None,
) -> pa.Table:
    """The records of a topic from `start` to `end`, as one table in memory.

    `start` and `end` (exclusive) are "earliest", "latest", an offset, a datetime, or a mapping of partitions to these.
    `columns` selects from key, value, topic, partition, offset, timestamp, timestampType and headers; other columns are not
    decoded. With `value_schema`, values are decoded as JSON, and the column `value` is a struct of these fields. A field that
    cannot be decoded is null.

    With `value_format` "avro", "protobuf" or "json", values begin with the id of a schema of the registry at
    `schema_registry_url`, and the column has the types of the newest schema of `<topic>-value`; what cannot be read is null.
    `key_format` is the same for keys. `options` are Kafka's client options, such as fetch.max.bytes, and for the registry
    `schema.registry.basic.auth.user.info` and the like.
    """
    scan = TopicScan(
        topic, start, end, partitions=partitions, bootstrap=bootstrap, isolation=isolation,
        include_headers=include_headers, columns=columns, value_schema=value_schema, value_format=value_format,
        key_format=key_format, schema_registry_url=schema_registry_url, options=options,
    )  # fmt: skip
    return pa.Table.from_batches(list(scan.batches()), schema=scan.schema)


def batches(
    topic: str,
    start: Places = "earliest",
    end: Places = "latest",
    *,
    partitions: Iterable[int] | None = None,
    bootstrap: str = DEFAULT_BOOTSTRAP,
    isolation: str = "read_committed",
    include_headers: bool = False,
    columns: Sequence[str] | None = None,
    value_schema: pa.Schema | None = None,
    value_format: str | None = None,
    key_format: str | None = None,
    schema_registry_url: str | None = None,
    options: Mapping[str, str | int] | None = None,
    batch_rows: int = DEFAULT_MAX_ROWS,
    batch_bytes: int = DEFAULT_MAX_BYTES,
) -> pa.RecordBatchReader:
    """Like `read`, but batch by batch. Only a few batches are in memory at a time, however long the topic is."""
    return TopicScan(
        topic, start, end, partitions=partitions, bootstrap=bootstrap, isolation=isolation,
        include_headers=include_headers, columns=columns, value_schema=value_schema, value_format=value_format,
        key_format=key_format, schema_registry_url=schema_registry_url, options=options,
        batch_rows=batch_rows, batch_bytes=batch_bytes,
    ).reader()  # fmt: skip


class TopicScan:
    """A range of a topic. It is fixed when the object is created; each `reader` reads it from its beginning.

    Libraries that take Arrow streams, such as DuckDB and Polars, take a scan as it is (`__arrow_c_stream__`).
    """

    def __init__(
        self,
        topic: str,
        start: Places = "earliest",
        end: Places = "latest",
        *,
        partitions: Iterable[int] | None = None,
        bootstrap: str = DEFAULT_BOOTSTRAP,
        isolation: str = "read_committed",
        include_headers: bool = False,
        columns: Sequence[str] | None = None,
        value_schema: pa.Schema | None = None,
        value_format: str | None = None,
        key_format: str | None = None,
        schema_registry_url: str | None = None,
        options: Mapping[str, str | int] | None = None,
        batch_rows: int = DEFAULT_MAX_ROWS,
        batch_bytes: int = DEFAULT_MAX_BYTES,
    ) -> None:
        self.names: Final = _chosen_columns(columns, include_headers)
        given = dict(options or {})
        of_registry = {name: str(given.pop(name)) for name in list(given) if name.startswith(PREFIX)}
        self._options = client_options(bootstrap, given)
        self._isolation_level = _isolation_level(isolation)
        self._batch_rows = _positive("batch_rows", batch_rows)
        self._batch_bytes = _positive("batch_bytes", batch_bytes)
        if not isinstance(topic, str) or not topic:
            raise BadOption(f"topic: {topic!r} is not a topic's name")
        check_places("start", start)
        check_places("end", end)
        self._value_type = _value_type(value_schema, self.names)
        if value_format is not None and value_schema is not None:
            raise BadOption("value_format: the schema is the registry's, so there can be no value_schema")
        self._formats = typed_columns(
            topic,
            {VALUE: value_format, KEY: key_format},
            self.names,
            schema_registry_url,
            of_registry,
        )
        fields = {**FIELDS, VALUE: pa.field(VALUE, self._value_type or FIELDS[VALUE].type)}
        for name, values in self._formats.items():
            fields[name] = pa.field(name, values.type)
        self.schema: Final[pa.Schema] = pa.schema([fields[name] for name in self.names])
        self.failure: Exception | None = None
        """What ended the last reader: libraries that read Arrow streams keep only its text."""
        client = Client(self._options)
        try:
            self.topic: Final = client.topic(topic)
            self.ranges: Final[dict[int, Range]] = find_ranges(
                client,
                self.topic,
                chosen_partitions(self.topic, partitions, start=start, end=end),
                start=start,
                end=end,
                isolation_level=self._isolation_level,
            )
        finally:
            client.close()

    @property
    def offsets_count(self) -> int:
        """As many rows as there can be; compaction, markers and aborted transactions leave fewer."""
        return sum(one.end_offset - one.start_offset for one in self.ranges.values())

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """ReadFailed when the cluster cannot continue, or when bytes are no records."""
        self.failure = None
        client = Client(self._options)
        decoder = Decoder(self.topic.name, self.names, max_rows=self._batch_rows, max_bytes=self._batch_bytes)
        committed = self._isolation_level == READ_COMMITTED
        try:
            for piece in fetch(client, self.topic, self.ranges, isolation_level=self._isolation_level):
                for batch in decoder.decode(
                    piece.records,
                    partition=piece.partition,
                    start_offset=piece.start_offset,
                    end_offset=piece.end_offset,
                    aborted=piece.aborted if committed else None,
                ):
                    yield self._typed(batch)
            last = decoder.flush()
            if last is not None:
                yield self._typed(last)
        except InvalidRecord as error:
            self.failure = ReadFailed(str(error))
            raise self.failure from None
        except ReadFailed as error:
            self.failure = error
            raise
        finally:
            client.close()

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._value_type is None and not self._formats:
            return batch
        columns = dict(zip(self.names, batch.columns, strict=True))
        for name, values in self._formats.items():
            columns[name] = values.read(columns[name]).column
        if self._value_type is not None:
            from penstock.arrow.json_values import parsed_values

            columns[VALUE] = parsed_values(batch, self._value_type)
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=self.schema)


def _value_type(value_schema: pa.Schema | None, names: Sequence[str]) -> pa.StructType | None:
    if value_schema is None:
        return None
    from penstock.records.columnar.json_columns import UnsupportedType, check_type

    if not isinstance(value_schema, pa.Schema) or not len(value_schema):
        raise BadOption("value_schema: write a pyarrow.Schema with one field or more")
    if VALUE not in names:
        raise BadOption("value_schema: the column value is not among those that are wanted")
    kind = pa.struct(list(value_schema))
    try:
        check_type(kind)
    except UnsupportedType as error:
        raise BadOption(f"value_schema: {error}") from None
    return kind


def _chosen_columns(columns: Sequence[str] | None, include_headers: bool) -> tuple[str, ...]:
    if columns is None:
        return (*DEFAULT_COLUMNS, HEADERS) if include_headers else DEFAULT_COLUMNS
    if isinstance(columns, str):
        raise BadOption(f"columns: write a list of names, such as ['{columns}']")
    for name in columns:
        if name not in FIELDS:
            raise BadOption(f"columns: there is no column {name!r}; there are {', '.join(FIELDS)}")
    if not columns or len(set(columns)) < len(columns):
        raise BadOption("columns: name one or more, each once")
    return (*columns, HEADERS) if include_headers and HEADERS not in columns else tuple(columns)


def _isolation_level(isolation: str) -> int:
    level = ISOLATION_LEVELS.get(isolation)
    if level is None:
        raise BadOption(f"isolation: {isolation!r} is not {' or '.join(map(repr, ISOLATION_LEVELS))}")
    return level


def _positive(option: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadOption(f"{option}: must be 1 or more, not {value!r}")
    return value
