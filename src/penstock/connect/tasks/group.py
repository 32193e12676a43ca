"""A sink's place in its consumer group: what is assigned, what came, what is committed.

A task has the same `group.instance.id` whenever it runs: one that died takes its partitions up again at once, and nobody else
gets them meanwhile. A task that ends in order leaves the group, so that the others have its partitions at once.

librdkafka is told where each partition begins, since it may fail to ask for that itself (its issue 5586), and since a sink may
say it. Every assignment of a partition is a term. What came in an earlier term is not ours any more; it comes again, here or
elsewhere.
"""

from __future__ import annotations

import itertools
import logging
import re
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from penstock.client.librdkafka_calls import RETRIABLE_CODES, retriable_calls
from penstock.connect.errors import ConnectError
from penstock.connect.interface import TopicPlace
from penstock.connect.tasks.clients import make_consumer
from penstock.connect.tasks.writing import Fenced
from penstock.consumer.membership import RETRIABLE_COMMIT_ERRORS, STOPPING_ERRORS

log = logging.getLogger("penstock.connect")

OFFSETS_TIMEOUT_S: Final = 30.0
LIST_TIMEOUT_S: Final = 10.0
LIST_EACH_S: Final = 10.0
"""So often topics are looked for whose names match a pattern."""
SEEK_TIMEOUT_S: Final = 10.0
SLICE_S: Final = 0.1
WARN_EACH_S: Final = 60.0
FENCED_TEXT: Final = "group.instance.id"
COOPERATIVE: Final = "cooperative-sticky"
_NO_OFFSET: Final = -1001
_RESETS: Final = {"earliest": -2, "beginning": -2, "smallest": -2, "latest": -1, "end": -1, "largest": -1}


class Listener(Protocol):
    def opened(
        self, places: Sequence[TopicPlace], committed: Mapping[TopicPlace, int]
    ) -> Mapping[TopicPlace, int]:
        """These are ours from now on. Where to begin, where that is not at the committed offset."""

    def closing(self, places: Sequence[TopicPlace], *, is_lost: bool) -> None:
        """While they are still ours, unless they are lost."""


