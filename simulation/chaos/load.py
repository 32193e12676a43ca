"""Producers and consumers as programs have them: confluent-kafka, idempotent, a consumer group that commits by itself."""

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from simulation.chaos.ledger import Ledger, Wrong, encode
from simulation.chaos.reading import Reading

FLUSH_TIMEOUT_S = 180.0
READ_TIMEOUT_S = 300.0
START_TIMEOUT_S = 60.0
GROUP = "chaos"
# Of each producer and partition, unanswered: one queue for all would soon hold records for a partition without a leader only.
QUEUED_RECORDS = 1_500
# A client that backs off for ten seconds after each fault would spend the run asleep.
RECONNECT = {
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "retry.backoff.ms": 50,
    "log_level": 0,
}
# What a consumer meets while brokers come and go, and gets over by itself. Anything else is wrong: above all that its position
# is not there (any more), with which it would be thrown back if auto.offset.reset were not "error".
PASSING_ERRORS = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REQUEST_TIMED_OUT,
    }
)


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
        rate: float,
        record_bytes: int,
        acks: str,
    ) -> None:
        self._bootstrap, self._topic, self._ledger = bootstrap, topic, ledger
        self._partition_count = partition_count
        self._ends = threading.Event()
        self._consumers_end = threading.Event()
        numbers = itertools.count(1)
        self._producers = [
            _Producing(
                _producer_config(bootstrap, acks, partition_count),
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
            _Consuming(bootstrap, topic, ledger, self._consumers_end, number=number)
            for number in range(1, consumer_count + 1)
        ]

    def start(self) -> None:
        commit_the_start(self._bootstrap, self._topic, self._partition_count)
        for each in (*self._consumers, *self._producers):
            each.start()

    def finish_producing(self) -> None:
        """Returns when every record is acknowledged or refused, or the ledger has been told that some never are."""
        self._ends.set()
        for producer in self._producers:
            producer.join(2 * FLUSH_TIMEOUT_S)
        self._ledger.check_answers()

    def finish_consuming(self) -> None:
        self._consumers_end.set()
        for consumer in self._consumers:
            consumer.join(FLUSH_TIMEOUT_S)


def _producer_config(bootstrap: str, acks: str, partition_count: int) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "acks": acks,
        "enable.idempotence": acks == "all",
        "delivery.timeout.ms": 0,  # no end: what is not acknowledged in the end is counted
        "linger.ms": 2,
        "queue.buffering.max.messages": 2 * QUEUED_RECORDS * partition_count,  # so that it is never full
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
        self._unanswered = [0] * partition_count
        self._turn = 0
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
        self._unanswered = [0] * self._partition_count
        began, sent = time.monotonic(), 0
        while not self._ends.is_set():
            due = int((time.monotonic() - began) * self._rate)
            sent += self._send_some(producer, number, due - sent)
            if sent < due:  # the queues are full: what is overdue is not made up for
                began = time.monotonic() - sent / self._rate
            producer.poll(0.005)
        producer.flush(FLUSH_TIMEOUT_S)

    def _send_some(self, producer: Producer, number: int, count: int) -> int:
        """To one partition after the other, as far as their queues have room; returns how many."""
        sent = full = 0
        while sent < count and full < self._partition_count:
            partition = self._turn
            self._turn = (partition + 1) % self._partition_count
            if self._unanswered[partition] < QUEUED_RECORDS:
                self._send(producer, number, partition)
                sent, full = sent + 1, 0
            else:
                full += 1
        return sent

    def _send(self, producer: Producer, number: int, partition: int) -> None:
        sequence, unanswered = self._ledger.next_sequence(number, partition), self._unanswered

        def delivered(error: KafkaError | None, message: Message) -> None:
            unanswered[partition] -= 1
            note_delivery(self._ledger, number, partition, sequence, error, message)

        value = encode(number, sequence, padding=self._padding)
        producer.produce(self._topic, value, partition=partition, on_delivery=delivered)
        unanswered[partition] += 1
        self._ledger.sent(number, partition)


def note_delivery(
    ledger: Ledger, number: int, partition: int, sequence: int, error: KafkaError | None, message: Message
) -> None:
    if error is not None:
        ledger.refused(number, partition, sequence=sequence, reason=str(error))
    else:
        # None where a batch was there already: the broker says that it has it, not where.
        ledger.acknowledged(number, partition, sequence=sequence, offset=message.offset())


def commit_the_start(bootstrap: str, topic: str, partition_count: int) -> None:
    """Offset 0 of each partition for the consumers' group: so they always have a position, and need none of their own making."""
    consumer = Consumer(_consumer_config(bootstrap))
    starts = [TopicPartition(topic, partition, 0) for partition in range(partition_count)]
    deadline = time.monotonic() + START_TIMEOUT_S
    try:
        while True:
            try:
                consumer.commit(offsets=starts, asynchronous=False)
                return
            except KafkaException as error:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the group's first commit: {error}") from None
                time.sleep(0.1)
    finally:
        consumer.close()


def _consumer_config(bootstrap: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": GROUP,
        "auto.offset.reset": "error",
        "auto.commit.interval.ms": 1000,
        "session.timeout.ms": 10_000,
        "check.crcs": True,
        **RECONNECT,
    }


class _Consuming(threading.Thread):
    def __init__(
        self, bootstrap: str, topic: str, ledger: Ledger, ends: threading.Event, *, number: int
    ) -> None:
        super().__init__(daemon=True, name=f"consumer {number}")
        self._topic, self._ledger, self._ends = topic, ledger, ends
        self._reading = Reading(self.name, ledger)
        self._config = {**_consumer_config(bootstrap), "on_commit": self._committed}

    def run(self) -> None:
        consumer = Consumer(self._config)
        consumer.subscribe(
            [self._topic],
            on_assign=lambda _, given: self._reading.assigned(each.partition for each in given),
            on_revoke=lambda _, taken: self._reading.revoked(each.partition for each in taken),
        )
        try:
            while not self._ends.is_set():
                for message in consumer.consume(1000, timeout=0.2):
                    note_message(self._ledger, self._reading, message)
        except KafkaException as error:
            self._ledger.complain(Wrong.GAVE_UP, f"{self.name}: {error}")
        finally:
            consumer.close()

    def _committed(self, error: KafkaError | None, offsets: list[TopicPartition]) -> None:
        for each in offsets:
            if error is None and each.error is None and each.offset >= 0:
                self._ledger.committed(each.partition, each.offset, by=self.name)


def note_message(ledger: Ledger, reading: Reading, message: Message) -> None:
    error = message.error()
    partition, offset, value = message.partition(), message.offset(), message.value()
    if error is not None:
        if error.code() not in PASSING_ERRORS:
            ledger.complain(
                Wrong.CONSUMER_ERROR, f"partition {partition}, offset {offset}: {error.name()}: {error.str()}"
            )
    elif value and partition is not None and offset is not None:
        reading.consumed(partition, offset, value)


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
