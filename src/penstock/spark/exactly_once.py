"""One transaction for each task of a batch, with the batch's number in it.

The transactional id of a task is `<query>-<partition>`: whoever opens it shuts out every earlier task of that name, of
this driver or of one that was thought dead, and ends what that left open. In the same transaction as the rows goes an
offset: the number of the next batch, for a group that is named after the query. So a replayed batch finds out what an
earlier attempt has finished:

    batch 7, task 2: rows, marker 8 → committed; then the driver is killed
    new driver, batch 7 again: task 2 reads marker 8 and writes nothing; the others have marker 7 and write

It holds as long as a replayed batch has the same rows in the same tasks: the source gives them; a query whose own
functions are random does not. The marker is kept as long as the cluster keeps a group's offsets
(`offsets.retention.minutes`, a week by default, after the last batch).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from penstock.consumer.patience import patiently
from penstock.spark.failures import NotWritten
from penstock.spark.kafka_properties import cluster_only, for_librdkafka
from penstock.spark.producing import FIRST_CONTACT_TIMEOUT_S, Delivery, close_producer, make_producer
from penstock.spark.rows import Columns, chunks

log = logging.getLogger("penstock.spark")

MARKER_TOPIC = "__penstock_spark_batches"  # holds no records: Kafka has offsets of topics that exist only
MARKER_PARTITIONS = 16
GROUP_PREFIX = "penstock-spark-"
TRANSACTION_TIMEOUT_MS = (
    300_000  # from the first row of a task to its last; what a dead query left open ends then
)
OPERATION_TIMEOUT_S = 10.0  # one call; it is made again while the broker says that it may help
MESSAGE_TIMEOUT_MS = 120_000
PATIENCE_S = 120.0  # all calls of one step together
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
# Who may not make topics may have been given this one; if not, the first transaction says so.
MAY_BE_THERE = frozenset(
    {
        KafkaError.TOPIC_ALREADY_EXISTS,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)


class Task(NamedTuple):
    """Which part of which batch of which query."""

    query: str
    batch_id: int
    partition: int

    @property
    def transactional_id(self) -> str:
        return f"{self.query}-{self.partition}"

    @property
    def marker_group(self) -> str:
        block = self.partition // MARKER_PARTITIONS
        return f"{GROUP_PREFIX}{self.query}" + (f"-{block}" if block else "")

    @property
    def marker_partition(self) -> int:
        return self.partition % MARKER_PARTITIONS


class Session:
    """A transactional producer that was the newest of its id when it was opened, and where its task stands."""

    def __init__(self, task: Task, properties: Mapping[str, str]) -> None:
        self._producer: Producer = make_producer(_producer_settings(task, properties))
        self._markers = Consumer(
            {
                **for_librdkafka(cluster_only(properties)),
                "group.id": task.marker_group,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",  # waits for a transaction that is being ended
            },
            logger=log.getChild("client"),
        )
        self._marker = TopicPartition(MARKER_TOPIC, task.marker_partition)
        _patiently(lambda: self._producer.init_transactions(OPERATION_TIMEOUT_S), "the first transaction")
        self.next_batch_id = self._read_marker()

    def write(
        self, task: Task, batches: Iterable[pa.RecordBatch], columns: Columns, topic: str | None
    ) -> int:
        """All rows and the marker, or KafkaException or NotWritten and nothing."""
        self._producer.begin_transaction()
        delivery = Delivery(self._producer)
        for batch in batches:
            for chunk in chunks(batch, columns, topic):
                delivery.send(chunk)
        marker = TopicPartition(MARKER_TOPIC, task.marker_partition, task.batch_id + 1)
        metadata = self._markers.consumer_group_metadata()
        try:
            _patiently(
                lambda: self._producer.send_offsets_to_transaction([marker], metadata, OPERATION_TIMEOUT_S),
                "the batch's number in a transaction",
            )
            _patiently(lambda: self._producer.commit_transaction(OPERATION_TIMEOUT_S), "a transaction")
        except KafkaException:
            delivery.check()  # the row that was refused says more than the transaction that failed for it
            raise
        self.next_batch_id = task.batch_id + 1
        return delivery.rows

    def close(self) -> None:
        try:
            self._producer.abort_transaction(OPERATION_TIMEOUT_S)
        except KafkaException as error:
            log.debug("%s", error.args[0].str())  # none was open, or it is not ours to end any more
        close_producer(self._producer)
        self._markers.close()

    def _read_marker(self) -> int:
        found: list[TopicPartition] = []

        def read() -> None:
            found[:] = self._markers.committed([self._marker], timeout=OPERATION_TIMEOUT_S)
            if found[0].error is not None:
                raise KafkaException(found[0].error)

        _patiently(read, "the number of the last batch")
        return max(0, int(found[0].offset))


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

    def drain(self) -> None:
        """To the end, without doing anything: what comes before the sink in the same task has state to save."""
        for _ in self._rest:
            pass


# Spark's Python workers live on between tasks. A session is good for the batch behind the one that it wrote.
_sessions: dict[tuple[str, tuple[tuple[str, str], ...]], Session] = {}
_clusters_with_marker_topic: set[str] = set()


def write_once(
    task: Task,
    batches: Iterator[pa.RecordBatch],
    *,
    columns: Columns,
    topic: str | None,
    properties: Mapping[str, str],
) -> int:
    """Writes the task's rows if no attempt before has; returns how many were written."""
    ensure_marker_topic(properties)
    rows = Replayable(batches)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            session = _session(task, properties)
            if task.batch_id < session.next_batch_id:
                log.info("batch %d of %s is written already", task.batch_id, task.transactional_id)
                rows.drain()
                return 0
            return session.write(task, rows, columns, topic)
        except (KafkaException, NotWritten) as error:
            _forget(task, properties)
            if attempt == ATTEMPTS or not rows.is_complete or _is_hopeless(error):
                raise _explained(error, task) from error
            log.warning("batch %d of %s again: %s", task.batch_id, task.transactional_id, error)
        except BaseException:
            _forget(task, properties)
            raise
    raise AssertionError("the last attempt returns or raises")


