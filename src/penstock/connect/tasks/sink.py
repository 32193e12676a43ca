"""A sink task at work: consume, convert, transform, put; commit what the task says is written."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from penstock.client.patience import Backoff
from penstock.connect.errors import InvalidConfig, RetriableError
from penstock.connect.interface import SinkTask, TopicPlace
from penstock.connect.records import SinkRecord
from penstock.connect.settings import Kind
from penstock.connect.tasks.assembly import Assembly
from penstock.connect.tasks.calls import Calls
from penstock.connect.tasks.clients import CONSUMER, PRODUCER, make_admin, properties_of, settings_of
from penstock.connect.tasks.dead_letters import DeadLetters, has_letters
from penstock.connect.tasks.failing import Failing, Failure, Policy, Stage, class_name
from penstock.connect.tasks.frame import Frame, Stopping
from penstock.connect.tasks.group import COOPERATIVE, Group
from penstock.connect.tasks.leaving import leave
from penstock.connect.tasks.settings import value_of
from penstock.connect.tasks.sink_context import SinkContext
from penstock.connect.tasks.sink_converting import SinkConversion
from penstock.connect.tasks.sink_records import letter_of, origin_of
from penstock.connect.tasks.topics import make_topic
from penstock.connect.tasks.writing import Fenced, NotWritten, Writer

log = logging.getLogger("penstock.connect")

AT_ONCE: Final = 1000  # records in a call of put, unless consumer.override.max.poll.records says otherwise
POLL_S: Final = 0.25
EMPTY_PUT_S: Final = 1.0
LETTERS_TIMEOUT_S: Final = 60.0
RETRIES: Final = Backoff(0.3, factor=2, max_s=10, jitter=0.2)

Offsets = dict[TopicPlace, int]


class SinkWork:
    """One life of a sink task. `open`, `run`, `close`, from one thread."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        config = frame.config
        self._made = frame.assemble()
        self._task: SinkTask = self._made.task
        self._calls = Calls()
        letters = None
        if has_letters(config):
            letters = DeadLetters(
                config, frame.counters, connector=frame.connector, task=frame.task,
                letter=partial(letter_of, self._made), write=self._write_letter,
            )  # fmt: skip
        self._letters = letters
        self._letter_writer: Writer | None = None
        self._failing = Failing(
            Policy.of(config), frame.counters, frame.name, self._breathe_for,
            None if letters is None else letters.keep,
        )  # fmt: skip
        self._conversion, self._at_once = _conversion_of(self._made, self._failing)
        self._topics, self._pattern = _topics_of(config)
        self._current: Offsets = {}  # behind what was put, or left out
        self._committed: Offsets = {}
        self._base: Offsets = {}  # where to go back to
        self._sought: Offsets = {}
        self._group: Group | None = None
        self._is_commit_asked = False
        self._next_commit_s = time.monotonic() + frame.worker.flush_interval_s
        self._last_put_s = 0.0
        self._retry_s: float | None = None
        self._is_started = False
        self._put = getattr(self._conversion, "put", None) or self._calls.of(self._task.put)
        self._count = getattr(self._conversion, "count", len)
        self._pre_commit = self._calls.of(self._task.pre_commit)
        if type(self._task).pre_commit is SinkTask.pre_commit:
            self._pre_commit = self._flush

    def open(self) -> None:
        frame = self._frame
        if self._letters is not None:
            make_topic(
                make_admin(frame.worker, frame.config), self._letters.topic, 1, self._letters.replication, {}
            )
        settings = self._settings()
        at_once = properties_of(frame.worker, frame.config, CONSUMER).get("max.poll.records")
        self._at_once = self._at_once if at_once is None else int(at_once)
        self._task.context = SinkContext(self)
        self._is_started = True
        self._calls.of(self._task.start)()
        self._group = Group(settings, self._topics, self._pattern, self)

    def run(self) -> None:
        assert self._group is not None
        frame, control, group = self._frame, self._frame.control, self._group
        try:
            while not frame.is_over:
                if control.is_paused:
                    self._pause()
                    continue
                frame.running()
                self._seek()
                messages = group.take(self._at_once, self._wait_s())
                control.progress()
                if messages:
                    self._take(messages)
                else:
                    self._put_nothing()
                self._seek()  # first: what it wants again must not count as done
                if self._is_commit_asked or time.monotonic() >= self._next_commit_s:
                    self._commit()
        except Stopping:
            self._end(is_lost=False)
        except Exception as error:
            self._end(is_lost=isinstance(error, Fenced), is_failed=True)
            raise
        else:
            self._end(is_lost=False)

    def close(self) -> None:
        try:
            if self._is_started:
                self._calls.of(self._task.stop)()
        except Exception as error:
            log.warning("%s does not stop as it should: %s", self._frame.name, error)
        finally:
            self._leave()
            if self._letter_writer is not None:
                self._letter_writer.close()
            self._made.close()
            self._calls.close()

    def status(self) -> dict[str, Any]:
        group = self._group
        return {"assignment": [] if group is None else sorted(map(list, list(group.terms)))}

    def opened(
        self, places: Sequence[TopicPlace], committed: Mapping[TopicPlace, int]
    ) -> Mapping[TopicPlace, int]:
        """Of the group."""
        self._committed.update(committed)
        self._base.update(committed)
        for topic in {topic for topic, _ in places}:
            self._frame.meet(topic)
        if places:
            self._calls.of(self._task.open)(list(places))
        self._count_partitions()
        return self._begun(set(places))

    def closing(self, places: Sequence[TopicPlace], *, is_lost: bool, is_failed: bool = False) -> None:
        """Of the group, and at the end."""
        offsets = {
            place: self._sought.get(place, self._current[place]) for place in places if place in self._current
        }
        wanted: Mapping[TopicPlace, int] | None = None
        try:
            if offsets and not is_lost:
                wanted = self._pre_commit(dict(offsets))
        except Exception as error:
            if not isinstance(error, RetriableError) and not is_failed:
                raise
            log.warning("%s cannot write what was put: %s", self._frame.name, error)
        finally:
            # Whatever it says, it has nothing to do with these any more.
            try:
                self._calls.of(self._task.close)(list(places))
            finally:
                self._forget(places, {} if wanted is None else wanted)

    def _forget(self, places: Sequence[TopicPlace], wanted: Mapping[TopicPlace, int]) -> None:
        try:
            if wanted:
                self._keep(wanted)
        finally:
            for place in places:
                for offsets in (self._current, self._committed, self._base, self._sought):
                    offsets.pop(place, None)
            self._count_partitions(without=len(places))

    def _count_partitions(self, without: int = 0) -> None:
        count = 0 if self._group is None else len(self._group.terms)
        self._frame.counters.set("partition-count", max(0, count - without))

    def _settings(self) -> dict[str, Any]:
        frame = self._frame
        given = properties_of(frame.worker, frame.config, CONSUMER)
        own: dict[str, Any] = {
            "group.id": f"connect-{frame.connector}",
            "client.id": f"connector-consumer-{frame.name}",
        }
        if given.get("group.protocol", "classic").lower() != "consumer":
            own["partition.assignment.strategy"] = COOPERATIVE
            if frame.worker.group_id:
                own["group.instance.id"] = f"{frame.worker.group_id}-{frame.name}"
        settings = settings_of(frame.worker, frame.config, CONSUMER)
        self._member = {**own, **settings}
        return self._member

    def _wait_s(self) -> float:
        return min(POLL_S, max(0.0, self._next_commit_s - time.monotonic()))

    def _take(self, messages: Sequence[Any]) -> None:
        assert self._group is not None
        self._frame.counters.add("sink-record-read-total", len(messages))
        ends: Offsets = {}
        for message in messages:
            place = message.topic(), message.partition()
            if place not in ends and place not in self._base:
                self._base[place] = message.offset()
            ends[place] = message.offset() + 1
        terms = {place: self._group.terms.get(place, 0) for place in ends}
        self._deliver(self._conversion.convert(messages), ends, terms)

    def _deliver(self, records: Sequence[Any], ends: Offsets, terms: Mapping[TopicPlace, int]) -> None:
        """Until the task takes them, or they are not ours any more, or the task is to stop."""
        attempt = 0
        while not self._frame.is_over:
            records = self._drop_lost(records, ends, terms)
            began_s = time.monotonic()
            try:
                self._put(records)
            except RetriableError as error:
                attempt += 1
                delay_s = self._retry_s
                self._retry_s = None
                if delay_s is None:
                    delay_s = RETRIES.delay_s(attempt, random.random)
                log.info("%s puts the same records again in %.1f s: %s", self._frame.name, delay_s, error)
                self._frame.counters.add("total-retries")
                self._breathe_for(delay_s)
                continue
            self._last_put_s = time.monotonic()
            self._current.update(ends)
            if records:
                counters = self._frame.counters
                counters.took("put-batch", self._last_put_s - began_s)
                count = self._count(records)
                counters.sample("batch-size", count)
                counters.add("sink-record-send-total", count)
            return

    def _put_nothing(self) -> None:
        if time.monotonic() - self._last_put_s >= EMPTY_PUT_S:
            self._deliver([], {}, {})

    def _drop_lost(
        self, records: Sequence[Any], ends: Offsets, terms: Mapping[TopicPlace, int]
    ) -> Sequence[Any]:
        """They come again, here or to another task."""
        assert self._group is not None
        lost = {place for place, term in terms.items() if self._group.terms.get(place) != term}
        if not lost:
            return records
        for place in lost:
            ends.pop(place, None)
        return [record for record in records if record.original[:2] not in lost]

    def _breathe_for(self, seconds: float) -> bool:
        """Waits as a member of the group. False when the task is to stop."""
        frame, group = self._frame, self._group
        deadline_s = time.monotonic() + seconds
        while group is not None and not frame.is_over and (left_s := deadline_s - time.monotonic()) > 0:
            group.breathe(left_s)
            frame.control.progress()
        return not frame.is_over

    def _pause(self) -> None:
        self._commit()
        self._frame.paused()
        while self._frame.control.is_paused and not self._frame.is_over:
            self._breathe_for(POLL_S)
            # A sink may have something to do when time passes, such as closing a file.
            self._put_nothing()
            self._seek()
            if self._is_commit_asked or time.monotonic() >= self._next_commit_s:
                self._commit()

    def _commit(self) -> None:
        self._is_commit_asked = False
        self._next_commit_s = time.monotonic() + self._frame.worker.flush_interval_s
        if not self._current:
            return
        began_s = time.monotonic()
        try:
            wanted = self._pre_commit(dict(self._current))
        except RetriableError as error:
            log.warning("%s goes back to what is committed: %s", self._frame.name, error)
            self._frame.counters.add("offset-commit-failure")
            back = {place: self._base[place] for place in self._current if place in self._base}
            self._sought.update(back)
            return
        if self._keep(wanted or {}):
            self._frame.counters.took("offset-commit", time.monotonic() - began_s)

    def _keep(self, wanted: Mapping[TopicPlace, int]) -> bool:
        """Commits those of these offsets that are new and that we may."""
        assert self._group is not None
        if self._letter_writer is not None and not self._letter_writer.flush(LETTERS_TIMEOUT_S):
            raise NotWritten("dead letters are not delivered")
        terms = self._group.terms
        new = {
            place: offset
            for place, offset in wanted.items()
            if place in terms
            and offset <= self._current.get(place, -1)
            and offset != self._committed.get(place)
        }
        if not new:
            return False
        is_kept = self._group.commit(new)
        self._frame.counters.add("offset-commit-success" if is_kept else "offset-commit-failure")
        if is_kept:
            self._committed.update(new)
            self._base.update(new)
        return is_kept

    def _flush(self, offsets: Mapping[TopicPlace, int]) -> Mapping[TopicPlace, int]:
        self._calls.of(self._task.flush)(offsets)
        return offsets

    def _seek(self) -> None:
        """Where the task wants to go on."""
        assert self._group is not None
        if self._sought:
            self._group.seek(self._begun(set(self._group.terms)))

    def _begun(self, places: set[TopicPlace]) -> Offsets:
        found = {place: self._sought.pop(place) for place in list(self._sought) if place in places}
        for place, offset in found.items():
            self._current[place] = self._base[place] = offset
        return found

    def _end(self, *, is_lost: bool, is_failed: bool = False) -> None:
        assert self._group is not None
        places = list(self._group.terms)
        try:
            if places:
                self.closing(places, is_lost=is_lost, is_failed=is_failed)
        except Exception as error:
            if not is_failed:
                raise
            log.warning("%s does not close its partitions: %s", self._frame.name, error)

    def _leave(self) -> None:
        if self._group is None:
            return
        member_id = self._group.close()
        instance = self._member.get("group.instance.id")
        if instance and member_id:
            leave(
                properties_of(self._frame.worker, self._frame.config, CONSUMER),
                self._member["group.id"],
                instance,
                member_id,
            )

    def report(self, record: SinkRecord, error: BaseException) -> None:
        self._failing.report(Failure(Stage.TASK_PUT, class_name(self._task), error, origin_of(record)))
        self._frame.counters.add("total-records-skipped")

    def _write_letter(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Any, timestamp_ms: int | None
    ) -> None:
        if self._letter_writer is None:
            frame = self._frame
            settings = settings_of(frame.worker, frame.config, PRODUCER)
            settings.setdefault("client.id", f"connector-dlq-producer-{frame.name}")
            self._letter_writer = Writer(settings, self._letter_failed, frame.check, frame.control.progress)
        self._letter_writer.send(topic, key, value, headers, timestamp_ms)

    def _letter_failed(self, message: Any, error: KafkaError) -> None:
        self._frame.counters.add("deadletterqueue-produce-failures")
        text = f"the dead letter topic {message.topic()} does not take a record: {error.str()}"
        raise NotWritten(text) from KafkaException(error)


def _topics_of(config: Mapping[str, str]) -> tuple[list[str], str | None]:
    """InvalidConfig."""
    topics = [each for each in value_of(config, "topics", Kind.LIST, []) if each]
    pattern = config.get("topics.regex") or None
    if bool(topics) == bool(pattern):
        raise InvalidConfig("Must configure one of topics or topics.regex")
    return topics, pattern


def _conversion_of(made: Assembly, failing: Failing) -> tuple[Any, int]:
    """With how many records it takes at once. What makes columns is imported for tasks that take them."""
    if not hasattr(made.task, "put_columns"):
        return SinkConversion(made, failing), AT_ONCE
    from penstock.connect.tasks import columnar_sink

    made_so = columnar_sink.conversion_of(made, failing)
    is_plain = isinstance(made_so, SinkConversion)
    return made_so, AT_ONCE if is_plain else columnar_sink.AT_ONCE