class Group:
    """`topics` by name, or `pattern`, a regular expression that names match as a whole."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        topics: Sequence[str],
        pattern: str | None,
        listener: Listener,
    ) -> None:
        self.consumer: Consumer = make_consumer(settings)
        self._listener = listener
        self._topics = list(topics)
        self._pattern = None if pattern is None else re.compile(pattern)
        self._is_cooperative = (
            settings.get("partition.assignment.strategy") == COOPERATIVE
            or str(settings.get("group.protocol", "")).lower() == "consumer"
        )
        self._reset = _RESETS.get(str(settings.get("auto.offset.reset", "latest")).lower(), _NO_OFFSET)
        self._numbers = itertools.count(1)
        self.terms: dict[TopicPlace, int] = {}
        self._arrived: deque[tuple[Any, int]] = deque()
        self._held: set[TopicPlace] = set()
        self._breathing: set[TopicPlace] = set()
        self._failure: BaseException | None = None
        self._is_closing = False
        self._listed_s = -LIST_EACH_S
        self._warned: dict[str, float] = {}
        self._subscribe()

    def take(self, at_once: int, wait_s: float) -> list[Any]:
        """Messages without errors, of partitions that are ours."""
        self._resume()
        self._subscribe()
        consumer, terms = self.consumer, self.terms
        if self._arrived:
            kept = [message for message, term in self._arrived if terms.get(_place(message)) == term]
            self._arrived.clear()
            return kept
        first = consumer.poll(wait_s)
        self._check()
        if first is None:
            return []
        term = terms.get(_place(first))
        messages = consumer.consume(at_once - 1, 0) if at_once > 1 else []
        self._check()
        if first.error() is not None or terms.get(_place(first)) == term is not None:
            messages.insert(0, first)
        if any(message.error() is not None for message in messages):
            return [message for message in messages if message.error() is None or self._on_error(message)]
        return messages

    def breathe(self, wait_s: float) -> None:
        """Polls without taking records, so that the group keeps us."""
        running = [place for place in self.terms if place not in self._breathing]
        if running:
            self._call(self.consumer.pause, running)
            self._breathing.update(running)
        message = self.consumer.poll(min(wait_s, SLICE_S))
        self._check()
        if message is None:
            return
        if message.error() is not None:
            self._on_error(message)
            return
        term = self.terms.get(_place(message))
        if term is not None:
            self._arrived.append((message, term))

    def commit(self, offsets: Mapping[TopicPlace, int]) -> bool:
        """False: the group has moved on, or does not answer; later."""
        asked = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        try:
            for each in self.consumer.commit(offsets=asked, asynchronous=False) or ():
                if each.error is not None:
                    raise KafkaException(each.error)
        except KafkaException as error:
            cause = error.args[0]
            if _is_fenced(cause):
                raise Fenced("another task has this one's place in the group") from error
            if cause.code() not in RETRIABLE_COMMIT_ERRORS | RETRIABLE_CODES and not cause.retriable():
                raise ConnectError(f"offsets cannot be committed: {cause.str()}") from error
            log.warning("offsets are not committed yet: %s", cause.str())
            return False
        return True

    def seek(self, offsets: Mapping[TopicPlace, int]) -> None:
        self._arrived = deque(each for each in self._arrived if _place(each[0]) not in offsets)
        for place, offset in offsets.items():
            if place in self.terms:
                self.terms[place] = next(self._numbers)
                where = TopicPartition(*place, offset)
                retriable_calls(
                    partial(self.consumer.seek, where),
                    "seek",
                    timeout_s=SEEK_TIMEOUT_S,
                    log=log,
                    codes=RETRIABLE_CODES | {KafkaError._STATE},
                )

    def hold(self, places: Iterable[TopicPlace]) -> None:
        """Nothing comes of them until they are released."""
        new = [place for place in places if place in self.terms and place not in self._held]
        self._held.update(new)
        self._call(self.consumer.pause, [place for place in new if place not in self._breathing])

    def release(self, places: Iterable[TopicPlace]) -> None:
        old = [place for place in places if place in self._held]
        self._held.difference_update(old)
        self._call(self.consumer.resume, [place for place in old if place not in self._breathing])

    def close(self) -> str:
        """Gives up what is left without a word to the listener. The id that the member had."""
        self._is_closing = True
        member_id = str(self.consumer.memberid() or "")
        self.consumer.close()
        return member_id

    def _resume(self) -> None:
        if self._breathing:
            places = [place for place in self._breathing if place in self.terms and place not in self._held]
            self._breathing.clear()
            self._call(self.consumer.resume, places)

    def _subscribe(self) -> None:
        """By name: librdkafka has other regular expressions than Java."""
        if self._pattern is None:
            if self._topics and self._listed_s < 0:
                self._listed_s = 0.0
                self._ask_for(self._topics)
            return
        now_s = time.monotonic()
        if now_s - self._listed_s < LIST_EACH_S:
            return
        self._listed_s = now_s
        try:
            names = self.consumer.list_topics(timeout=LIST_TIMEOUT_S).topics
        except KafkaException as error:
            log.info("topics cannot be listed yet: %s", error.args[0].str())
            return
        found = sorted(name for name in names if not name.startswith("__") and self._pattern.fullmatch(name))
        if found and found != self._topics:
            self._topics = found
            self._ask_for(found)

    def _ask_for(self, topics: list[str]) -> None:
        self.consumer.subscribe(
            topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def _check(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _on_error(self, message: Any) -> bool:
        """Raises what cannot heal."""
        error = message.error()
        if _is_fenced(error):
            raise Fenced("another task has this one's place in the group")
        if error.fatal() or error.code() in STOPPING_ERRORS:
            raise ConnectError(f"topics cannot be read: {error.str()}") from KafkaException(error)
        now_s = time.monotonic()
        if (
            now_s - self._warned.get(error.str(), -WARN_EACH_S) >= WARN_EACH_S
            and error.code() != KafkaError._PARTITION_EOF
        ):
            self._warned = {**dict(list(self._warned.items())[-20:]), error.str(): now_s}
            log.warning("%s", error.str())
        return False

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._is_closing:
            return
        try:
            places = [_of(each) for each in partitions]
            committed = self._committed(partitions) if partitions else {}
            for place in places:
                self.terms[place] = next(self._numbers)
            begun = self._listener.opened(places, committed)
            for each in partitions:
                each.offset = begun.get(_of(each), committed.get(_of(each), self._reset))
            (consumer.incremental_assign if self._is_cooperative else consumer.assign)(partitions)
            self._call(consumer.pause, [place for place in places if place in self._held])
        except BaseException as error:
            # The client would tell a callback's error later, and half.
            self._failure = self._failure or error

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_up(partitions, is_lost=False)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_up(partitions, is_lost=True)

    def _give_up(self, partitions: list[TopicPartition], *, is_lost: bool) -> None:
        places = [place for place in map(_of, partitions) if place in self.terms]
        try:
            if places and not self._is_closing:
                self._listener.closing(places, is_lost=is_lost)
        except BaseException as error:
            self._failure = self._failure or error
        finally:
            for place in places:
                del self.terms[place]
            # The client keeps whether a partition is paused, until it comes back.
            held = [place for place in places if place in self._held | self._breathing]
            if not self._is_closing:
                self._call(self.consumer.resume, held)
            self._held.difference_update(places)
            self._breathing.difference_update(places)

    def _committed(self, partitions: list[TopicPartition]) -> dict[TopicPlace, int]:
        asked = [TopicPartition(each.topic, each.partition) for each in partitions]
        found = retriable_calls(
            lambda: self.consumer.committed(asked, OFFSETS_TIMEOUT_S),
            "committed offsets",
            timeout_s=OFFSETS_TIMEOUT_S,
            log=log,
            codes=RETRIABLE_CODES,
        )
        for each in found:
            if each.error is not None:
                raise KafkaException(each.error)
        return {_of(each): each.offset for each in found if each.offset >= 0}

    def _call(self, call: Any, places: Iterable[TopicPlace]) -> None:
        asked = [TopicPartition(*place) for place in places]
        if asked:
            try:
                call(asked)
            except KafkaException as error:
                log.debug("%s", error.args[0].str())  # it is taken away just now


def _is_fenced(error: KafkaError) -> bool:
    # A fatal error says in its text only which one it is.
    return error.code() == KafkaError.FENCED_INSTANCE_ID or (
        error.code() == KafkaError._FATAL and FENCED_TEXT in error.str()
    )


def _place(message: Any) -> TopicPlace:
    return message.topic(), message.partition()


def _of(partition: TopicPartition) -> TopicPlace:
    return partition.topic, partition.partition
