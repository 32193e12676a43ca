"""What tests do to clusters before the doctor comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from penstock.advice.doctor import Finding, examine
from penstock.advice.doctor.gathering import Watch
from penstock.client.clients import Connection

WAIT_S = 60.0


def watch(between_s: float, happens: Callable[[], None]) -> Watch:
    """Two looks, between which `happens` is called and so much time is said to have passed."""
    times = iter((0.0, between_s))
    return Watch(between_s, pause=lambda _: happens(), monotonic=lambda: next(times))


def findings(bootstrap: str, *only: str, seen: Watch | None = None) -> list[Finding]:
    return examine(Connection(bootstrap), only=only, look_s=0, watch=seen)


def write(
    bootstrap: str, topic: str, count: int, *, partition: int = 0, size: int = 100, when_ms: int = 0
) -> None:
    failed: list[str] = []

    def delivered(error: object, message: Message) -> None:
        if error is not None:
            failed.append(str(error))

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 0})
    for _ in range(count):
        producer.produce(topic, b"x" * size, partition=partition, timestamp=when_ms, on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0
    assert not failed, failed[0]


@contextmanager
def reading(bootstrap: str, group: str, topic: str) -> Iterator[Consumer]:
    """A member of the group that has its partitions, and commits what it is told to."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "enable.auto.commit": False,
        "log_level": 0,
    }
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        for _ in range(int(WAIT_S / 0.1)):
            consumer.poll(0.1)
            if consumer.assignment():
                break
        assert consumer.assignment(), "the group gave nothing"
        yield consumer
    finally:
        consumer.close()


def commit(consumer: Consumer, topic: str, offset: int, partition: int = 0) -> None:
    consumer.commit(offsets=[TopicPartition(topic, partition, offset)], asynchronous=False)
