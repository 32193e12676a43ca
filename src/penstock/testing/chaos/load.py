"""Producers and consumers as programs have them: confluent-kafka, idempotent, a consumer group that commits by itself."""

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from penstock.testing.chaos.ledger import Ledger, Wrong, encode

FLUSH_TIMEOUT_S = 180.0
READ_TIMEOUT_S = 300.0
QUEUED_RECORDS = 5_000
# A client that backs off for ten seconds after each fault would spend the run asleep.
RECONNECT = {
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "retry.backoff.ms": 50,
    "log_level": 0,
}


class Load:
    """All clients of a run, in threads of their own."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        ledger: Ledger,
        *,
        partition_count: int,
        producer_count: int,
        consumer_count: int,
        rate: int,
        record_bytes: int,
        acks: str,
    ) -> None:
        self._ends = threading.Event()
        self._consumers_end = threading.Event()
        numbers = itertools.count(1)
        self._producers = [
            _Producing(
                _producer_config(bootstrap, acks),
                topic,
                ledger,
                numbers,
                self._ends,
                partition_count=partition_count,
                rate=rate / producer_count,
                record_bytes=record_bytes,
            )
            for _ in range(producer_count)
        ]
        self._consumers = [
            _Consuming(bootstrap, topic, ledger, self._consumers_end) for _ in range(consumer_count)
        ]

    def start(self) -> None:
        for each in (*self._consumers, *self._producers):
            each.start()

    def finish_producing(self) -> None:
        """Returns when every record is acknowledged, or the ledger has been told that some never are."""
        self._ends.set()
        for producer in self._producers:
            producer.join(2 * FLUSH_TIMEOUT_S)

    def finish_consuming(self) -> None:
        self._consumers_end.set()
        for consumer in self._consumers:
            consumer.join(FLUSH_TIMEOUT_S)


def _producer_config(bootstrap: str, acks: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "acks": acks,
        "enable.idempotence": acks == "all",
        "delivery.timeout.ms": 0,  # no end: what is not acknowledged in the end is counted
        "linger.ms": 2,
        "queue.buffering.max.messages": QUEUED_RECORDS,
        **RECONNECT,
    }


class _Producing(threading.Thread):
    def __init__(
        self,
        config: dict[str, Any],
        topic: str,
        ledger: Ledger,
        numbers: Iterator[int],
        ends: threading.Event,
        *,
        partition_count: int,
        rate: float,
        record_bytes: int,
    ) -> None:
        super().__init__(daemon=True, name="producer")
        self._config, self._topic, self._ledger = config, topic, ledger
        self._numbers, self._ends = numbers, ends
        self._partition_count, self._rate = partition_count, rate
        self._padding = bytes(max(0, record_bytes - len(encode(0, 0))))

    def run(self) -> None:
        while not self._ends.is_set():
            number = next(self._numbers)
            try:
                self._produce_as(number)
            except KafkaException as error:
                self._ledger.complain(Wrong.GAVE_UP, f"producer {number}: {error}")

    def _produce_as(self, number: int) -> None:
        producer = Producer(self._config)
        began, sent = time.monotonic(), 0
        while not self._ends.is_set():
            due = int((time.monotonic() - began) * self._rate)
            while sent < due and self._send(producer, number, sent % self._partition_count):
                sent += 1
            if sent < due:  # the queue is full: what is overdue is not made up for
                began = time.monotonic() - sent / self._rate
            producer.poll(0.005)
        if left := producer.flush(FLUSH_TIMEOUT_S):
            self._ledger.complain(Wrong.STUCK, f"producer {number}: {left} records", count=left)

    def _send(self, producer: Producer, number: int, partition: int) -> bool:
        sequence = self._ledger.next_sequence(number, partition)

        def delivered(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            if error is not None:
                self._ledger.complain(Wrong.REFUSED, f"producer {number}, record {sequence}: {error}")
            elif offset is not None:
                self._ledger.acknowledged(number, partition, sequence=sequence, offset=offset)

        value = encode(number, sequence, padding=self._padding)
        try:
            producer.produce(self._topic, value, partition=partition, on_delivery=delivered)
        except BufferError:
            return False
        self._ledger.sent(number, partition)
        return True


class _Consuming(threading.Thread):
    def __init__(self, bootstrap: str, topic: str, ledger: Ledger, ends: threading.Event) -> None:
        super().__init__(daemon=True, name="consumer")
        self._topic, self._ledger, self._ends = topic, ledger, ends
        self._config = {
            "bootstrap.servers": bootstrap,
            "group.id": "chaos",
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 1000,
            "session.timeout.ms": 10_000,
            "check.crcs": True,
            **RECONNECT,
        }

    def run(self) -> None:
        consumer = Consumer(self._config)
        consumer.subscribe([self._topic])
        try:
            while not self._ends.is_set():
                for message in consumer.consume(1000, timeout=0.2):
                    partition, offset, value = message.partition(), message.offset(), message.value()
                    if message.error() is None and value and partition is not None and offset is not None:
                        self._ledger.consumed(partition, offset, value)
        except KafkaException as error:
            self._ledger.complain(Wrong.GAVE_UP, f"a consumer: {error}")
        finally:
            consumer.close()


def end_offsets(bootstrap: str, topic: str, partition_count: int) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "chaos-check", **RECONNECT})
    try:
        where = [TopicPartition(topic, partition) for partition in range(partition_count)]
        ends = [consumer.get_watermark_offsets(each, timeout=READ_TIMEOUT_S)[1] for each in where]
        return dict(enumerate(ends))
    finally:
        consumer.close()


def read_back(bootstrap: str, topic: str, partition: int) -> Iterator[tuple[int, bytes]]:
    """Offsets and values of a whole partition, from its start to the end that it has now."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "chaos-check", "check.crcs": True, **RECONNECT}
    )
    deadline = time.monotonic() + READ_TIMEOUT_S
    try:
        where = TopicPartition(topic, partition)
        start, end = consumer.get_watermark_offsets(where, timeout=READ_TIMEOUT_S)
        consumer.assign([TopicPartition(topic, partition, start)])
        position = start
        while position < end:
            for message in consumer.consume(10_000, timeout=0.5):
                offset, value = message.offset(), message.value()
                if message.error() is None and offset is not None and value is not None:
                    yield offset, value
                    position = offset + 1
            if time.monotonic() > deadline:
                raise TimeoutError(f"partition {partition} was read up to {position} of {end}, then no more")
    finally:
        consumer.close()
