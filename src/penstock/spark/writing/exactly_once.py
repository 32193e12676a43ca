"""One transaction for each task of a batch, with the batch's number in it.

The transactional id of a task is `<query>-<partition>` (the target topic is part of <query>): whoever opens it shuts
out every earlier task of that name, of this driver or of one that was thought dead, and ends what that left open. In the
same transaction as the rows goes a marker (markers.py): the number of the next batch. So a replayed batch finds out what
an earlier attempt has finished:

    batch 7, task 2: rows, marker 8 → committed; then the driver is killed
    new driver, batch 7 again: task 2 reads marker 8 and writes nothing; the others have marker 7 and write

Spark replays only the last batch. A marker that is further ahead tells that the checkpoint went back (a backup was restored,
files were lost): the batch before us has other rows than the one that was written under its number, so the query fails.

It holds as long as a replayed batch has the same rows in the same tasks. The source sees to that; a query whose tasks
are others than before (`minPartitions`, `repartition`, another number of cores for some sources) does not. The marker
knows how many rows the task had: when that differs, the query fails. It cannot be known before, so other tasks may have
written by then; what is told is that rows may be there twice, not that it was prevented.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.client.librdkafka_calls import retriable_calls
from penstock.consumer.hanging_calls import LeftBehind, StillRunning, call_within
from penstock.spark.failures import CheckpointWentBack, NotTheSameBatch, NotWritten
from penstock.spark.kafka_properties import for_librdkafka
from penstock.spark.writing.markers import (
    OPERATION_TIMEOUT_S,
    PATIENCE_S,
    Markers,
    ensure_marker_topic,
    forget_marker_topic,
)
from penstock.spark.writing.producing import Delivery, close_producer, make_producer
from penstock.spark.writing.rows import Columns, chunks
from penstock.spark.writing.tasks import Marker, Task

log = logging.getLogger("penstock.spark")

TRANSACTION_TIMEOUT_MS = (
    300_000  # from the first row of a task to its last; what a dead query left open ends then
)
MESSAGE_TIMEOUT_MS = 120_000
GRACE_S = 1.0
ATTEMPTS = 4
REPLAY_BUFFER_BYTES = 64 * 1024 * 1024  # a task that had more rows is attempted again by Spark, not here
SESSIONS_MAX = 32

# No other attempt will go better.
HOPELESS = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_RECORD,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.POLICY_VIOLATION,
    }
)


class Outcome(NamedTuple):
    rows: int  # that were written now; none if they were already
    last_partition: int  # the last task, as far as is known, that had written this batch before; -1: none


class Session:
    """A transactional producer that was the newest of its id when it was opened, and where its task stands."""

    def __init__(self, task: Task, properties: Mapping[str, str]) -> None:
        self._producer: Producer = make_producer(_producer_settings(task, properties))
        self._markers = Markers(task, properties)
        self._hanging: threading.Thread | None = None
        try:
            _patiently(lambda: self._producer.init_transactions(OPERATION_TIMEOUT_S), "the first transaction")
            self.marker = self._markers.read()
        except BaseException:
            self.close()
            raise

    @property
    def last_batch_id(self) -> int:
        """The last that was written by any task, as far as was known when this session was opened, or by this one since."""
        others = (marker.next_batch_id for marker in self._markers.by_partition.values())
        return max(self.marker.next_batch_id, *others, 0) - 1

    def last_partition(self, batch_id: int) -> int:
        """The last task that had written the batch when this session was opened; -1: none."""
        written = (
            partition
            for partition, marker in self._markers.by_partition.items()
            if marker.next_batch_id > batch_id
        )
        return max(written, default=-1)

    def write(
        self, task: Task, batches: Iterable[pa.RecordBatch], columns: Columns, topic: str | None
    ) -> int:
        """All rows and the marker, or KafkaException or NotWritten and nothing."""
        self._producer.begin_transaction()
        delivery = Delivery(self._producer)
        if (record := self._markers.as_record(task.batch_id + 1)) is not None:
            # Before the rows, so that it costs no round trip of its own.
            self._producer.produce(**record, on_delivery=delivery.note)
        for batch in batches:
            for chunk in chunks(batch, columns, topic):
                delivery.send(chunk)
        marker = Marker(task.batch_id + 1, delivery.rows, task.write)
        try:
            self._send_marker(marker)
            _patiently(lambda: self._producer.commit_transaction(OPERATION_TIMEOUT_S), "a transaction")
        except KafkaException:
            delivery.check_reports()  # the row that was refused says more than the transaction that failed for it
            raise
        self.marker = marker
        return delivery.rows

    def _send_marker(self, marker: Marker) -> None:
        offset, group = self._markers.as_offset(marker), self._markers.group_metadata
        producer = self._producer
        try:
            _patiently(
                lambda: call_within(
                    lambda: producer.send_offsets_to_transaction([offset], group, OPERATION_TIMEOUT_S),
                    OPERATION_TIMEOUT_S + GRACE_S,
                ),
                "the batch's number in a transaction",
            )
        except StillRunning as hanging:
            # The next session takes the id over, which ends the open transaction.
            self._hanging = hanging.thread
            if not _left_behind.add(hanging.thread):
                raise RuntimeError(
                    "the Kafka client hangs again and again in transactions of this worker"
                ) from hanging
            raise NotWritten("the client hung while it sent the batch's number") from hanging

    def close(self) -> None:
        if self._hanging is not None:
            return  # a thread is still in the producer, and in what it shares with the consumer
        try:
            self._producer.abort_transaction(OPERATION_TIMEOUT_S)
        except KafkaException as error:
            log.debug("%s", error.args[0].str())  # none was open, or it is not ours to end any more
        close_producer(self._producer)
        self._markers.close()


def _producer_settings(task: Task, properties: Mapping[str, str]) -> dict[str, Any]:
    given = for_librdkafka(properties)
    timeout_ms = int(given.get("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS))
    return {
        "transaction.timeout.ms": timeout_ms,
        "message.timeout.ms": min(timeout_ms, MESSAGE_TIMEOUT_MS),
        **given,
        "transactional.id": task.transactional_id,
    }


class Replayable:
    """Rows that can be had again, while they are few enough to be kept."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._rest = batches
        self._kept: list[pa.RecordBatch] = []
        self._kept_bytes = 0
        self.is_complete = True  # everything that was given out can be given out again

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield from tuple(self._kept)
        for batch in self._rest:
            if self.is_complete:
                self._kept_bytes += batch.nbytes
                self._kept.append(batch)
                if self._kept_bytes > REPLAY_BUFFER_BYTES:
                    self.is_complete = False
                    self._kept.clear()
            yield batch

    def drain(self) -> int:
        """To the end, without doing anything: what comes before the sink in the same task has state to save.

        Returns how many rows there are, if those that were given out before are complete.
        """
        return sum(batch.num_rows for batch in self)


