"""Rows to a cluster through librdkafka: in order, within bounds, and nothing unacknowledged is forgotten."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.client.patience import Patience
from penstock.spark.failures import NotWritten
from penstock.spark.reading.topics import why_unreachable
from penstock.spark.writing.rows import Chunk

log = logging.getLogger("penstock.spark")

FIRST_CONTACT_TIMEOUT_S = 4.0
ABSENCE_S = (
    2.0  # of a broker that is just being started again; Spark's attempts and ours make many times that of it
)
QUEUE_MAX_MESSAGES = 100_000
QUEUE_MAX_BYTES = 64 * 1024 * 1024
PATIENCE_S = 150.0  # longer than a message may take, so that what is not acknowledged by then has failed
REPORTS_S = 2.0  # for reports of rows, once their transaction has failed

# How a client comes back to a broker that was away. librdkafka 2.16 loses requests that are on their way when it begins
# anew with its bootstrap list; what fails here is done again by a new client, which reads that list in any case.
RECOVERY_SETTINGS: dict[str, Any] = {"metadata.recovery.strategy": "none", "reconnect.backoff.max.ms": 1000}
PRODUCER_SETTINGS: dict[str, Any] = {
    **RECOVERY_SETTINGS,
    "enable.idempotence": True,
    "partitioner": "murmur2_random",  # the Java client's
    "linger.ms": 5,
    "batch.size": 1_000_000,
    "message.timeout.ms": 120_000,
    "message.max.bytes": 1_000_000_000,  # the topic decides what is too large
    "delivery.report.only.error": True,
    # A connection to every broker at once, not to the next when one is missed: a transaction begins 50 ms earlier.
    "enable.sparse.connections": False,
    # Twice the bounds that are kept below: librdkafka's own are never met, where it would take a later row before an
    # earlier one.
    "queue.buffering.max.messages": 2 * QUEUE_MAX_MESSAGES,
    "queue.buffering.max.kbytes": 2_000_000,
}


class Delivery:
    """Hands chunks to a producer and learns what became of them."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._failed: tuple[str, KafkaError] | None = None
        self._sent: deque[tuple[int, int]] = deque()  # messages and bytes of chunks, oldest first
        self._sent_messages = 0
        self._sent_bytes = 0
        self.rows = 0

    def send(self, chunk: Chunk) -> None:
        self._wait_for_room(len(chunk.messages), chunk.size_bytes)
        if chunk.is_plain:
            self._send_together(chunk)
        else:
            self._send_one_by_one(chunk)
        self._sent.append((len(chunk.messages), chunk.size_bytes))
        self._sent_messages += len(chunk.messages)
        self._sent_bytes += chunk.size_bytes
        self.rows += len(chunk.messages)
        self._producer.poll(0)
        self.check()

    def flush(self) -> None:
        """Returns when everything is acknowledged; NotWritten when something will never be."""
        deadline_s = time.monotonic() + PATIENCE_S
        while self._producer.flush(1.0):
            self.check()
            if time.monotonic() > deadline_s:
                raise NotWritten("the cluster does not acknowledge what is written to it")
        self.check()

    def check(self) -> None:
        if self._failed is not None:
            topic, error = self._failed
            raise NotWritten(f"the topic '{topic}' does not take a row: {error.str()}") from KafkaException(
                error
            )

    def check_reports(self) -> None:
        """As `check`, once the transaction has failed: the report of the row to blame may still be in the client's queue."""
        deadline_s = time.monotonic() + REPORTS_S
        while self._failed is None and len(self._producer) and time.monotonic() < deadline_s:
            self._producer.poll(0.05)
        self.check()

    @property
    def failure(self) -> KafkaError | None:
        return None if self._failed is None else self._failed[1]

    def _send_together(self, chunk: Chunk) -> None:
        place: dict[str, Any] = {} if chunk.partition is None else {"partition": chunk.partition}
        taken = self._producer.produce_batch(chunk.topic, chunk.messages, on_delivery=self.note, **place)
        if taken < len(chunk.messages):
            refused = next(message["_error"] for message in chunk.messages if "_error" in message)
            self._fail(chunk.topic, refused)

    def _send_one_by_one(self, chunk: Chunk) -> None:
        place: dict[str, Any] = {} if chunk.partition is None else {"partition": chunk.partition}
        for message in chunk.messages:
            try:
                self._producer.produce(chunk.topic, on_delivery=self.note, **{**place, **message})
            except BufferError as error:
                raise NotWritten(f"too much is waiting for the cluster: {error}") from error
            except KafkaException as error:
                self._fail(chunk.topic, error.args[0])
                return

    def _wait_for_room(self, messages: int, size_bytes: int) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            waiting = len(self._producer)
            while self._sent and self._sent_messages - self._sent[0][0] >= waiting:
                done = self._sent.popleft()
                self._sent_messages -= done[0]
                self._sent_bytes -= done[1]
            if not waiting or (
                waiting + messages <= QUEUE_MAX_MESSAGES and self._sent_bytes + size_bytes <= QUEUE_MAX_BYTES
            ):
                return
            if time.monotonic() > deadline_s:
                raise NotWritten("the cluster does not acknowledge what is written to it")
            self._producer.poll(0.005)
            self.check()

    def note(self, error: KafkaError | None, message: Any) -> None:
        """What became of a message, told by librdkafka."""
        if error is not None:
            self._fail(message.topic(), error)

    def _fail(self, topic: str, error: KafkaError) -> None:
        if self._failed is None:
            self._failed = (topic, error)


def make_producer(settings: Mapping[str, Any]) -> Producer:
    """Reached the cluster, or NotWritten with its address: librdkafka itself would go on trying for minutes."""
    patience = Patience(ABSENCE_S)
    while (complaint := why_unreachable(settings)) is not None:
        if not patience.pause():
            raise NotWritten(complaint)
    merged = {**PRODUCER_SETTINGS, "client.id": "penstock-spark", **settings}
    if "reconnect.backoff.ms" in settings and "reconnect.backoff.max.ms" not in settings:
        del merged["reconnect.backoff.max.ms"]  # ours may be less, which librdkafka refuses
    producer = Producer(merged, logger=log.getChild("client"))
    try:
        producer.list_topics(timeout=FIRST_CONTACT_TIMEOUT_S)
    except KafkaException as error:
        raise NotWritten(
            f"cannot reach a broker at {settings['bootstrap.servers']} (option 'kafka.bootstrap.servers'): "
            f"{error.args[0].str()}"
        ) from error
    return producer


def close_producer(producer: Producer) -> None:
    """Without what could not be written: that was told, or is not meant to be written any more."""
    try:
        producer.purge()
        producer.flush(0.1)
    except KafkaException as error:
        log.debug("%s", error.args[0].str())


# Spark's Python workers live on between tasks, and so does the connection to the cluster.
_producers: dict[tuple[tuple[str, str], ...], Producer] = {}


def shared_producer(settings: Mapping[str, str]) -> Producer:
    identity = tuple(sorted(settings.items()))
    if identity not in _producers:
        _producers[identity] = make_producer(settings)
    return _producers[identity]


def forget_producer(settings: Mapping[str, str]) -> None:
    """After a failure: what is still in its queue must not be written by the next task."""
    producer = _producers.pop(tuple(sorted(settings.items())), None)
    if producer is not None:
        close_producer(producer)
