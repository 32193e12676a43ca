"""`format("penstock")`: topics as a Spark source and sink, with the columns and options of Spark's Kafka source.

The driver plans with topics.py and planning.py; each task reads one range with reading.py, or writes with sink.py. The
classes here are Spark's shapes for that and decide nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.spark.failures import DataLoss
from penstock.spark.internals.arrow_types import arrow_schema
from penstock.spark.kafka_properties import cluster_only
from penstock.spark.options import ReadOptions, read_options, write_options
from penstock.spark.reading.offsets import (
    OffsetRange,
    Offsets,
    TopicIds,
    cut,
    from_json,
    limited,
    split,
    to_json,
    topic_ids_of,
)
from penstock.spark.reading.planning import batch_ranges, starting_offsets, still_valid, stream_ranges
from penstock.spark.reading.topics import Topics, check_reachable, reader_options
from penstock.spark.typed_columns import TypedColumn, typed_columns
from penstock.spark.workers.collecting import set_aside_what_is_loaded
from penstock.spark.writing.encoding import check_encoding
from penstock.spark.writing.sink import TopicStreamWriter, TopicWriter

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.spark.watching.lag import GroupOffsets

HEADERS_TYPE = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))


def source_schema(options: ReadOptions, typed: Sequence[TypedColumn] = ()) -> StructType:
    values = options.values
    types: dict[str, DataType] = {each.name: each.spark_type() for each in typed}
    fields = [
        StructField("key", types.get("key", BinaryType())),
        StructField("value", types.get("value", BinaryType() if values is None else values.schema)),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
    if options.columns is not None:
        fields = [field for field in fields if field.name in options.columns]
    if options.include_headers and (options.columns is None or "headers" in options.columns):
        fields.append(StructField("headers", HEADERS_TYPE))
    if values is not None and values.include_raw:
        fields.append(StructField("rawValue", BinaryType()))
    for each in typed:
        if each.raw_name is not None:
            fields.append(StructField(each.raw_name, BinaryType()))
        if each.error_name is not None:
            fields.append(StructField(each.error_name, StringType()))
    return StructType(fields)


class RangePartition(InputPartition):
    """One task's range, as Spark carries it to an executor."""

    def __init__(self, value: OffsetRange, topic_ids: TopicIds) -> None:
        super().__init__(tuple(value._replace(topic_id=topic_ids.get(value.topic, ""))))


class PenstockDataSource(DataSource):
    typed: tuple[TypedColumn, ...] | None = None
    """As they were when `load` was called: Spark carries this object on from there. For a table it has not called `schema`."""

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> StructType:
        options = read_options(self.options, streaming=None)
        reader_options(options.properties)
        self.typed = typed_columns(options.formats, options.subscription)
        return source_schema(options, self.typed)

    def reader(self, schema: StructType) -> TopicReader:
        options = read_options(self.options, streaming=False)
        typed = self._typed_columns(options)
        return TopicReader(_checked(options, schema, typed), typed)

    def streamReader(self, schema: StructType) -> TopicStreamReader:
        return TopicStreamReader(self.options, schema, self.typed)

    def _typed_columns(self, options: ReadOptions) -> tuple[TypedColumn, ...]:
        if self.typed is None:
            self.typed = typed_columns(options.formats, options.subscription)
        return self.typed

    def writer(self, schema: StructType, overwrite: bool) -> TopicWriter:
        if overwrite:
            raise ValueError("a topic cannot be overwritten: use mode('append')")
        options = write_options(self.options)
        writer = TopicWriter(options, schema)
        if options.transactional_id_prefix is None:
            # Else it is a batch of a running query, whose tasks wait for a broker that is being started again.
            check_reachable(options.properties)
            check_encoding(schema, dict(options.formats), options.topic)
        return writer

    def streamWriter(self, schema: StructType, overwrite: bool) -> TopicStreamWriter:
        set_aside_what_is_loaded()  # this process is asked twice for each batch, and never does anything else
        options = write_options(self.options)
        # Only the address: a broker that restarts is for the tasks to wait for.
        reader_options(cluster_only(options.properties))
        return TopicStreamWriter(options, schema)


