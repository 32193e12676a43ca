"""A member of the group: which partitions are ours, which records came, which offsets are committed.

Every assignment of a partition is a *term* with a number, and a record carries the term that brought it. When the
partition is taken away the term ends, and whatever still holds such a record sees that it is not ours any more; if
the partition comes back, its records come again under a new term, from the committed offset on.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from penstock.client.librdkafka_calls import RETRIABLE_CODES, UNKNOWN_TOPIC
from penstock.consumer.coverage import Coverage
from penstock.consumer.dead_letters import take_earlier_attempts
from penstock.consumer.failures import Stopped
from penstock.consumer.generations import Generations
from penstock.consumer.guarantees import READ_COMMITTED
from penstock.consumer.positions import END_TIMEOUT_S, Positions
from penstock.consumer.record import Place, Record

log = logging.getLogger("penstock.consumer")

POLL_SLICE_S = 0.1  # so long may a signal or stop() have to wait
WARN_AGAIN_S = 60.0
MAX_WARNINGS = 100

METADATA_REFRESH = "topic.metadata.refresh.interval.ms"
MEMBER_SETTINGS = {
    "auto.offset.reset": "earliest",
    "isolation.level": READ_COMMITTED,
    "check.crcs": True,
    "partition.assignment.strategy": "cooperative-sticky",
    # By default it is five minutes: for so long a topic that is new, or was not known for a moment, would be read by nobody.
    METADATA_REFRESH: 10_000,
}

# The group moved on without us: the next polls put that right, and the offsets stay to be committed.
# Those of a topic that is gone never can be.
RETRIABLE_COMMIT_ERRORS = (RETRIABLE_CODES - UNKNOWN_TOPIC) | {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError._ASSIGNMENT_LOST,
    KafkaError._NO_OFFSET,
}

# Told when a member cannot learn where its partitions begin. librdkafka does not ask again (its issue 5586, open as of 2.16).
NO_BEGINNING_ERRORS = frozenset(
    {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
    }
)

# Waiting will not help with these.
STOPPING_ERRORS = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.INVALID_GROUP_ID,
        KafkaError.INVALID_SESSION_TIMEOUT,
        KafkaError.INCONSISTENT_GROUP_PROTOCOL,
        KafkaError.GROUP_MAX_SIZE_REACHED,
        KafkaError._AUTHENTICATION,
        KafkaError._AUTO_OFFSET_RESET,
    }
)


class Membership:
    """`before_revoke` is called while the partitions are still ours, to settle what is done."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        topics: Sequence[str],
        *,
        client_settings: Mapping[str, Any],
        before_revoke: Callable[[set[Place]], None],
    ) -> None:
        self._topics = list(topics)
        self._before_revoke = before_revoke
        self._terms: dict[Place, int] = {}
        self._numbers = itertools.count(1)
        self._arrived: deque[Record] = deque()  # at most one for each partition assigned while we wait
        self._ends: dict[Place, int] = {}  # where a leader said that there is no more
        self._paused: set[Place] = set()
        self._begun: set[Place] = set()  # something has come from these in their present term
        self._has_no_beginning = False  # some other, perhaps
        self._member_id: str | None = None
        self._generations = Generations()
        self._is_revoking = self._is_closing = False
        self._warned: dict[str, float] = {}
        self.uncommitted: dict[Place, int] = {}
        self.rebalances = 0
        self.last_poll_s = time.monotonic()
        self.consumer = Consumer({**settings}, logger=log.getChild("client"))
        self._positions = Positions(self.consumer)
        self._coverage = Coverage(
            self.consumer,
            client_settings,
            settings["group.id"],
            self._topics if settings.get("group.protocol") != "consumer" else (),
            wait_s=float(settings[METADATA_REFRESH]) / 1000,
        )
        self._subscribe()

    def owns(self, record: Record) -> bool:
        return self._terms.get(record.place) == record.term

    def is_at_end(self) -> bool:
        """Everything that was there has been taken.

        A leader that has just been elected may say so too early: it does not know yet how far its log is committed. Asked for
        the last offset it says that it does not know.
        """
        if not self._terms or self._arrived or not self._ends.keys() >= self._terms.keys():
            return False
        try:
            for place in self._terms:
                last = self.consumer.get_watermark_offsets(TopicPartition(*place), timeout=END_TIMEOUT_S)
                if last is None or last[1] > self._ends[place]:
                    self._ends.pop(place)
                    return False
        except KafkaException as error:
            log.info("the ends of the partitions are not known yet: %s", error.args[0].str())
            return False
        return True

    def take(
        self,
        *,
        max_records: int,
        max_bytes: int,
        wait_s: float,
        fill_s: float,
        is_over: Callable[[], bool] = lambda: False,
    ) -> list[Record]:
        """What is there, within the limits; waits up to `wait_s` for the first and `fill_s` for the rest, unless it is over."""
        self._resume()
        if self._has_no_beginning:
            self._begin_again()
        self._cover()
        taken: list[Record] = []
        size_bytes = 0
        record = self._next(wait_s)
        deadline_s = time.monotonic() + fill_s
        while record is not None or (taken and time.monotonic() < deadline_s and not is_over()):
            if record is not None:
                taken.append(record)
                size_bytes += len(record.raw_value or b"") + len(record.raw_key or b"")
                if len(taken) >= max_records or size_bytes >= max_bytes:
                    break
            # None is no end: another partition may have one, or the end of its own to tell.
            record = self._next(min(POLL_SLICE_S, max(0.0, deadline_s - time.monotonic())))
        return [each for each in taken if self.owns(each)]

    def breathe(self, wait_s: float = 0.0) -> None:
        """Polls without taking records, so that the group keeps us while a record is worked on or waited for."""
        self._pause()
        record = self._poll(min(wait_s, POLL_SLICE_S))
        if record is not None:
            self._arrived.append(record)

    def commit(self) -> bool:
        """Commits `uncommitted`; False when that must be tried again later."""
        if not self.uncommitted:
            return True
        if not self._is_member():
            return False
        offsets = [TopicPartition(*place, offset) for place, offset in self.uncommitted.items()]
        try:
            placed = self.consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            return self._commit_failed(error.args[0])
        for each in placed or ():
            if each.error is not None:
                return self._commit_failed(each.error)
        self.uncommitted.clear()
        return True

    def group_metadata(self) -> Any:
        """For a transaction; None when the group has put us out or moved on, and the next polls will say so.

        A member that was put out has no id, and offsets in a transaction without one would be taken from anybody.
        """
        metadata = self.consumer.consumer_group_metadata()
        is_reached = self._generations.is_reached(metadata, is_revoking=self._is_revoking)
        return metadata if is_reached and self._is_member() else None

    def close(self) -> None:
        self._is_closing = True
        self.consumer.close()

    def _is_member(self) -> bool:
        return bool(self._member_id) and self.consumer.memberid() == self._member_id

    def _commit_failed(self, error: KafkaError) -> bool:
        if error.code() not in RETRIABLE_COMMIT_ERRORS and not error.retriable():
            raise Stopped(f"offsets cannot be committed: {error.str()}") from KafkaException(error)
        log.warning("offsets are not committed yet: %s", error.str())
        return False

    def _next(self, wait_s: float) -> Record | None:
        while self._arrived:
            record = self._arrived.popleft()
            if self.owns(record):
                return record
        return self._poll(wait_s)

    def _poll(self, wait_s: float) -> Record | None:
        message = self.consumer.poll(wait_s)
        self.last_poll_s = time.monotonic()
        if message is None:
            self._generations.all_is_told()
            return None
        error = message.error()
        if error is not None:
            self._on_error(error, message)
            return None
        place = (message.topic() or "", message.partition() or 0)
        self._ends.pop(place, None)
        term = self._terms.get(place)
        if term is None:
            return None
        self._begun.add(place)
        if not self._positions.advance(place, message):
            return None
        record = Record(message, term=term)
        take_earlier_attempts(record)
        return record

    def _on_error(self, error: KafkaError, message: Message) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            place = (message.topic() or "", message.partition() or 0)
            self._ends[place] = message.offset() or 0
            self._begun.add(place)
        elif error.fatal() or error.code() in STOPPING_ERRORS:
            raise Stopped(f"the group cannot be read: {error.str()}") from KafkaException(error)
        else:
            self._warn(error.str())
            self._has_no_beginning = self._has_no_beginning or error.code() in NO_BEGINNING_ERRORS

    def _warn(self, text: str) -> None:
        """Where a partition cannot be read, the client says so twice a second."""
        now_s = time.monotonic()
        if now_s - self._warned.get(text, -WARN_AGAIN_S) >= WARN_AGAIN_S:
            if len(self._warned) >= MAX_WARNINGS:
                self._warned.clear()
            self._warned[text] = now_s
            log.warning("%s", text)

    def _begin_again(self) -> None:
        """Has librdkafka ask once more for the offsets of partitions that nothing has come from yet."""
        assigned = self.consumer.assignment()
        stuck = [TopicPartition(*_place(each)) for each in assigned if _place(each) not in self._begun]
        unread = [TopicPartition(*place) for place in self._terms.keys() - self._begun]
        try:
            try:
                if stuck:
                    self.consumer.incremental_unassign(stuck)
                if unread:
                    self.consumer.incremental_assign(unread)
            except KafkaException as error:
                if error.args[0].code() != KafkaError._STATE:
                    raise
                # The members of this group change all their partitions at once.
                read = [each for each in assigned if _place(each) in self._begun]
                self.consumer.assign(self.consumer.position(read) + unread)
        except KafkaException as error:
            log.warning("%s", error.args[0].str())  # in the middle of a rebalance, say: next time
        else:
            self._has_no_beginning = False

    def _subscribe(self) -> None:
        self.consumer.subscribe(
            self._topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def _cover(self) -> None:
        neglected = self._coverage.neglected()
        if neglected:
            log.warning("nobody in the group reads %s: joining the group again", ", ".join(neglected))
            self.consumer.unsubscribe()
            self._subscribe()

    def _pause(self) -> None:
        # What has not begun is not paused: librdkafka would ask for its beginning once more, and begin twice (see `positions`).
        pausable = self._begun - self._paused
        running = [each for each in self.consumer.assignment() if _place(each) in pausable]
        if running:
            self.consumer.pause(running)
            self._paused.update(map(_place, running))

    def _resume(self) -> None:
        # A partition that is taken away while it is paused is still paused when it comes back, however much later.
        if self._paused:
            paused = [each for each in self.consumer.assignment() if _place(each) in self._paused]
            if paused:
                self.consumer.resume(paused)
                self._paused.difference_update(map(_place, paused))

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.rebalances += 1
        self._coverage.assigned()
        self._member_id = consumer.memberid()
        if partitions and not self._terms and not self._is_closing:
            self._generations.begin(consumer.consumer_group_metadata())
        for each in partitions:
            self._terms[_place(each)] = next(self._numbers)
            self._begun.discard(_place(each))
            self._positions.forget(_place(each))

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        places = set(map(_place, partitions))
        self._is_revoking = True
        try:
            self._before_revoke(places)
        finally:
            self._is_revoking = False
        self._forget(places)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._forget(set(map(_place, partitions)))

    def _forget(self, places: set[Place]) -> None:
        for place in places:
            self._terms.pop(place, None)
            self._ends.pop(place, None)
            self.uncommitted.pop(place, None)
            self._positions.forget(place)
        self._begun -= places


def _place(partition: TopicPartition) -> Place:
    return partition.topic, partition.partition
