"""A consumer of all partitions of some topics, from the beginning or from where it was, without a group; committed records only.

It tells ends of partitions as well as records. Behind the last committed record of a partition, which may be before records of an
open transaction, there is its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from penstock.client.clients import Connection
from penstock.client.errors import Refused
from penstock.client.librdkafka_calls import RETRIABLE_CODES

MESSAGES_AT_ONCE: Final = 2000
CALL_TIMEOUT_S: Final = 10.0
LOOK_AGAIN_S: Final = 30.0
"""How often it looks for new partitions."""
BUFFER_KIB: Final = 32 << 10

PASSING_CODES: Final = RETRIABLE_CODES | {KafkaError.GROUP_AUTHORIZATION_FAILED}
"""Errors that end no reading. librdkafka looks for the group's coordinator, also for those who never join one."""

Place = tuple[str, int]


class Batch(NamedTuple):
    """In the order of each partition. `ends` are where partitions ended when that was reached."""

    messages: list[Message]
    ends: dict[Place, int]


class Follower:
    """Use from one thread."""

    def __init__(self, connection: Connection, topics: Sequence[str], *, client_id: str) -> None:
        self._topics = list(topics)
        self._places: dict[Place, int] = {}
        self._next_look_s = 0.0
        self._consumer: Consumer = connection.consumer(
            {
                "group.id": client_id,  # needed by the library; it never joins one
                "client.id": client_id,
                "isolation.level": "read_committed",
                "enable.auto.commit": "false",
                "enable.partition.eof": "true",
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": "100",  # behind a transaction's end only an empty answer tells that nothing is left
                "queued.max.messages.kbytes": str(BUFFER_KIB),
            }
        )

    def close(self) -> None:
        self._consumer.close()

    def partitions(self) -> dict[Place, tuple[int, int]]:
        """Where each partition begins and ends now. KafkaException."""
        found = {}
        for place in self._known_places():
            low, high = self._consumer.get_watermark_offsets(TopicPartition(*place), CALL_TIMEOUT_S)
            found[place] = (low, high)
        return found

    def start(self, positions: Mapping[Place, int]) -> None:
        """Partitions without a position are read from the beginning."""
        self._places = {place: positions.get(place, OFFSET_BEGINNING) for place in self._known_places()}
        self._consumer.assign([TopicPartition(*place, offset) for place, offset in self._places.items()])
        self._next_look_s = time.monotonic() + LOOK_AGAIN_S

    def take(self, timeout_s: float) -> Batch:
        """What has come; it waits for the first only. KafkaException when it cannot go on."""
        self._look_for_more()
        batch = Batch([], {})
        first = self._consumer.poll(timeout_s)
        if first is not None:
            for message in (first, *self._consumer.consume(MESSAGES_AT_ONCE, 0)):
                _add(batch, message)
        return batch

    def pause(self, places: Sequence[Place]) -> None:
        self._consumer.pause([TopicPartition(*place) for place in places])

    def resume(self, places: Sequence[Place]) -> None:
        self._consumer.resume([TopicPartition(*place) for place in places])

    def _known_places(self) -> list[Place]:
        places = []
        for topic in self._topics:
            found = self._consumer.list_topics(topic, CALL_TIMEOUT_S).topics.get(topic)
            if found is None or found.error is not None:
                raise KafkaException(
                    found.error if found is not None else KafkaError(KafkaError._UNKNOWN_TOPIC)
                )
            places += [(topic, partition) for partition in sorted(found.partitions)]
        return places

    def _look_for_more(self) -> None:
        now_s = time.monotonic()
        if now_s < self._next_look_s:
            return
        self._next_look_s = now_s + LOOK_AGAIN_S
        try:
            new = [place for place in self._known_places() if place not in self._places]
        except KafkaException as error:
            if error.args[0].code() in RETRIABLE_CODES:
                return
            raise
        if new:
            self._places |= dict.fromkeys(new, OFFSET_BEGINNING)
            self._consumer.incremental_assign([TopicPartition(*place, OFFSET_BEGINNING) for place in new])


def _add(batch: Batch, message: Message) -> None:
    error = message.error()
    if error is None:
        batch.messages.append(message)
    elif error.code() == KafkaError._PARTITION_EOF:
        batch.ends[message.topic() or "", message.partition() or 0] = message.offset() or 0
    elif error.fatal() or error.code() not in PASSING_CODES:
        raise KafkaException(error)


def said(error: KafkaException) -> str:
    """In one line."""
    cause: Any = error.args[0]
    return str(cause.str()) if isinstance(cause, KafkaError) else str(cause)


def patiently(call: Callable[[], Any], *, should_stop: Callable[[], bool], timeout_s: float) -> Any:
    """Made again while the error is one that may go away by itself. Refused."""
    deadline_s = time.monotonic() + timeout_s
    while True:
        try:
            return call()
        except KafkaException as error:
            if error.args[0].code() not in RETRIABLE_CODES or time.monotonic() > deadline_s or should_stop():
                raise Refused(said(error)) from None
            time.sleep(0.1)
