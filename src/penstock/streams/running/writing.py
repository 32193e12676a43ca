"""Outputs, changelogs and offsets to the cluster: plainly, or in one transaction from commit to commit."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from penstock.client.errors import ReadFailed, Refused, Unreachable
from penstock.client.librdkafka_calls import retriable_calls
from penstock.consumer.hanging_calls import StillRunning, call_within
from penstock.streams.kernel.records import OutputRecord
from penstock.streams.running.first_moment import FirstMomentWriter
from penstock.streams.running.options import RunOptions

log = logging.getLogger("penstock.streams")

OPERATION_TIMEOUT_S: Final = 10.0
SEND_TIMEOUT_S: Final = 5.0
SEND_GRACE_S: Final = 1.0
PATIENCE_S: Final = 60.0
FLUSH_S: Final = 120.0
FULL_WAIT_S: Final = 0.05
TRANSACTION_TIMEOUT_MS: Final = (
    60_000  # what a worker that was killed leaves open ends with its successor, or then
)
QUEUE_MAX_MESSAGES: Final = 200_000
QUEUE_MAX_KBYTES: Final = 128 * 1024

# While more records wait to be processed, outputs keep each other company: a request for each few would take half of the CPU.
# Where none wait, `hurry` sends them at once.
LINGER_MS: Final = 5
TRANSACTIONS_LINGER_MS: Final = 50  # nobody sees them before the commit, which does not wait for this
HURRY_S: Final = 0.001

PRODUCER_SETTINGS: Final[dict[str, Any]] = {
    "enable.idempotence": True,
    "partitioner": "murmur2_random",  # the Java client's
    "linger.ms": LINGER_MS,
    "compression.type": "none",
    "message.timeout.ms": 120_000,
    "message.max.bytes": 1_000_000_000,  # the topic decides what is too large
    "delivery.report.only.error": True,
    "queue.buffering.max.messages": QUEUE_MAX_MESSAGES,
    "queue.buffering.max.kbytes": QUEUE_MAX_KBYTES,
    "enable.sparse.connections": False,
    "metadata.recovery.strategy": "none",
    "reconnect.backoff.max.ms": 1000,
}
FENCED: Final = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})

# In the plan's own topics, where the time of a record was 0.
FIRST_MOMENT: Final = ("penstock.first-moment", b"")

# Brokers refuse what is later than an hour from now.
FUTURE_MS: Final = 30 * 60 * 1000

Positions = list[TopicPartition]


class NotWritten(RuntimeError):
    """The cluster did not take what was written. Nothing behind the last commit counts."""


class Fenced(NotWritten):
    """Another task of the same name has begun."""


class _Writer:
    """`send` is called for each output, and only keeps it; `push` gives what is kept to the client."""

    producer: Producer

    def __init__(self, internal: frozenset[str]) -> None:
        """`internal` are the plan's own topics that it reads again."""
        self.written = 0
        self._internal = internal
        self._pending: list[OutputRecord] = []
        self.send: Callable[[OutputRecord], None] = self._pending.append
        self._failure: tuple[str, KafkaError] | None = None

    def change(self, topic: str, partition: int, timestamp: int) -> Callable[[bytes, bytes | None], None]:
        """Of a changelog."""

        def send(key: bytes, value: bytes | None) -> None:
            self.send(OutputRecord(topic, key, value, timestamp or 1, (), partition))

        return send

    def check(self) -> None:
        if self._failure is not None:
            topic, error = self._failure
            raise NotWritten(f"the topic {topic} does not take a record: {error.str()}") from KafkaException(
                error
            )

    def _write_first_moment(self, record: OutputRecord) -> bool:
        """False where it cannot be written with that time."""
        return False

    def close(self) -> None:
        try:
            self.producer.purge()
        except KafkaException as error:
            log.debug("%s", error.args[0].str())

    def _note(self, error: KafkaError | None, message: Any) -> None:
        if error is not None and self._failure is None:
            self._failure = (str(message.topic()), error)

    def _make(self, settings: Mapping[str, Any]) -> Producer:
        return Producer(dict(settings), logger=log.getChild("client"))

    def push(self) -> None:
        """Hands what was sent to the client, all at once: it makes fewer and larger requests of it."""
        pending = self._pending
        if not pending:
            return
        produce, note, internal = self.producer.produce, self._note, self._internal
        self.written += len(pending)
        latest = int(time.time() * 1000) + FUTURE_MS
        try:
            for record in pending:
                topic, key, value, timestamp, headers, partition = record
                if not timestamp:
                    if topic in internal:
                        headers = (*headers, FIRST_MOMENT)
                    elif self._write_first_moment(record):
                        continue
                    timestamp = 1  # librdkafka takes 0 for no time, and the next moment is nearer than now
                elif timestamp > latest and topic in internal:
                    timestamp = latest  # rows there have their own time besides
                place = -1 if partition is None else partition
                named: Any = list(headers) if headers else None
                try:
                    produce(topic, value, key, place, note, note, timestamp, named)
                except BufferError:
                    self._wait_and_produce(topic, value, key, place, note, note, timestamp, named)
        except KafkaException as error:
            raise NotWritten(f"the topic {topic} does not take a record: {error.args[0].str()}") from error
        finally:
            pending.clear()
        self.producer.poll(0)
        self.check()

    def _wait_and_produce(self, *record: Any) -> None:
        while True:
            self.producer.poll(FULL_WAIT_S)
            self.check()
            try:
                self.producer.produce(*record)
                return
            except BufferError:
                pass


