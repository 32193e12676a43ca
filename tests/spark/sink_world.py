"""Spark as a sink sees it, without a JVM: drivers, their workers and checkpoints.

A worker is what a Python process would remember: its sessions. A task can be killed at any point of its transaction, or held up
there: that is a call in the middle of the task, in which the rest of the world goes on.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StringType, StructField, StructType

from penstock.spark.failures import CheckpointWentBack, NotTheSameBatch
from penstock.spark.internals import local_properties
from penstock.spark.options import write_options
from penstock.spark.writing import exactly_once, markers, sink
from penstock.spark.writing.sink import TopicStreamWriter, TopicWriter
from tests.clients.admin import create_topic, delete_topic
from tests.committed_values import OpenTransaction, committed_values
from tests.spark.sink_model import Attempt, Model, Name, Verdict
from tests.watched_producer import AFTER_COMMIT, Violation, WatchedProducer

ERRORS: dict[Verdict, tuple[type[Exception], str]] = {
    Verdict.WENT_BACK: (CheckpointWentBack, "Restore the newest checkpoint"),
    Verdict.OTHER_ROWS: (NotTheSameBatch, "Set back what was changed"),
    Verdict.SECOND_WRITE: (NotTheSameBatch, "'transactionalIdPrefix'"),
}
SCHEMA = StructType([StructField("value", StringType())])
WAIT_S = 60.0

Plan = list[list[str]]  # rows by task


class Interruption(NamedTuple):
    """Where a task is interrupted, and what happens then: Killed, or the world goes on without it."""

    task: int
    point: str
    happens: Callable[[], None]


class Worker:
    """The memory of a Python process of Spark's."""

    def __init__(self) -> None:
        self.sessions: dict[Any, Any] = {}
        self.clusters: set[str] = set()


class Checkpoint:
    """Spark's: what each batch is to be, and which was the last that is done."""

    def __init__(self, query_id: str) -> None:
        self.query_id = query_id
        self.plans: dict[int, Plan] = {}
        self.committed = -1

    def copy(self) -> Checkpoint:
        other = Checkpoint(self.query_id)
        other.plans, other.committed = dict(self.plans), self.committed
        return other


class TaskContext(NamedTuple):
    """As much of Spark's as the sink asks for."""

    task: int
    properties: dict[str, str]

    def partitionId(self) -> int:
        return self.task

    def getLocalProperty(self, name: str) -> str | None:
        return self.properties.get(name)


class Driver(NamedTuple):
    """A run of a query. With a prefix it writes in foreachBatch, else as a sink."""

    checkpoint: Checkpoint
    topic: str
    prefix: str | None
    worker: Worker
    run: str

    @property
    def name(self) -> Name:
        return Name(self.prefix, self.checkpoint.query_id, self.topic)


