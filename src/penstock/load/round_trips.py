"""How long a record takes from a producer to a consumer, one record after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from penstock.client.clients import Connection, metadata, translated
from penstock.client.errors import UserError
from penstock.client.record_sender import send
from penstock.load.clients import POLL_S, ClientErrors, reason
from penstock.load.measuring import Latencies, RandomLetters

NULL_SIZE = -1
PROGRESS_EVERY_RECORDS = 1000
POLL_TIMEOUT_MS = 60_000
QUICK_PRODUCER = {"linger.ms": "0", "socket.nagle.disable": "true"}
QUICK_CONSUMER = {
    "group.id": "penstock-e2e-latency",
    "enable.auto.commit": "false",
    "socket.nagle.disable": "true",
}


class RoundTripPlan(NamedTuple):
    topic: str
    records: int
    acks: str
    size: int
    key_size: int
    headers: int
    header_key_size: int
    header_size: int


class _Record(NamedTuple):
    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes | None]]


class RoundTrips:
    """One record after the other: sent, acknowledged, and read again."""

    def __init__(
        self,
        cluster: Connection,
        plan: RoundTripPlan,
        partitions: list[int],
        *,
        say: Callable[[str], object],
        complain: Callable[[str], object],
        is_over: Callable[[], bool],
    ) -> None:
        self._plan = plan
        self._letters = RandomLetters()
        self._say = say
        self._is_over = is_over
        self._errors = ClientErrors(complain)
        self._failure: str | None = None
        acked = Connection(cluster.bootstrap, {**cluster.properties, "acks": plan.acks})
        self._producer = acked.producer(QUICK_PRODUCER, error_cb=self._errors, on_delivery=self._on_delivery)
        self._consumer = cluster.consumer(QUICK_CONSUMER, error_cb=self._errors)
        self._read_from_the_end(partitions)

    def _read_from_the_end(self, partitions: list[int]) -> None:
        """By number, so that no record is sent before the consumer knows where it begins."""
        from confluent_kafka import KafkaException, TopicPartition

        topic = self._plan.topic
        metadata(self._consumer, topic)
        try:
            ends = [
                self._consumer.get_watermark_offsets(TopicPartition(topic, number), POLL_TIMEOUT_MS / 1000)[1]
                for number in partitions
            ]
        except KafkaException as error:
            raise translated(error) from None
        self._consumer.assign(
            [TopicPartition(topic, number, end) for number, end in zip(partitions, ends, strict=True)]
        )

    def run(self) -> None:
        latencies = Latencies(self._plan.records)
        for number in range(self._plan.records):
            latency_ms = self._exchange(self._record())
            if latency_ms is None:
                break
            latencies.add(latency_ms)
            if number % PROGRESS_EVERY_RECORDS == 0:
                self._say(f"{number}\t{latency_ms}")
        self._consumer.close()
        half, nearly_all, all_but_few = latencies.percentiles_ms(0.5, 0.99, 0.999)
        self._say(f"Avg latency: {latencies.average_ms:.4f} ms")
        self._say(f"Percentiles: 50th = {half}, 99th = {nearly_all}, 99.9th = {all_but_few}")

    def _record(self) -> _Record:
        plan, letters = self._plan, self._letters
        return _Record(
            key=letters.take(plan.key_size) if plan.key_size else None,
            value=letters.take(plan.size),
            headers=[
                (
                    letters.take(plan.header_key_size).decode(),
                    None if plan.header_size == NULL_SIZE else letters.take(plan.header_size),
                )
                for _ in range(plan.headers)
            ],
        )

    def _exchange(self, record: _Record) -> float | None:
        """Milliseconds until the record is read; None after a signal."""
        from confluent_kafka import KafkaException

        started_s = time.perf_counter()
        try:
            send(
                self._producer,
                self._plan.topic,
                value=record.value,
                key=record.key,
                headers=record.headers or None,
            )
        except KafkaException as error:
            raise translated(error) from None
        read = self._read()
        elapsed_ms = (time.perf_counter() - started_s) * 1000
        if read is None:
            return None
        _compare(record, read)
        return elapsed_ms

    def _read(self) -> Any:
        """The next record, once the one that was sent is acknowledged; None after a signal."""
        deadline_s = time.monotonic() + POLL_TIMEOUT_MS / 1000
        while time.monotonic() < deadline_s:
            if self._is_over():
                return None
            self._errors.check()
            if self._producer.flush(POLL_S):
                continue
            if self._failure is not None:
                raise UserError(self._failure)
            message = self._consumer.poll(POLL_S)
            if message is None:
                continue
            if message.error() is None:
                return message
            self._errors(message.error())
        raise UserError(f"poll() timed out before finding a result (timeout:[{POLL_TIMEOUT_MS}ms])")

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failure = reason(error)


def _compare(sent: _Record, read: Any) -> None:
    """Another one's record in between would make every number after it wrong."""
    for name, ours, theirs in (
        ("value", sent.value, read.value() or b""),
        ("key", sent.key, read.key()),
        ("headers", sent.headers, read.headers() or []),
    ):
        if ours != theirs:
            raise UserError(
                f"The message {name} read [{theirs!r}] did not match the message {name} sent [{ours!r}]"
            )
