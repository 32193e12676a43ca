"""Records into topics and out of them, for plans that run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

DEADLINE_S = 60


def until(
    condition: Callable[[], Any], what: str = "it did not come to that", deadline_s: float = DEADLINE_S
) -> Any:
    ends_s = time.monotonic() + deadline_s
    while not (found := condition()):
        assert time.monotonic() < ends_s, what
        time.sleep(0.02)
    return found


def put(bootstrap: str, topic: str, records: Iterable[tuple[Any, Any, int]], partition: int = -1) -> None:
    """(key, value, timestamp), as JSON; a value of bytes as it is."""
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random", "linger.ms": 5})
    for key, value, timestamp in records:
        while True:
            try:
                producer.produce(topic, _bytes(value), _bytes(key), partition, timestamp=timestamp)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(30) == 0


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return json.dumps(value).encode()


class Reader:
    """What is in a topic, as committed readers see it, in the order of each partition."""

    def __init__(self, bootstrap: str, topic: str, partitions: int = 1) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        self._consumer.assign([TopicPartition(topic, each, 0) for each in range(partitions)])
        self.records: list[tuple[Any, Any, int]] = []

    def look(self) -> list[tuple[Any, Any, int]]:
        for message in self._consumer.consume(10_000, 0.05):
            assert message.error() is None, message.error()
            self.records.append((_value(message.key()), _value(message.value()), message.timestamp()[1]))
        return self.records

    def wait_for(self, count: int, deadline_s: float = DEADLINE_S) -> list[tuple[Any, Any, int]]:
        until(lambda: len(self.look()) >= count, f"{count} records did not come", deadline_s)
        return self.records

    def wait_until(
        self, is_there: Callable[[list[tuple[Any, Any, int]]], bool]
    ) -> list[tuple[Any, Any, int]]:
        try:
            until(lambda: is_there(self.look()))
        except AssertionError:
            raise AssertionError(f"there are {len(self.records)}: … {self.records[-5:]}") from None
        return self.records

    def close(self) -> None:
        self._consumer.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _value(data: bytes | None) -> Any:
    if data is not None and data[-8:-5] == b"\0\0\0":  # the start of a window
        data = data[:-8]
    return None if data is None else json.loads(data)