class SinkWorld:
    def __init__(self, bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bootstrap = bootstrap
        self.model = Model()
        self.patience_s = WAIT_S  # for the end of transactions that are decided
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._numbers = itertools.count(1)
        self._context: TaskContext | None = None
        self._interruption: Interruption | None = None
        self._producers: list[WatchedProducer] = []
        self._workers: list[Worker] = []
        make_producer = exactly_once.make_producer

        def watched(settings: Any) -> WatchedProducer:
            self._producers.append(WatchedProducer(make_producer(settings), self._at))
            return self._producers[-1]

        monkeypatch.setattr(exactly_once, "make_producer", watched)
        # In this thread: the world may go on in the middle of it, and take its time.
        monkeypatch.setattr(exactly_once, "call_within", lambda step, timeout_s: step())
        for module in (sink, local_properties):
            monkeypatch.setattr(module, "current_task", lambda: self._context)

    def driver(self, checkpoint: Checkpoint, topic: str, prefix: str | None) -> Driver:
        worker = Worker()
        self._workers.append(worker)
        return Driver(checkpoint, topic, prefix, worker, f"run-{next(self._numbers)}" if prefix else "")

    def made_rows(self, count: int) -> list[str]:
        return [f"r{next(self._numbers)}" for _ in range(count)]

    def run_batch(
        self,
        driver: Driver,
        batch_id: int,
        plan: Plan,
        *,
        order: list[int],
        interruption: Interruption | None = None,
    ) -> None:
        """All tasks, each as the model says, and what Spark asks the sink at the end."""
        committed = driver.checkpoint.committed
        writer = self.writer(driver)
        write = f"write-{next(self._numbers)}"
        messages: list[WriterCommitMessage | None] = [None] * len(plan)
        verdicts = []
        for task in order:
            attempt = Attempt(driver.name, batch_id, task, tuple(plan[task]), driver.run, write)
            held_up = interruption if interruption is not None and interruption.task == task else None
            verdict, messages[task] = self.run_task(driver, writer, attempt, held_up)
            verdicts.append(verdict)
        if not set(verdicts) <= {Verdict.WRITES, Verdict.SKIPS} or driver.checkpoint.committed != committed:
            return  # a failed query, or one whose checkpoint another has taken over, which Spark notices
        is_short = self.model.misses_tasks(driver.name, batch_id, len(plan))
        try:
            writer.commit(messages, batch_id) if driver.prefix is None else writer.commit(messages)
        except NotTheSameBatch as error:
            if not is_short:
                raise Violation(f"batch {batch_id} has all its tasks, and is refused") from error
            return
        if is_short:
            raise Violation(f"batch {batch_id} has fewer tasks than before, and is taken")
        driver.checkpoint.committed = max(batch_id, committed)

    def writer(self, driver: Driver) -> Any:
        given = {
            "kafka.bootstrap.servers": self.bootstrap,
            "topic": driver.topic,
            "exactlyOnce": "true",
        }
        if driver.prefix is None:
            return TopicStreamWriter(write_options(given), SCHEMA)
        return TopicWriter(write_options({**given, "transactionalIdPrefix": driver.prefix}), SCHEMA)

    def run_task(
        self, driver: Driver, writer: Any, attempt: Attempt, interruption: Interruption | None
    ) -> tuple[Verdict, WriterCommitMessage | None]:
        """What it came to, which is what the model said; Killed when it was."""
        verdict = self.model.verdict(attempt)
        if interruption is not None and interruption.point == AFTER_COMMIT and verdict is Verdict.WRITES:
            happens = _both(lambda: self.model.commits(attempt), interruption.happens)
            interruption = interruption._replace(happens=happens)
        message, raised, is_interrupted = self._write(driver, writer, attempt, interruption)
        is_done = is_interrupted and interruption is not None and interruption.point == AFTER_COMMIT
        if not is_done:
            verdict = self.model.verdict(attempt)  # the world may have gone on since
        self._check(attempt, verdict, message, raised)
        if verdict is Verdict.WRITES and not is_done:
            self.model.commits(attempt)
        return verdict, message

    def _write(
        self, driver: Driver, writer: Any, attempt: Attempt, interruption: Interruption | None
    ) -> tuple[WriterCommitMessage | None, Exception | None, bool]:
        """In the driver's worker, with the memory of that."""
        properties = {
            local_properties.QUERY_ID: attempt.name.query_id,
            local_properties.BATCH_ID: str(attempt.batch_id),
            local_properties.RUN_ID: attempt.run,
        }
        outside = self._context, self._interruption
        memory = exactly_once._sessions, markers._clusters_with_marker_topic
        self._context = TaskContext(attempt.task, properties)
        self._interruption = interruption
        exactly_once._sessions = driver.worker.sessions
        markers._clusters_with_marker_topic = driver.worker.clusters
        rows = pa.record_batch([pa.array(attempt.rows, pa.string())], names=["value"])
        try:
            return writer.write(iter([rows])), None, self._interruption is None
        except Exception as error:
            return None, error, self._interruption is None
        finally:
            self._context, self._interruption = outside
            exactly_once._sessions, markers._clusters_with_marker_topic = memory

    def _check(
        self,
        attempt: Attempt,
        verdict: Verdict,
        message: WriterCommitMessage | None,
        raised: Exception | None,
    ) -> None:
        if verdict in ERRORS:
            kind, advice = ERRORS[verdict]
            if not isinstance(raised, kind) or advice not in str(raised):
                raise Violation(f"{attempt}: {verdict.value}, and what comes is {raised!r}") from raised
            return
        if raised is not None:
            raise Violation(f"{attempt}: it {verdict.value}, and what comes is {raised!r}") from raised
        outcome = getattr(message, "outcome", None)
        rows = len(attempt.rows) if verdict is Verdict.WRITES else 0
        if outcome is None or outcome.rows != rows:
            raise Violation(f"{attempt}: it {verdict.value}, and says {outcome}")

    def _at(self, point: str) -> None:
        interruption = self._interruption
        if interruption is not None and interruption.point == point:
            self._interruption = None
            interruption.happens()

    # What happens to the cluster.

    def make_topic(self, topic: str, partitions: int) -> None:
        create_topic(self.bootstrap, topic, partitions=partitions)
        self.model.topic_is_deleted(topic)

    def make_anew(self, topic: str, partitions: int) -> None:
        delete_topic(self.bootstrap, topic)
        self.make_topic(topic, partitions)

    def grow(self, topic: str) -> None:
        partitions = len(self._admin.list_topics(topic, timeout=WAIT_S).topics[topic].partitions)
        self._admin.create_partitions([NewPartitions(topic, partitions + 1)])[topic].result(WAIT_S)

    def expire_offsets(self) -> None:
        found = self._admin.list_consumer_groups(request_timeout=WAIT_S).result(WAIT_S)
        groups = [one.group_id for one in found.valid if one.group_id.startswith("penstock-spark-")]
        if groups:
            for deleted in self._admin.delete_consumer_groups(groups, request_timeout=WAIT_S).values():
                deleted.result(WAIT_S)
        self.model.offsets_expire()

    def lose_marks(self) -> None:
        delete_topic(self.bootstrap, markers.MARKER_TOPIC)
        self.model.marks_are_lost()

    def check(self) -> None:
        """Every topic has the rows that the model has, no less and no more."""
        for topic, expected in self.model.committed.items():
            try:
                found = committed_values(self.bootstrap, topic, patience_s=self.patience_s)
            except OpenTransaction as error:
                raise Violation(str(error)) from error
            if found != expected:
                raise Violation(
                    f"{topic}: lost {sorted((expected - found).elements())}, twice or not to be there "
                    f"{sorted((found - expected).elements())}"
                )

    def close(self) -> None:
        """Also what nobody would end before its time."""
        for worker in self._workers:
            for session in worker.sessions.values():
                session.close()
        for producer in self._producers:
            producer.bury()


def _both(one: Callable[[], None], then: Callable[[], None]) -> Callable[[], None]:
    def both() -> None:
        one()
        then()

    return both
