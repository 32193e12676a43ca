"""A source task at work: poll, transform, convert, write; keep how far it is."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from penstock.connect.errors import RetriableError
from penstock.connect.interface import SourcePlace, SourceTask
from penstock.connect.records import SourceRecord
from penstock.connect.tasks.boundaries import Boundary, boundary_of
from penstock.connect.tasks.calls import Calls
from penstock.connect.tasks.dead_letters import DeadLetters, has_letters
from penstock.connect.tasks.failing import (
    Failing,
    Failure,
    LeftOut,
    Policy,
    Stage,
    ToleranceExceeded,
    class_name,
)
from penstock.connect.tasks.frame import Frame, Stopping
from penstock.connect.tasks.source_clients import SourceClients
from penstock.connect.tasks.source_letters import ProducedOrigin, SourceOrigin, letter_of
from penstock.connect.tasks.source_offsets import SourceOffsets
from penstock.connect.tasks.topics import TopicMaker, TopicRules, make_topic
from penstock.connect.tasks.writing import NotWritten

log = logging.getLogger("penstock.connect")

PAUSED_S: Final = 1.0
AT_ONCE_S: Final = 0.001
REST_FIRST_S: Final = 0.001
REST_MAX_S: Final = 0.05
RETRY_S: Final = 0.3
END_FLUSH_S: Final = 30.0


class SourceWork:
    """One life of a source task. `open`, `run`, `close`, from one thread."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        config, worker = frame.config, frame.worker
        self._made = frame.assemble()
        self._task: SourceTask = self._made.task
        self._calls = Calls()
        self._policy = Policy.of(config)
        letters = None
        if has_letters(config):
            letters = DeadLetters(
                config, frame.counters, connector=frame.connector, task=frame.task,
                letter=partial(letter_of, self._made), write=self._write_letter,
            )  # fmt: skip
        self._letters = letters
        self._failing = Failing(
            self._policy,
            frame.counters,
            frame.name,
            self._pause_for,
            None if letters is None else letters.keep,
        )
        self._boundary: Boundary | None = boundary_of(config, worker) if worker.is_exactly_once else None
        self._tells = type(self._task).committed is not SourceTask.committed
        self._committed = self._calls.of(self._task.committed)
        self._clients = SourceClients(
            frame, self._boundary, self._on_failure, tells_all=self._tells and self._boundary is None
        )
        self._writer = self._clients.writer
        self._offsets = SourceOffsets(self._clients.store, frame.connector)
        rules = TopicRules.of(config) if worker.makes_topics else None
        self._make_topic = None if rules is None else TopicMaker(rules, self._clients.admin)
        self._topics: set[str] = set()
        self._uncommitted: list[SourceRecord] = []
        self._next_commit_s = time.monotonic() + worker.flush_interval_s
        self._is_started = self._has_reported = False
        self._rest_s = REST_FIRST_S

    def open(self) -> None:
        if self._letters is not None:
            make_topic(self._clients.admin(), self._letters.topic, 1, self._letters.replication, {})
        self._writer.open()
        self._task.context = _Context(self)
        self._is_started = True
        self._calls.of(self._task.start)()

    def run(self) -> None:
        frame, control = self._frame, self._frame.control
        poll = self._calls.of(self._task.poll)
        try:
            while not frame.is_over:
                if control.is_paused:
                    self._pause()
                    continue
                frame.running()
                records = self._poll(poll)
                control.progress()
                if records:
                    self._send(records)
                self._commit_if_due(has_polled=bool(records))
        except Stopping:
            self._end(is_failed=self._boundary is not None)  # in the middle of a batch
        except Exception:
            self._end(is_failed=True)
            raise
        else:
            self._end(is_failed=False)

    def close(self) -> None:
        try:
            if self._is_started:
                self._calls.of(self._task.stop)()
        except Exception as error:
            log.warning("%s does not stop as it should: %s", self._frame.name, error)
        finally:
            self._clients.close()
            self._made.close()
            self._calls.close()

    def status(self) -> dict[str, Any]:
        return {"boundary": None if self._boundary is None else self._boundary.name}

    def _poll(self, poll: Callable[[], Sequence[SourceRecord] | None]) -> Sequence[SourceRecord] | None:
        began_s = time.monotonic()
        try:
            records = poll()
        except RetriableError as error:
            log.info("%s polls again: %s", self._frame.name, error)
            self._frame.counters.add("total-retries")
            self._frame.wait(RETRY_S)
            return None
        took_s = time.monotonic() - began_s
        if records:
            counters = self._frame.counters
            counters.add("source-record-poll-total", len(records))
            counters.took("poll-batch", took_s)
            counters.sample("batch-size", len(records))
            self._rest_s = REST_FIRST_S
        else:
            self._offsets.settle()  # what the connector has reported
            self._writer.producer.poll(0)
            self._writer.check()
            if took_s < AT_ONCE_S:  # it does not wait itself, and must not keep a processor busy
                self._frame.wait(self._rest_s)
                self._rest_s = min(2 * self._rest_s, REST_MAX_S)
        return records

    def _send(self, records: Iterable[SourceRecord]) -> None:
        """All of them, or those before the one that fails."""
        apply, made = self._made.apply, self._made
        from_key, from_value, from_header = (
            made.key.from_value, made.value.from_value, made.header.from_header,
        )  # fmt: skip
        writer, see, topics, committed = self._writer, self._offsets.see, self._topics, self._delivered
        tells, note = self._tells, self._writer.note
        produce = writer.producer.produce
        written = 0
        writer.begin()
        try:
            for record in records:
                try:
                    out = record if apply is None else apply(record)
                    if out is not None:
                        topic = out.topic
                        key = from_key(topic, out.key_schema, out.key)
                        value = from_value(topic, out.value_schema, out.value)
                        named = out.headers
                        headers: Any = (
                            [(each.name, from_header(topic, each)) for each in named] if named else None
                        )
                except Exception:
                    out, key, value, headers = self._carefully(record)
                if out is None:
                    see(record.source_partition, record.source_offset)
                    if tells:
                        self._left_out(record)
                    continue
                topic, place, time_ms = out.topic, out.partition, out.timestamp_ms
                if topic not in topics:
                    self._meet(topic)
                on_delivery = committed(record) if tells else note
                try:
                    produce(
                        topic, value, key, -1 if place is None else place, on_delivery, on_delivery,
                        0 if time_ms is None else time_ms or 1, headers,
                    )  # fmt: skip
                except BufferError:
                    writer.send(topic, key, value, headers, time_ms, place, on_delivery)
                except KafkaException as error:
                    writer.blame(error)
                    self._refused(topic, key, value, error.args[0])
                written += 1
                see(record.source_partition, record.source_offset)
        finally:
            self._offsets.settle()
            self._frame.counters.add("source-record-write-total", written)
        writer.producer.poll(0)
        writer.check()

    def _carefully(self, record: SourceRecord) -> tuple[Any, bytes | None, bytes | None, Any]:
        """One that has failed, stage by stage; None for one that is left out."""
        run, made, origin = self._failing.run, self._made, SourceOrigin(record)
        nothing = None, None, None, None
        try:
            out: Any = record
            if made.apply is not None:
                apply = made.apply
                out = run(Stage.TRANSFORMATION, made.chain, lambda: apply(record), origin)
            if out is None:
                return nothing
            topic = out.topic
            headers = run(
                Stage.HEADER_CONVERTER,
                made.header,
                lambda: [(each.name, made.header.from_header(topic, each)) for each in out.headers],
                origin,
            )
            key = run(
                Stage.KEY_CONVERTER,
                made.key,
                lambda: made.key.from_value(topic, out.key_schema, out.key),
                origin,
            )
            value = run(
                Stage.VALUE_CONVERTER,
                made.value,
                lambda: made.value.from_value(topic, out.value_schema, out.value),
                origin,
            )
        except LeftOut:
            return nothing
        return out, key, value, headers or None

    def _meet(self, topic: str) -> None:
        """Before the first record for it."""
        if self._make_topic is not None:
            self._make_topic(topic)
        self._frame.meet(topic)
        self._topics.add(topic)

    def _delivered(self, record: SourceRecord) -> Callable[[Any, Any], None]:
        if self._boundary is not None:
            self._uncommitted.append(record)
            return self._writer.note

        def told(error: Any, message: Any) -> None:
            self._writer.note(error, message)
            if error is None:
                self._tell(record)

        return told

    def _left_out(self, record: SourceRecord) -> None:
        if self._boundary is not None:
            self._uncommitted.append(record)
        else:
            self._tell(record)

    def _tell(self, record: SourceRecord) -> None:
        try:
            self._committed(record)
        except Exception as error:
            log.warning("%s does not take that a record is written: %s", self._frame.name, error)

    def _on_failure(self, message: Any, error: KafkaError) -> None:
        self._refused(message.topic(), message.key(), message.value(), error)

    def _refused(self, topic: str, key: bytes | None, value: bytes | None, error: KafkaError) -> None:
        """By the client or the cluster. Returns where the record may be left out."""
        own = (self._clients.offsets_topic, "" if self._letters is None else self._letters.topic)
        if self._boundary is not None or error.fatal() or topic in own or not self._policy.is_tolerant:
            text = f"the topic {topic} does not take a record: {error.str()}"
            raise NotWritten(text) from KafkaException(error)
        origin = ProducedOrigin(topic, key, value)
        self._failing.report(
            Failure(Stage.KAFKA_PRODUCE, class_name(self._task), KafkaException(error), origin)
        )
        self._frame.counters.add("total-records-skipped")

    def _write_letter(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Any, timestamp_ms: int | None
    ) -> None:
        self._writer.begin()
        self._writer.send(topic, key, value, headers, timestamp_ms)

    def report(self, record: SourceRecord, error: BaseException) -> None:
        """By the connector, of a record that it does not give to us."""
        self._failing.report(Failure(Stage.TASK_POLL, class_name(self._task), error, SourceOrigin(record)))
        self._frame.counters.add("total-records-skipped")
        self._offsets.see(record.source_partition, record.source_offset)
        self._has_reported = True

    def _pause_for(self, seconds: float) -> bool:
        self._frame.wait(seconds)
        return not self._frame.is_over

    def _pause(self) -> None:
        self._commit(self._frame.worker.flush_timeout_s)
        self._frame.paused()
        while self._frame.control.is_paused and not self._frame.is_over:
            self._writer.producer.poll(0)
            self._writer.check()
            self._frame.wait(PAUSED_S)

    def _commit_if_due(self, *, has_polled: bool) -> None:
        boundary = self._boundary
        if boundary is not None:
            if boundary.is_due(has_polled=has_polled or self._has_reported):
                self._commit(0)
        elif time.monotonic() >= self._next_commit_s:
            self._commit(self._frame.worker.flush_timeout_s)

    def _commit(self, timeout_s: float) -> bool:
        """Keeps the offsets of all that was polled. False: not yet, since it is not delivered within the time."""
        counters = self._frame.counters
        began_s = time.monotonic()
        self._next_commit_s = began_s + self._frame.worker.flush_interval_s
        is_kept = self._clients.keep(self._offsets, timeout_s)
        counters.took("offset-commit", time.monotonic() - began_s)
        counters.add("offset-commit-success" if is_kept else "offset-commit-failure")
        if not is_kept:
            log.warning("%s: offsets are not kept yet: records are not delivered yet", self._frame.name)
            return False
        self._has_reported = False
        if self._boundary is not None:
            self._boundary.committed()
        told, self._uncommitted = self._uncommitted, []
        for record in told:
            self._tell(record)
        self._calls.of(self._task.commit)()
        return True

    def _end(self, *, is_failed: bool) -> None:
        """What was delivered is kept, whatever has failed otherwise. A transaction that is not complete is given up."""
        if self._boundary is not None and (is_failed or not self._boundary.ends_complete):
            return
        try:
            self._commit(
                min(
                    END_FLUSH_S,
                    max(self._frame.worker.graceful_timeout_s, self._frame.worker.flush_timeout_s),
                )
            )
        except Exception as error:
            if not is_failed:
                raise
            log.debug("offsets of %s are not kept: %s", self._frame.name, error)


class _Context:
    """What the task sees."""

    def __init__(self, work: SourceWork) -> None:
        self._work = work
        self.connector, self.task = work._frame.connector, work._frame.task
        # For a source that keeps its offsets itself: `penstock.mirror.lane`.
        self.worker = work._frame.worker

    def offset(self, partition: SourcePlace) -> dict[str, Any] | None:
        return self._work._offsets.offset(partition)

    def offsets(self, partitions: Iterable[SourcePlace]) -> list[dict[str, Any] | None]:
        return self._work._offsets.offsets(partitions)

    def is_stopping(self) -> bool:
        frame = self._work._frame
        return frame.is_over or frame.control.is_paused

    def wait(self, seconds: float) -> None:
        self._work._frame.wait(seconds)

    def commit_transaction(self) -> None:
        if self._work._boundary is not None:
            self._work._boundary.ask()

    def report(self, record: SourceRecord, error: BaseException) -> None:
        self._work.report(record, error)


__all__ = ["SourceWork", "ToleranceExceeded"]