def _checked(options: ReadOptions, schema: StructType, typed: Sequence[TypedColumn]) -> ReadOptions:
    own = source_schema(options, typed)
    if schema.names != own.names:
        raise ValueError("the columns of a topic are fixed and cannot be set with schema(…)")
    for each in typed:
        if schema[each.name].dataType.simpleString() != own[each.name].dataType.simpleString():
            raise ValueError(
                f"the schema of '{each.name}' in the registry is another one than the table's: make the table anew, "
                f"or name a version ('{each.name}SchemaVersion')"
            )
    return options


def _topics(options: ReadOptions) -> Topics:
    return Topics(options.subscription, options.properties, is_read_committed=options.is_read_committed)


def _read(
    options: ReadOptions, typed: Sequence[TypedColumn], partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    # Here, where the executors are: the driver needs neither pyarrow nor the compiled decoder.
    from penstock.spark.reading.task import read_range

    return read_range(
        OffsetRange(*partition.value),
        schema=arrow_schema(source_schema(options, typed)),
        values=options.values,
        typed=typed,
        properties=options.properties,
        is_read_committed=options.is_read_committed,
        fail_on_data_loss=options.fail_on_data_loss,
    )


class TopicReader(DataSourceReader):
    """Of a batch query: what is there when it is planned."""

    def __init__(self, options: ReadOptions, typed: tuple[TypedColumn, ...] = ()) -> None:
        self._options = options
        self._typed = typed

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        topics = _topics(options)
        try:
            ranges = batch_ranges(options, topics, topics.partitions())
        finally:
            topics.close()
        parts = split(
            ranges, min_partitions=options.min_partitions, max_records=options.max_records_per_partition
        )
        return [RangePartition(each, topics.topic_ids) for each in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # what Spark makes of no partitions at all
            return iter(())
        return _read(self._options, self._typed, partition)


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Of a streaming query. One lives on the driver as long as the query runs; tasks have copies that only read."""

    def __init__(
        self,
        options: Mapping[str, str],
        schema: StructType,
        typed: tuple[TypedColumn, ...] | None = None,
    ) -> None:
        self._given = dict(options)
        self._schema = schema
        self._known_typed = typed
        self._open_topics: Topics | None = None
        self._group: GroupOffsets | None = None
        self._latest: Offsets | None = None
        self._target: Offsets | None = None  # where a query ends that reads what is available now
        self._planned_s = time.monotonic()

    @cached_property
    def _options(self) -> ReadOptions:
        """Refused when Spark asks for something: one that cannot be constructed Spark's runner stops all the same."""
        options = read_options(self._given, streaming=True)
        return _checked(options, self._schema, self._typed_of(options))

    def _typed_of(self, options: ReadOptions) -> tuple[TypedColumn, ...]:
        if self._known_typed is None:
            self._known_typed = typed_columns(options.formats, options.subscription)
        return self._known_typed

    @property
    def _topics(self) -> Topics:
        if self._open_topics is None:
            self._open_topics = _topics(self._options)
        return self._open_topics

    def initialOffset(self) -> dict[str, Any]:
        offsets = starting_offsets(self._options, self._topics, self._topics.partitions())
        return to_json(offsets, self._topics.topic_ids)

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._topics.ends()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        done = from_json(start)
        self._topics.expect(done)
        self._latest = self._topics.ends()
        begun = still_valid(
            done,
            topic_ids=topic_ids_of(start),
            topic_ids_now=self._topics.topic_ids,
            fail_on_data_loss=self._options.fail_on_data_loss,
        )
        end = self._end(begun, self._latest)
        # Spark asks for the next end when the batch before is done. `commit` it calls one batch later, and for the last
        # batch of a query never.
        self._show(begun, is_last=self._target is not None and end == begun)
        if self._waits_for_more(begun, end, limit):
            return start
        self._planned_s = time.monotonic()
        if end == done == begun:
            return start  # as it is written: another text would be another batch
        if isinstance(limit, ReadMaxRows):
            new = [place for place in end if place not in begun]
            known = {**begun, **(self._topics.earliest(new) if new else {})}
            end = limited(known, end, limit.max_rows)
        return to_json(end, self._topics.topic_ids)

    def _end(self, begun: Offsets, latest: Offsets) -> Offsets:
        gone = begun.keys() - latest.keys()
        if gone and self._options.fail_on_data_loss:
            raise DataLoss(f"the partition {min(gone)} is gone")
        if self._target is None:
            return latest
        # What came after the target was set is for another run, whatever a partition has to offer.
        return {
            place: min(end, max(self._target.get(place, 0), begun.get(place, 0)))
            for place, end in latest.items()
            if place in self._target or place in begun
        }

    def _waits_for_more(self, begun: Offsets, end: Offsets, limit: ReadLimit) -> bool:
        least = limit.min_rows if isinstance(limit, ReadMinRows) else self._options.min_offsets_per_trigger
        if least is None or self._target is not None or isinstance(limit, ReadAllAvailable):
            return False
        waiting = sum(max(0, offset - begun.get(place, 0)) for place, offset in end.items())
        waited_ms = (time.monotonic() - self._planned_s) * 1000
        return waiting < least and waited_ms < self._options.max_trigger_delay_ms

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return None if self._latest is None else to_json(self._latest)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begun, wanted, topic_ids = from_json(start), from_json(end), topic_ids_of(end)
        there = self._reachable(begun, wanted, topic_ids) if self._latest is None else wanted
        begun = still_valid(
            begun,
            topic_ids=topic_ids_of(start),
            topic_ids_now=topic_ids,
            fail_on_data_loss=self._options.fail_on_data_loss,
        )
        ranges = stream_ranges(
            begun,
            wanted,
            self._topics,
            fail_on_data_loss=self._options.fail_on_data_loss,
            same_topics=topic_ids_of(start).keys() & topic_ids.keys(),
        )
        parts = split(
            ranges,
            min_partitions=self._options.min_partitions,
            max_records=self._options.max_records_per_partition,
        )
        return [RangePartition(cut(part, there), topic_ids) for part in parts]

    def _reachable(self, begun: Offsets, end: Offsets, topic_ids: TopicIds) -> Offsets:
        """How far a batch of an earlier run can be read: its records may be gone with their topic."""
        self._topics.expect(begun.keys() | end.keys())
        latest = still_valid(
            self._topics.ends(),
            topic_ids=topic_ids,
            topic_ids_now=self._topics.topic_ids,
            fail_on_data_loss=self._options.fail_on_data_loss,
        )
        for place, offset in sorted(end.items()):
            if self._options.fail_on_data_loss and latest.get(place, -1) < offset != begun.get(place):
                raise DataLoss(
                    f"{place} ends at {latest[place]}, though the query was at {offset} already"
                    if place in latest
                    else f"the partition {place} is gone"
                )
        return {place: min(offset, latest.get(place, 0)) for place, offset in end.items()}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._options, self._typed_of(self._options), partition)

    def _show(self, done: Offsets, *, is_last: bool) -> None:
        if self._options.commit_group is None:
            return
        if self._group is None:
            from penstock.spark.watching.lag import GroupOffsets

            self._group = GroupOffsets(self._options.commit_group, self._options.properties)
        self._group.commit(done)
        if is_last:
            self._group.flush()

    def stop(self) -> None:
        if self._group is not None:
            self._group.close()
            self._group = None
        if self._open_topics is not None:
            self._open_topics.close()
            self._open_topics = None
