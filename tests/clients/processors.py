"""What the tests of penstock.consumer share: writing and reading topics, and processors on threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from penstock.consumer import Counters, Processor

DEADLINE_S = 60.0
# As short as Kafka allows: a killed member holds its partitions no longer than this.
SESSION = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}


def wait_until(
    condition: Callable[[], Any],
    what: str,
    timeout_s: float = DEADLINE_S,
    *,
    details: Callable[[], str] = str,
) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"never came: {what}\n{details()}"
        time.sleep(0.01)


def write(bootstrap: str, topic: str, values: list[Any], **extra: Any) -> None:
    """Values, or (key, value) pairs."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for value in values:
        key, data = value if isinstance(value, tuple) else (None, value)
        producer.produce(topic, key=key, value=data, **extra)
    assert producer.flush(DEADLINE_S) == 0


def read_all(bootstrap: str, topic: str, *, isolation: str = "read_committed") -> list[Message]:
    """Every record that is there now, partition by partition."""
    settings = {
        "bootstrap.servers": bootstrap, "group.id": "reads-all", "enable.auto.commit": False,
        "auto.offset.reset": "earliest", "enable.partition.eof": True, "isolation.level": isolation,
    }  # fmt: skip
    consumer = Consumer(settings)
    try:
        partitions = consumer.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        unfinished = set(partitions)
        found: list[Message] = []
        deadline_s = time.monotonic() + DEADLINE_S
        while unfinished:
            assert time.monotonic() < deadline_s, f"partitions {unfinished} of {topic} have no end"
            message = consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is None:
                found.append(message)
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                unfinished.discard(message.partition())
        return sorted(found, key=lambda one: (one.partition() or 0, one.offset() or 0))
    finally:
        consumer.close()


def values(messages: list[Message]) -> list[bytes | None]:
    return [message.value() for message in messages]  # type: ignore[misc]


def headers(message: Message) -> dict[str, str]:
    return {name: (value or b"").decode(errors="replace") for name, value in message.headers() or ()}  # type: ignore[union-attr]


def committed(bootstrap: str, group: str, topic: str, partition: int = 0) -> int:
    """-1001 where there is none."""
    return committed_of_all(bootstrap, group, topic, [partition])[0]


def committed_of_all(
    bootstrap: str, group: str, topic: str, partitions: Iterable[int], *, isolation: str = "read_committed"
) -> list[int]:
    """`read_committed` also waits for transactions that may change them, again and again where one follows the other."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "isolation.level": isolation})
    try:
        asked = [TopicPartition(topic, partition) for partition in partitions]
        return [found.offset for found in consumer.committed(asked, timeout=DEADLINE_S)]
    finally:
        consumer.close()


def process_all(bootstrap: str, topic: str, handler: Callable[[Any], object], **options: Any) -> Counters:
    """Handles what is there and ends."""
    options.setdefault("group", f"group-of-{topic}")
    return Processor(topic, handler=handler, bootstrap=bootstrap, stop_at_end=True, **options).run()


@contextmanager
def running(
    bootstrap: str, topic: str, handler: Callable[[Any], object], **options: Any
) -> Iterator[Processor]:
    """A processor on a thread of its own; what it raises comes out at the end."""
    options.setdefault("group", f"group-of-{topic}")
    processor = Processor(topic, handler=handler, bootstrap=bootstrap, **options)
    raised: list[BaseException] = []

    def run() -> None:
        try:
            processor.run()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name=f"processor-{id(processor)}")
    thread.start()
    try:
        yield processor
    finally:
        processor.stop()
        thread.join(DEADLINE_S)
        assert not thread.is_alive(), "the processor does not stop"
    if raised:
        raise raised[0]


def is_running(processor: Processor) -> bool:
    return any(thread.name == f"processor-{id(processor)}" for thread in threading.enumerate())