class PlainWriter(_Writer):
    """At least once: everything is acknowledged before an offset is committed."""

    def __init__(self, options: RunOptions, internal: frozenset[str]) -> None:
        super().__init__(internal)
        self._options = options
        self._first_moment: FirstMomentWriter | None = None
        self.producer = self._make({**PRODUCER_SETTINGS, **options.for_producer()})

    def open(self) -> None:
        pass

    def begin(self) -> None:
        pass

    def commit(self, positions: Positions, consumer: Consumer) -> None:
        self.push()
        self._flush()
        if not positions:
            return

        def commit() -> None:
            for each in consumer.commit(offsets=positions, asynchronous=False) or ():
                if each.error is not None:
                    raise KafkaException(each.error)

        try:
            _patiently(commit, "a commit of offsets")
        except KafkaException as error:
            raise NotWritten(f"offsets cannot be committed: {error.args[0].str()}") from error

    def close(self) -> None:
        if self._first_moment is not None:
            self._first_moment.close()
        super().close()

    def hurry(self) -> None:
        """Nothing more is there that would give outputs soon."""
        if len(self.producer):
            self.producer.flush(HURRY_S)

    def _flush(self) -> None:
        deadline_s = time.monotonic() + FLUSH_S
        while self.producer.flush(1.0):
            self.check()
            if time.monotonic() > deadline_s:
                raise NotWritten("the cluster does not acknowledge what is written")
        self.check()

    def _write_first_moment(self, record: OutputRecord) -> bool:
        self._flush()  # what came before it is before it
        if self._first_moment is None:
            self._first_moment = FirstMomentWriter(
                self._options.bootstrap, {**self._options.security, **self._options.producer}
            )
        try:
            self._first_moment.send(record)
        except (Refused, ReadFailed, Unreachable) as error:
            raise NotWritten(f"the topic {record.topic} does not take a record: {error}") from error
        return True


class TransactionalWriter(_Writer):
    """Exactly once: outputs, changelogs and offsets become visible together or not at all."""

    def __init__(self, options: RunOptions, transactional_id: str, internal: frozenset[str]) -> None:
        super().__init__(internal)
        self.transactional_id = transactional_id
        self.producer = self._make(
            {
                **PRODUCER_SETTINGS,
                "linger.ms": TRANSACTIONS_LINGER_MS,
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "message.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "socket.timeout.ms": 10_000,
                **options.for_producer(),
                "transactional.id": transactional_id,
            }
        )
        self._is_open = False

    def open(self) -> None:
        """Ends what an earlier task of this name left open, and fences it."""
        self._step(lambda: self.producer.init_transactions(OPERATION_TIMEOUT_S), "the first transaction")

    def hurry(self) -> None:
        pass

    def begin(self) -> None:
        """Before the first output since the last commit."""
        if not self._is_open:
            self.producer.begin_transaction()
            self._is_open = True

    def commit(self, positions: Positions, consumer: Consumer) -> None:
        if not self._is_open:
            return
        self.push()
        group = consumer.consumer_group_metadata()
        producer = self.producer

        def send_offsets() -> None:
            call_within(
                lambda: producer.send_offsets_to_transaction(positions, group, SEND_TIMEOUT_S),
                SEND_TIMEOUT_S + SEND_GRACE_S,
            )

        if positions:
            try:
                self._step(send_offsets, "offsets in a transaction")
            except StillRunning as hanging:
                raise NotWritten("the client did not answer while it sent offsets") from hanging
        self._step(lambda: producer.commit_transaction(OPERATION_TIMEOUT_S), "a transaction")
        self._is_open = False

    def close(self) -> None:
        if self._is_open:
            try:
                self.producer.abort_transaction(OPERATION_TIMEOUT_S)
            except KafkaException as error:
                log.debug("%s", error.args[0].str())  # not ours to end any more; its successor will
        super().close()

    def _step(self, call: Callable[[], object], what: str) -> None:
        try:
            _patiently(call, what)
        except KafkaException as error:
            self.producer.poll(0)
            self.check()
            cause = error.args[0]
            kind = Fenced if cause.code() in FENCED else NotWritten
            raise kind(f"{what} of {self.transactional_id} has failed: {cause.str()}") from error


def writer_for(options: RunOptions, task: int, internal: frozenset[str]) -> PlainWriter | TransactionalWriter:
    if options.is_exactly_once:
        return TransactionalWriter(options, f"{options.application_id}-{task}", internal)
    return PlainWriter(options, internal)


def _patiently(step: Callable[[], object], what: str) -> None:
    retriable_calls(step, what, timeout_s=PATIENCE_S, log=log)