_left_behind = LeftBehind()  # by all tasks of this process

# Spark's Python workers live on between tasks. A session is good for the batch behind the one that it wrote.
_sessions: dict[tuple[str, tuple[tuple[str, str], ...]], Session] = {}


def write_once(
    task: Task,
    batches: Iterator[pa.RecordBatch],
    *,
    columns: Columns,
    topic: str | None,
    properties: Mapping[str, str],
) -> Outcome:
    """Writes the task's rows if no attempt before has. NotTheSameBatch if that attempt had others."""
    ensure_marker_topic(properties)
    rows = Replayable(batches)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            if attempt > 1:
                ensure_marker_topic(properties)  # it may have been deleted meanwhile
            session = _session(task, properties)
            _check_checkpoint(task, session.last_batch_id)
            last_partition = session.last_partition(task.batch_id)
            if task.batch_id < session.marker.next_batch_id:
                _check_write(task, session.marker)
                _check_replay(task, session.marker, rows.drain())
                return Outcome(0, last_partition)
            return Outcome(session.write(task, rows, columns, topic), last_partition)
        except (KafkaException, NotWritten) as error:
            _forget(task, properties)
            forget_marker_topic(properties)
            if attempt == ATTEMPTS or not rows.is_complete or _is_hopeless(error):
                raise _explained(error, task) from error
            log.warning("batch %d of %s again: %s", task.batch_id, task.transactional_id, error)
        except BaseException:
            _forget(task, properties)
            raise
    raise AssertionError("the last attempt returns or raises")


def _check_checkpoint(task: Task, last_batch_id: int) -> None:
    if last_batch_id > task.batch_id:
        raise CheckpointWentBack(task.batch_id, last_batch_id, task.query)


def _check_write(task: Task, marker: Marker) -> None:
    before, now = marker.write, task.write
    if before is not None and before.run_id == now.run_id != "" and before.write_id != now.write_id:
        raise NotTheSameBatch(f"batch {task.batch_id} is written a second time as '{task.query}'")


def _check_replay(task: Task, marker: Marker, rows: int) -> None:
    log.info("batch %d of %s is written already", task.batch_id, task.transactional_id)
    if marker.rows is not None and marker.rows != rows:
        raise NotTheSameBatch(
            f"batch {task.batch_id} had {marker.rows} rows in task {task.partition} when it was written, and now "
            f"it has {rows}"
        )


def _session(task: Task, properties: Mapping[str, str]) -> Session:
    """The one of the batch before, or a new one.

    Somebody else may have taken the id over since then: the transaction fails then, and the next session is new.
    """
    identity = (task.transactional_id, tuple(sorted(properties.items())))
    session = _sessions.get(identity)
    if session is None or session.marker.next_batch_id != task.batch_id:
        _forget(task, properties)
        while len(_sessions) >= SESSIONS_MAX:
            _sessions.pop(next(iter(_sessions))).close()
        session = _sessions[identity] = Session(task, properties)
    return session


def _forget(task: Task, properties: Mapping[str, str]) -> None:
    session = _sessions.pop((task.transactional_id, tuple(sorted(properties.items()))), None)
    if session is not None:
        session.close()


def _is_hopeless(error: KafkaException | NotWritten) -> bool:
    cause = error.__cause__ if isinstance(error, NotWritten) else error
    return isinstance(cause, KafkaException) and cause.args[0].code() in HOPELESS


def _explained(error: KafkaException | NotWritten, task: Task) -> NotWritten:
    if isinstance(error, NotWritten):
        return error
    return NotWritten(
        f"the transaction of {task.transactional_id} for batch {task.batch_id} failed: {error.args[0].str()}"
    )


def _patiently(step: Callable[[], object], what: str) -> None:
    retriable_calls(step, what, timeout_s=PATIENCE_S, log=log)