def _session(task: Task, properties: Mapping[str, str]) -> Session:
    """The one of the batch before, or a new one.

    Somebody else may have taken the id over since then: the transaction fails then, and the next session is new.
    """
    identity = (task.transactional_id, tuple(sorted(properties.items())))
    session = _sessions.get(identity)
    if session is None or session.next_batch_id != task.batch_id:
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
    patiently(step, what, patience_s=PATIENCE_S, log=log)


def ensure_marker_topic(properties: Mapping[str, str]) -> None:
    where = str(properties["bootstrap.servers"])
    if where in _clusters_with_marker_topic:
        return
    admin = AdminClient({**for_librdkafka(cluster_only(properties))}, logger=log.getChild("client"))
    topic = NewTopic(MARKER_TOPIC, MARKER_PARTITIONS, config={"cleanup.policy": "compact"})
    try:
        admin.create_topics([topic], operation_timeout=OPERATION_TIMEOUT_S)[MARKER_TOPIC].result(
            FIRST_CONTACT_TIMEOUT_S
        )
    except KafkaException as error:
        if error.args[0].code() not in MAY_BE_THERE:
            raise NotWritten(
                f"'exactlyOnce' needs the topic {MARKER_TOPIC}, which cannot be made at {where}: "
                f"{error.args[0].str()}"
            ) from error
    except TimeoutError as error:
        raise NotWritten(
            f"cannot reach a broker at {where} (option 'kafka.bootstrap.servers') within "
            f"{FIRST_CONTACT_TIMEOUT_S:.0f} s"
        ) from error
    _clusters_with_marker_topic.add(where)
