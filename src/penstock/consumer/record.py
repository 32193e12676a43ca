"""What a handler gets, and what it may return."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from confluent_kafka import Message

Headers = list[tuple[str, bytes | None]]
Place = tuple[str, int]
"""Topic and partition."""


class Record:
    """One record, as the handler sees it. `key` and `value` are the results of the deserializers, or bytes.

    `attempt` counts from 1. `earlier_attempts` are the attempts before a dead letter was replayed.
    """

    __slots__ = (
        "attempt",
        "earlier_attempts",
        "headers",
        "key",
        "offset",
        "partition",
        "raw_key",
        "raw_value",
        "term",
        "timestamp_ms",
        "topic",
        "value",
    )  # fmt: skip

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    key: Any
    value: Any
    headers: Headers

    def __init__(self, message: Message, *, term: int) -> None:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        self.topic = topic
        self.partition = partition
        self.offset = offset
        timestamp_type, timestamp_ms = message.timestamp()
        self.timestamp_ms = timestamp_ms if timestamp_type else None
        self.raw_key: bytes | None = _bytes(message.key())
        self.raw_value: bytes | None = _bytes(message.value())
        self.key = self.raw_key
        self.value = self.raw_value
        headers: Any = message.headers() or ()
        self.headers = [(name, _bytes(value)) for name, value in headers]
        self.attempt = 1
        self.earlier_attempts = 0
        self.term = term  # which assignment of its partition brought it: see membership

    @property
    def place(self) -> Place:
        return self.topic, self.partition

    def __repr__(self) -> str:
        return f"<Record {self.topic}-{self.partition}@{self.offset}>"


class Output(NamedTuple):
    """A record to write. Without `partition` the key decides, as in Kafka's own producer."""

    topic: str
    value: bytes | str | None = None
    key: bytes | str | None = None
    headers: Iterable[tuple[str, bytes | str | None]] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


def as_outputs(returned: object) -> list[Output]:
    """What a handler returned, as a list. TypeError for anything but None, an Output, or several of them."""
    if returned is None:
        return []
    if isinstance(returned, Output):
        return [returned]
    if not isinstance(returned, Iterable) or isinstance(returned, (str, bytes)):
        raise TypeError(
            f"a handler returns None, an Output or several of them, not {type(returned).__name__}"
        )
    outputs = list(returned)
    for each in outputs:
        if not isinstance(each, Output):
            raise TypeError(
                f"a handler returns None, an Output or several of them, not {type(each).__name__}"
            )
    return outputs


def _bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data
