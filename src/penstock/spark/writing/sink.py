"""Rows of a query to topics: the columns of Spark's Kafka sink, in tasks on the executors.

At least once by default: a task returns when everything is acknowledged, and an attempt that follows a failed one
writes its rows again. With `exactlyOnce`, see exactly_once.py.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from penstock.spark.failures import NotTheSameBatch
from penstock.spark.internals import local_properties
from penstock.spark.internals.local_properties import current_task, local_property
from penstock.spark.kafka_properties import for_librdkafka
from penstock.spark.options import WriteOptions
from penstock.spark.writing.encoding import encoded_batches
from penstock.spark.writing.rows import Columns, chunks, columns_of
from penstock.spark.writing.tasks import Task, Write

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from penstock.spark.writing.exactly_once import Outcome


class Written(WriterCommitMessage):
    """What a task tells the driver."""

    def __init__(self, outcome: Outcome | None = None) -> None:
        self.outcome = outcome


class TopicWriter(DataSourceArrowWriter):
    """Of a batch query. Its transactions have a name of their own, unless the user gave one that lasts."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._options = options
        self._columns = columns_of(schema, topic=options.topic, encoded=dict(options.formats))
        self._write_id = f"write-{uuid.uuid4()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        iterator = _encoded(iterator, self._options, self._columns)
        if not self._options.exactly_once:
            _write_plainly(iterator, self._options, self._columns)
            return Written()
        prefix = self._options.transactional_id_prefix
        if prefix is None:
            return Written(_write_once(iterator, self._options, self._columns, self._write_id))
        # Within foreachBatch: the stream's batch, under a name that tells this write from its neighbours.
        query_id, batch_id = (
            local_property(local_properties.QUERY_ID),
            local_property(local_properties.BATCH_ID),
        )
        if query_id is None or batch_id is None:
            raise ValueError(
                "option 'transactionalIdPrefix' in a batch write is for use within foreachBatch, "
                "where there is a query and a batch"
            )
        write = Write(local_property(local_properties.RUN_ID) or "", self._write_id)
        name = _name(prefix, query_id, self._options.topic)
        return Written(
            _write_once(iterator, self._options, self._columns, name, batch_id=int(batch_id), write=write)
        )

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _check_tasks(None, messages)


class TopicStreamWriter(DataSourceStreamArrowWriter):
    """Of a streaming query."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._options = options
        self._columns = columns_of(schema, topic=options.topic, encoded=dict(options.formats))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        iterator = _encoded(iterator, self._options, self._columns)
        if not self._options.exactly_once:
            _write_plainly(iterator, self._options, self._columns)
            return Written()
        query_id = local_property(local_properties.QUERY_ID)
        batch_id = local_property(local_properties.BATCH_ID)
        if query_id is None or batch_id is None:
            raise RuntimeError("Spark does not tell the task's query and batch, which 'exactlyOnce' needs")
        # With the query's id always: a new checkpoint numbers its batches from 0 again, and is a new query.
        name = _name(self._options.transactional_id_prefix, query_id, self._options.topic)
        return Written(_write_once(iterator, self._options, self._columns, name, batch_id=int(batch_id)))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        _check_tasks(batchId, messages)


def _encoded(
    batches: Iterator[pa.RecordBatch], options: WriteOptions, columns: Columns
) -> Iterator[pa.RecordBatch]:
    if not options.formats:
        return batches
    return encoded_batches(batches, dict(options.formats), columns, options.topic)


def _name(prefix: str | None, query_id: str, topic: str | None) -> str:
    """What marks and transactions are known by. A topic in each row is no part of it."""
    return "-".join(part for part in (prefix, query_id, topic) if part is not None)


def _check_tasks(batch_id: int | None, messages: list[WriterCommitMessage | None]) -> None:
    outcomes = [message.outcome for message in messages if isinstance(message, Written)]
    if any(outcome is not None and outcome.last_partition >= len(outcomes) for outcome in outcomes):
        last = max(outcome.last_partition for outcome in outcomes if outcome is not None)
        which = "the batch" if batch_id is None else f"batch {batch_id}"
        raise NotTheSameBatch(
            f"{which} had {last + 1} tasks when it was first written, and now it has {len(outcomes)}"
        )


def _write_plainly(batches: Iterator[pa.RecordBatch], options: WriteOptions, columns: Columns) -> None:
    # Here and below: on the driver, which only plans, no client is loaded.
    from penstock.spark.writing.producing import Delivery, forget_producer, shared_producer

    settings = for_librdkafka(options.properties)
    delivery: Delivery | None = None
    try:
        for batch in batches:
            for chunk in chunks(batch, columns, options.topic):
                if delivery is None:
                    delivery = Delivery(shared_producer(settings))
                delivery.send(chunk)
        if delivery is not None:
            delivery.flush()
    except BaseException:
        forget_producer(settings)
        raise


def _write_once(
    batches: Iterator[pa.RecordBatch],
    options: WriteOptions,
    columns: Columns,
    query: str,
    *,
    batch_id: int | None = None,
    write: Write | None = None,
) -> Outcome:
    from penstock.spark.writing.exactly_once import write_once

    task = Task(
        query,
        batch_id or 0,
        current_task().partitionId(),
        is_of_a_stream=batch_id is not None,
        write=write or Write("", ""),
    )
    return write_once(task, batches, columns=columns, topic=options.topic, properties=options.properties)
