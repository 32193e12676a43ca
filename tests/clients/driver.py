"""One small interface over the three client libraries, so that a test says once what each of them must see.

A driver opens producers and consumers of its library. What a library raises for a broker's error code becomes `Refused`
with that code, so that tests compare Kafka's numbers and not three families of exceptions.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

Headers = tuple[tuple[str, bytes | None], ...]

CREATE_TIME = 0
LOG_APPEND_TIME = 1
WAIT_S = 60.0


class Record(NamedTuple):
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int = 0


class Received(NamedTuple):
    record: Record
    topic: str
    offset: int
    timestamp_type: int


class Refused(Exception):
    """The broker answered with an error code that the client gave up on."""

    def __init__(self, code: int) -> None:
        super().__init__(f"error code {code}")
        self.code = code


class NoStartingOffset(Exception):
    """The consumer has no position and its reset policy is not to choose one."""


class Producer(Protocol):
    def send(self, topic: str, record: Record) -> None: ...

    def flush(self, timeout_s: float = WAIT_S) -> list[int]:
        """Waits for the answers; the offsets of what was sent since the last flush, in order. With acks=0 they mean nothing."""
        ...

    def close(self) -> None: ...


class Consumer(Protocol):
    def poll(self, timeout_s: float) -> list[Received]: ...

    def assignment(self) -> set[tuple[str, int]]: ...

    def commit(self) -> None: ...

    def seek(self, topic: str, partition: int, offset: int) -> None: ...

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int:
        """The first offset at or after that time, -1 when there is none."""
        ...

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        """Earliest and latest."""
        ...

    def close(self) -> None: ...


class Driver(Protocol):
    name: str

    def can_send(self, record: Record) -> bool:
        """Not every library sends records without key and value, or headers without a value."""
        ...

    def producer(
        self,
        bootstrap: str,
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
        max_request_bytes: int = 1_000_000,
        batch_bytes: int = 16_384,
    ) -> Producer: ...

    def consumer(
        self,
        bootstrap: str,
        *,
        partitions: Sequence[tuple[str, int]] = (),
        group: str | None = None,
        topics: Sequence[str] = (),
        pattern: str | None = None,
        offset_reset: str = "earliest",
    ) -> Consumer:
        """With `partitions` it is assigned those; with `topics` or a `pattern` it joins the group."""
        ...


def produce(
    driver: Driver,
    bootstrap: str,
    topic: str,
    records: Sequence[Record],
    *,
    codec: str = "none",
    acks: str = "all",
    idempotent: bool = False,
) -> list[int]:
    producer = driver.producer(bootstrap, codec=codec, acks=acks, idempotent=idempotent)
    try:
        for record in records:
            producer.send(topic, record)
        return producer.flush()
    finally:
        producer.close()


def read(consumer: Consumer, count: int, *, timeout_s: float = WAIT_S) -> list[Received]:
    """Polls until `count` records have come; fails with what there is when they do not in time."""
    deadline = time.monotonic() + timeout_s
    received: list[Received] = []
    while len(received) < count:
        assert time.monotonic() < deadline, f"{len(received)} of {count} records within {timeout_s:g} s"
        received += consumer.poll(0.2)
    return received


def consume(
    driver: Driver, bootstrap: str, topic: str, count: int, *, partitions: Sequence[int] = (0,)
) -> list[Received]:
    """The first `count` records of those partitions, from the start."""
    consumer = driver.consumer(bootstrap, partitions=[(topic, index) for index in partitions])
    try:
        return read(consumer, count)
    finally:
        consumer.close()


def wait_until(condition: Callable[[], bool], what: str, *, timeout_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}"
        time.sleep(0.01)
