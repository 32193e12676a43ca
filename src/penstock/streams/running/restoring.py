"""State as it was at the last commit, from changelogs and, for stores without one, from the topic that they are made of."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from penstock.client.librdkafka_calls import RETRIABLE_CODES, retriable_calls
from penstock.streams.kernel.records import InputRecord
from penstock.streams.running.changelogs import KeptStore
from penstock.streams.running.options import RunOptions
from penstock.streams.running.settings import CONSUMER_SETTINGS
from penstock.streams.running.writing import FIRST_MOMENT

log = logging.getLogger("penstock.streams")

Place = tuple[str, int]
AT_ONCE: Final = 5000
WAIT_S: Final = 0.2
STUCK_S: Final = 120.0
BOUNDS_TIMEOUT_S: Final = 30.0


class NotRestored(RuntimeError):
    """A changelog cannot be read."""


class Restoring:
    """`progress` is called with the number of records now and then, and may raise to end it."""

    def __init__(self, options: RunOptions, progress: Callable[[int], None]) -> None:
        self._options, self._progress = options, progress

    def changelogs(self, stores: Mapping[Place, KeptStore]) -> None:
        """To the ends of these partitions."""
        for message in self._read(dict.fromkeys(stores)):
            key = message.key()
            if isinstance(key, bytes):
                stores[_place(message)].restore(key, message.value())

    def whole(self, take: Mapping[Place, Callable[[InputRecord], None]]) -> dict[Place, int]:
        """Every record of these partitions; where they end."""
        ends = dict.fromkeys(take, 0)
        for message in self._read(dict.fromkeys(take)):
            place = _place(message)
            take[place](as_input(message))
            ends[place] = (message.offset() or 0) + 1
        return ends

    def replay(self, ends: Mapping[Place, int], take: Mapping[Place, Callable[[InputRecord], None]]) -> None:
        """Records before these offsets, once more."""
        wanted: dict[Place, int | None] = {place: end for place, end in ends.items() if end > 0}
        for message in self._read(wanted):
            take[_place(message)](as_input(message))

    def _read(self, ends: Mapping[Place, int | None]) -> Iterator[Message]:
        """An end None: wherever the partition ends."""
        if not ends:
            return
        options = self._options
        consumer = Consumer(
            {
                **CONSUMER_SETTINGS,
                **options.for_consumer(),
                "group.id": options.application_id,
                "auto.offset.reset": "earliest",
            },
            logger=log.getChild("client"),
        )
        try:
            # Offsets that are named are begun at once; for "the beginning" the client would wait half a second and more.
            found = {place: bounds_of(consumer, place) for place in ends}
            begun = {place: ends[place] for place, (first, end) in found.items() if first < end}
            if begun:
                consumer.assign([TopicPartition(*place, found[place][0]) for place in begun])
                yield from self._until(consumer, begun)
        finally:
            consumer.close()

    def _until(self, consumer: Consumer, ends: Mapping[Place, int | None]) -> Iterator[Message]:
        open_places = set(ends)
        count = 0
        deadline_s = time.monotonic() + STUCK_S
        while open_places:
            messages = consumer.consume(AT_ONCE, WAIT_S)
            for message in messages:
                place = _place(message)
                error = message.error()
                if error is not None:
                    if error.code() == KafkaError._PARTITION_EOF:
                        open_places.discard(place)
                    elif error.fatal() or error.code() not in RETRIABLE_CODES:
                        raise NotRestored(f"{place[0]} cannot be read: {error.str()}") from KafkaException(
                            error
                        )
                    continue
                if place not in open_places:
                    continue
                end = ends[place]
                if end is not None and (message.offset() or 0) >= end:
                    open_places.discard(place)
                    continue
                count += 1
                yield message
            if messages:
                deadline_s = time.monotonic() + STUCK_S
            elif time.monotonic() > deadline_s:
                named = ", ".join(f"{topic}-{number}" for topic, number in sorted(open_places)[:3])
                raise NotRestored(f"the cluster does not answer about {named}")
            self._progress(count)


def bounds_of(consumer: Consumer, place: Place) -> tuple[int, int]:
    """The first offset of a partition, and the one behind its last record."""
    found = retriable_calls(
        lambda: consumer.get_watermark_offsets(TopicPartition(*place), BOUNDS_TIMEOUT_S),
        "the bounds of a partition",
        timeout_s=BOUNDS_TIMEOUT_S,
        log=log,
        codes=RETRIABLE_CODES,
    )
    if found is None:
        raise NotRestored(f"the cluster does not say where {place[0]}-{place[1]} begins")
    return int(found[0]), int(found[1])


def as_input(message: Any) -> InputRecord:
    headers, time_ms = message.headers(), message.timestamp()[1]
    if headers:
        headers = tuple(headers)
        if headers[-1] == FIRST_MOMENT:
            headers, time_ms = headers[:-1], 0
    return InputRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        time_ms,
        message.key(),
        message.value(),
        headers or (),
    )


def _place(message: Any) -> Place:
    return message.topic(), message.partition()
