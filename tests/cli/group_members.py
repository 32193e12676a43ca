"""Members of groups, topics with records, and committed offsets, made with librdkafka as any client would."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

DEADLINE_S = 60.0
QUIET = {"log_level": "0"}
STARTING = (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR)


def create_topic(bootstrap: str, name: str, *, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result(timeout=DEADLINE_S)


def produce(bootstrap: str, topic: str, counts: list[int]) -> None:
    """So many records in each partition."""
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
    for partition, count in enumerate(counts):
        for number in range(count):
            producer.produce(topic, f"{partition}-{number}".encode(), partition=partition)
    assert producer.flush(DEADLINE_S) == 0


def commit(bootstrap: str, group: str, topic: str, offsets: dict[int, int]) -> None:
    """As a consumer does that is in no group; a coordinator that is just being made is waited for."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **QUIET})
    wanted = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        try:
            consumer.commit(offsets=wanted, asynchronous=False)
            break
        except KafkaException as error:
            if error.args[0].code() not in STARTING or time.monotonic() > deadline_s:
                raise
            time.sleep(0.1)
    consumer.close()


@contextmanager
def member(bootstrap: str, group: str, topics: list[str], **settings: str) -> Iterator[Consumer]:
    """One member, with partitions assigned; it goes on sending heartbeats by itself."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    base = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", **QUIET}
    consumer = Consumer({**base, **named})
    consumer.subscribe(topics)
    deadline_s = time.monotonic() + DEADLINE_S
    while not consumer.assignment():
        assert time.monotonic() < deadline_s, f"{group} got no partitions"
        consumer.poll(0.05)
    yield consumer
    consumer.close()
