"""Producing, reading back and making topics with a real client, and with deadlines."""

import time
from collections.abc import Callable, Iterable

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TIMEOUT_S = 60.0


def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def create_topic(
    bootstrap: str, name: str, *, partitions: int = 1, config: dict[str, str] | None = None
) -> None:
    asking = admin(bootstrap)  # kept until the answer is there: its end would end the request
    asking.create_topics([NewTopic(name, partitions, 1, config=config or {})])[name].result(TIMEOUT_S)


def delete_topic(bootstrap: str, name: str) -> None:
    asking = admin(bootstrap)
    asking.delete_topics([name])[name].result(TIMEOUT_S)


def topics_of(bootstrap: str) -> dict[str, int]:
    """Topic names and their numbers of partitions."""
    listed = admin(bootstrap).list_topics(timeout=TIMEOUT_S).topics
    return {name: len(topic.partitions) for name, topic in listed.items()}


def produce(bootstrap: str, topic: str, values: Iterable[bytes], *, partition: int = 0) -> None:
    """All of them, each acknowledged."""
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer(
        {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "log_level": 0}
    )
    for value in values:
        producer.produce(topic, value, partition=partition, on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    assert not failed, failed


def read_all(bootstrap: str, topic: str, *, partition: int = 0) -> list[bytes]:
    """Every value of a partition from its start to its end, having checked that the offsets have no gap."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,  # else its end waits for a coordinator
            "log_level": 0,
            "check.crcs": True,
        }
    )
    try:
        start, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT_S)
        consumer.assign([TopicPartition(topic, partition, start)])
        values: list[bytes] = []
        deadline = time.monotonic() + TIMEOUT_S
        while len(values) < end - start:
            assert time.monotonic() < deadline, f"{len(values)} of {end - start} records came"
            for message in consumer.consume(10_000, timeout=0.2):
                assert message.error() is None, message.error()
                assert message.offset() == start + len(values)
                values.append(message.value() or b"")
        return values
    finally:
        consumer.close()


def wait_until(condition: Callable[[], bool], *, what: str, timeout_s: float = TIMEOUT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come within {timeout_s:g} s"
        time.sleep(0.01)
