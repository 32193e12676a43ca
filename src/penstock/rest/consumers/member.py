"""librdkafka's consumer of one instance, with what Java's has and it has not: lazy seeks, and positions of what was returned.

Used in the instance's thread only. While nobody reads, `tick` keeps the group going: partitions are paused, so that a rebalance
is answered and nothing is fetched.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Message, TopicPartition

from penstock.client.clients import Connection, translated
from penstock.model.errors import ApiError
from penstock.model.patterns import full_match
from penstock.rest import errors

CALL_TIMEOUT_S: Final = 10.0
SEEK_PAUSE_S: Final = 0.02
POLL_S: Final = 0.05
PATTERN_LOOK_S: Final = 10.0
DEFAULTS: Final = {
    "auto.offset.reset": "latest",
    "enable.auto.commit": "true",
    "enable.auto.offset.store": "false",
    "fetch.wait.max.ms": "100",  # a seek is not seen before the fetch under way has ended
    "fetch.error.backoff.ms": "100",
    # Each instance may hold so much; there are penstock.consumer.instance.limit of them.
    "queued.max.messages.kbytes": "4096",
    "queued.min.messages": "2000",
    "fetch.queue.backoff.ms": "10",  # after what was fetched ahead is full; its default, 1 s, is for larger queues
    "topic.metadata.refresh.interval.ms": "30000",
}
_WAITED_FOR: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._PARTITION_EOF}
)
_TELLING: Final = frozenset(
    {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError._AUTHENTICATION,
     KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._FATAL}
)  # fmt: skip
_EXCLUSIVE: Final = "Subscription to topics, partitions and pattern are mutually exclusive"

Place = tuple[str, int]


class Seek(NamedTuple):
    topic: str
    partition: int
    offset: int


class Member:
    def __init__(self, connection: Connection, settings: dict[str, str]) -> None:
        """Blocks until a broker answers; Unreachable and UserError."""
        self._open: Callable[[], Consumer] = lambda: connection.consumer({**DEFAULTS, **settings})
        self._consumer: Consumer = self._open()
        self._topics: list[str] = []
        self._pattern: Callable[[str], bool] | None = None
        self._looked_s = 0.0
        self._is_by_hand = False
        self._is_assigned = False
        self._paused: set[Place] = set()
        """Also of partitions that were taken away since: librdkafka keeps that until they come back."""
        self._next: dict[Place, int] = {}
        """Behind the last record that was returned, of each partition."""
        self._kept: deque[Message] = deque()
        self._failure: Exception | None = None
        self._is_beginning = True

    # --- which partitions

    def subscribe(self, topics: list[str]) -> None:
        if self._is_by_hand or self._pattern is not None:
            raise errors.illegal_state(_EXCLUSIVE)
        self._subscribe(topics)

    def subscribe_pattern(self, pattern: str) -> None:
        if self._is_by_hand or (self._topics and self._pattern is None):
            raise errors.illegal_state(_EXCLUSIVE)
        try:
            self._pattern = full_match(pattern)
        except ApiError as error:
            raise errors.invalid_consumer_config(f"topic_pattern: {error.detail}") from None
        self._look_for_topics()

    def _subscribe(self, topics: list[str]) -> None:
        self._topics = list(topics)
        if topics:
            self._call(
                lambda: self._consumer.subscribe(
                    topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
                )
            )
        else:
            self._call(self._consumer.unsubscribe)
            self._clear()

    def _look_for_topics(self) -> None:
        """By RE2, which cannot be made to run long, in place of librdkafka's own expressions."""
        assert self._pattern is not None
        self._looked_s = time.monotonic()
        found = self._call(lambda: self._consumer.list_topics(timeout=CALL_TIMEOUT_S))
        topics = sorted(name for name in found.topics if not name.startswith("__") and self._pattern(name))
        if topics != self._topics:
            self._subscribe(topics)

    def unsubscribe(self) -> None:
        has_subscribed = bool(self._topics)
        self._topics, self._pattern = [], None
        if self._is_by_hand:
            self._call(self._consumer.unassign)
            self._is_by_hand = False
        elif has_subscribed:
            self._leave()
        self._clear()

    def _leave(self) -> None:
        """With another client from here on: what the group still says to this one would take away partitions that are assigned by
        hand then, and commits of this one would be those of a member that has left."""
        left, self._consumer = self._consumer, self._open()
        self._paused.clear()
        self._call(left.close)

    def subscription(self) -> list[str]:
        return list(self._topics)

    def assign(self, places: Iterable[Place]) -> None:
        if self._topics or self._pattern is not None:
            raise errors.illegal_state(_EXCLUSIVE)
        wanted = [TopicPartition(*place) for place in dict.fromkeys(places)]
        kept = {
            place: offset for place, offset in self._next.items() if place in {_place(one) for one in wanted}
        }
        self._clear()
        for one in wanted:
            if _place(one) in kept:
                one.offset = self._next[_place(one)] = kept[_place(one)]
        self._is_by_hand = bool(wanted)
        self._call(lambda: self._consumer.assign(wanted) if wanted else self._consumer.unassign())
        self._is_assigned = bool(wanted)

    def assignment(self) -> list[Place]:
        return sorted(_place(one) for one in self._call(self._consumer.assignment))

    def wait_for_assignment(self, until_s: float, is_over: Callable[[], bool]) -> None:
        """Until the group has given partitions, for who has subscribed."""
        while self._topics and not self._is_assigned and not is_over():
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                break
            self._take(self._consumer.poll(min(left_s, POLL_S)))
            self._tell_failure()

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._is_assigned = self._is_beginning = True

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        gone = {_place(one) for one in partitions}
        self._drop(gone)
        for place in gone:
            self._next.pop(place, None)

    # --- records

    def begin_reading(self) -> None:
        self._resume()
        if self._pattern is not None and time.monotonic() - self._looked_s > PATTERN_LOOK_S:
            self._look_for_topics()

    def _resume(self) -> None:
        if not self._paused:
            return
        mine = [one for one in self._call(self._consumer.assignment) if _place(one) in self._paused]
        if mine:
            self._is_beginning = True
            self._call(lambda: self._consumer.resume(mine))
            self._paused.difference_update(map(_place, mine))

    def is_beginning(self) -> bool:
        """Whether partitions were taken, resumed or moved since the last read."""
        was, self._is_beginning = self._is_beginning, False
        return was

    def fetched(self, count: int, wait_s: float) -> list[Message]:
        """What is there, at most so many; when nothing is, what comes first in that time."""
        if self._kept:
            return [self._kept.popleft() for _ in range(min(count, len(self._kept)))]
        self._resume()
        self._take(self._consumer.poll(wait_s))
        if self._kept:
            for message in self._consumer.consume(count - 1, 0) if count > 1 else ():
                self._take(message)
            found = list(self._kept)
            self._kept.clear()
            return found
        self._tell_failure()
        return []

    def keep(self, messages: list[Message]) -> None:
        """Records that are not returned now come first at the next read."""
        self._kept.extendleft(reversed(messages))

    def returned(self, message: Message) -> None:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        self._next[topic, partition] = offset + 1

    def store(self) -> None:
        """What is committed by itself from now on, where auto commit is on."""
        offsets = [
            TopicPartition(topic, partition, offset) for (topic, partition), offset in self._next.items()
        ]
        if offsets:
            try:
                self._consumer.store_offsets(offsets=offsets)
            except KafkaException:
                pass  # a partition was taken away meanwhile: whoever has it now starts behind the last commit

    def _take(self, message: Message | None) -> None:
        if message is None:
            return
        error = message.error()
        if error is None:
            self._kept.append(message)
        elif error.code() in _TELLING or error.fatal():
            self._failure = translated(KafkaException(error))
        elif error.code() not in _WAITED_FOR:
            # Whatever else librdkafka tells here it goes on trying by itself.
            pass

    def _tell_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def tick(self) -> None:
        """While nobody reads."""
        if not self._topics and not self._is_by_hand:
            return
        assigned = [one for one in self._consumer.assignment() if _place(one) not in self._paused]
        if assigned:
            self._consumer.pause(assigned)
            self._paused.update(map(_place, assigned))
        self._take(self._consumer.poll(0))

    # --- positions

    def seek(self, seeks: Iterable[Seek]) -> None:
        self.wait_for_assignment(time.monotonic() + CALL_TIMEOUT_S, lambda: False)
        mine = set(self.assignment())
        wanted = list(seeks)
        for one in wanted:
            if (one.topic, one.partition) not in mine:
                raise errors.illegal_state(f"No current assignment for partition {one.topic}-{one.partition}")
        self._is_beginning = True
        self._drop({(one.topic, one.partition) for one in wanted})
        for one in wanted:
            self._seek_one(one)
            if one.offset >= 0:
                self._next[one.topic, one.partition] = one.offset
            else:
                self._next.pop((one.topic, one.partition), None)

    def _seek_one(self, one: Seek) -> None:
        """librdkafka refuses while it still asks where the partition begins."""
        until_s = time.monotonic() + CALL_TIMEOUT_S
        while True:
            try:
                self._consumer.seek(TopicPartition(*one))
                return
            except KafkaException as error:
                if error.args[0].code() != KafkaError._STATE or time.monotonic() > until_s:
                    raise translated(error) from None
            message = self._consumer.poll(SEEK_PAUSE_S)
            if message is not None and (message.topic(), message.partition()) != (one.topic, one.partition):
                self._take(message)

    def offsets_for_times(self, wanted: Iterable[tuple[str, int, int]]) -> list[Seek]:
        asked = [TopicPartition(*one) for one in wanted]
        found = self._call(lambda: self._consumer.offsets_for_times(asked, CALL_TIMEOUT_S)) if asked else []
        for one in found:
            if one.error is not None:
                raise translated(KafkaException(one.error))
        return [Seek(one.topic, one.partition, one.offset) for one in found]

    def commit(self, offsets: list[TopicPartition] | None) -> None:
        """Up to what was returned, where None."""
        wanted = offsets
        if wanted is None:
            wanted = [
                TopicPartition(topic, partition, offset) for (topic, partition), offset in self._next.items()
            ]
        if not wanted:
            return
        done = self._call(lambda: self._consumer.commit(offsets=wanted, asynchronous=False))
        for one in done or ():
            if one.error is not None:
                raise translated(KafkaException(one.error))

    def committed(self, places: Iterable[Place]) -> list[TopicPartition]:
        asked = [TopicPartition(*place) for place in places]
        found = self._call(lambda: self._consumer.committed(asked, CALL_TIMEOUT_S)) if asked else []
        for one in found:
            if one.error is not None:
                raise translated(KafkaException(one.error))
        return [one for one in found if one.offset != OFFSET_INVALID]

    def close(self) -> None:
        self._consumer.close()

    def _clear(self) -> None:
        self._kept.clear()
        self._next.clear()
        self._is_assigned = False

    def _drop(self, places: set[Place]) -> None:
        self._kept = deque(one for one in self._kept if (one.topic(), one.partition()) not in places)

    def _call(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except KafkaException as error:
            raise translated(error) from None
        except (TypeError, ValueError) as error:
            raise errors.bad_request(str(error)) from None


def _place(one: TopicPartition) -> Place:
    return one.topic, one.partition
