"""One long task of a running plan: reads its partitions, has the kernel process them, writes and commits.

    open writer (fences its predecessor) → committed offsets → restore stores → read, process, commit … → commit, close

Whatever fails raises: the supervision calls the worker again, and it begins anew behind the last commit, with state restored.
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from penstock.client.librdkafka_calls import RETRIABLE_CODES, retriable_calls
from penstock.spark.tasks.control import Control
from penstock.spark.tasks.states import Phase
from penstock.streams.kernel.records import InputRecord, OutputRecord, Row
from penstock.streams.kernel.task import Task
from penstock.streams.running.assembly import Assembly
from penstock.streams.running.changelogs import LoggedStore
from penstock.streams.running.disk_stores import DiskStore, use_directory
from penstock.streams.running.layout import Cut, Layout
from penstock.streams.running.letters import Letters
from penstock.streams.running.memory_bound import MemoryBound
from penstock.streams.running.options import RunOptions
from penstock.streams.running.reading import Input, Place
from penstock.streams.running.restoring import Restoring, as_input, bounds_of
from penstock.streams.running.settings import CONSUMER_SETTINGS, begins_early, metadata_of, time_of
from penstock.streams.running.troubles import Troubles
from penstock.streams.running.watchdog import Watchdog
from penstock.streams.running.writing import writer_for

log = logging.getLogger("penstock.streams")

RESTORING: Final = "restoring"
SLICE: Final = 1000  # records that are taken at once
PUSH_S: Final = 0.010  # outputs are kept together for so long, if more records are there
IDLE_S: Final = 0.1
PAUSED_POLL_S: Final = 0.1
OFFSETS_TIMEOUT_S: Final = 30.0
END_TIMEOUT_S: Final = 5.0
MARKS_S: Final = 5.0  # how soon offsets are committed behind which there was no record
# Where nothing waits to be read, a commit that costs so little of the time is not put off.
EARLY_S: Final = {True: 0.010, False: 0.25}  # exactly once, at least once
EARLY_FACTOR: Final = 4


class Stopping(Exception):
    """The task is to stop before it has begun."""


@dataclass(frozen=True)
class Program:
    """What is sent to every task; calling it is the task's whole work."""

    cut: Cut
    layout: Layout
    options: RunOptions
    registry: Callable[[], Any] | None = None
    query_id: str = ""
    deliver: Callable[[Row], None] | None = None  # of a plan whose rows go to this process and to no topic

    def __call__(self, control: Control) -> None:
        worker = Worker(self, control)
        watchdog = Watchdog(control, self.options.step_limit_ms / 1000)
        try:
            worker.open()
            worker.run()
        except Stopping:
            pass
        finally:
            watchdog.close()
            worker.close()


class Worker:
    def __init__(self, program: Program, control: Control) -> None:
        self._program, self._control = program, control
        self._options, self._layout = program.options, program.layout
        self._writer = writer_for(
            self._options, control.index, frozenset(t for part in self._layout.parts for t in part.internal)
        )
        self._consumer = Consumer(
            {
                **CONSUMER_SETTINGS,
                **self._options.for_consumer(),
                "group.id": self._options.application_id,
                "auto.offset.reset": self._options.auto_offset_reset,
            },
            logger=log.getChild("client"),
        )
        if self._options.is_state_on_disk:
            use_directory(self._options.state_dir)
        self._assembly = Assembly(
            self._layout,
            program.cut(),
            task=control.index,
            tasks=control.tasks,
            make_store=DiskStore if self._options.is_state_on_disk else LoggedStore,
        )
        self._memory = MemoryBound(control.index, self._options.memory_max_bytes)
        self._inputs = self._assembly.inputs
        self._waiting = self._assembly.waiting
        query_id = program.query_id or self._options.application_id
        self._letters = Letters(self._options, self._write_aside)
        self._troubles = Troubles(
            self._options,
            query_id,
            self._log_trouble,
            control.tell,
            self._letters.write if self._options.dead_letters is not None else None,
        )
        self._is_dirty = False  # something has been processed since the last commit
        self._has_marks = False  # an end was reached, perhaps behind a mark of a transaction
        self._last_commit_s = time.monotonic()
        self._commit_took_s = 0.0
        self._globals: dict[Place, Callable[[InputRecord], None]] = {}
        self._global_positions: dict[Place, int] = {}
        self._timed: list[Task] = []
        self._max_idle_s = self._options.max_task_idle_ms / 1000
        self._read_count = self._commit_count = self._restored_count = 0
        control.count(self._counters)
        control.answer("get", self._get)
        control.answer("scan", self._scan)

    def open(self) -> None:
        self._control.enter(Phase.STARTING)
        self._writer.open()
        committed, times = self._committed()
        self._control.enter(RESTORING)
        restoring = Restoring(self._options, self._restored)
        restoring.changelogs(self._assembly.changelogs())
        registry = None if self._program.registry is None else self._program.registry()
        self._assembly.make_tasks(self._writer.send, self._troubles, registry, times, self._program.deliver)
        self._timed = self._assembly.timed()
        replays = self._assembly.replays()
        with self._troubles.known():
            restoring.replay({place: committed[place] for place in replays}, replays)
            self._globals = {place: _all(takers) for place, takers in self._assembly.globals().items()}
            self._global_positions = restoring.whole(self._globals)
        self._assembly.forget_changes()
        assignment = [
            TopicPartition(*place, offset or bounds_of(self._consumer, place)[0])
            for place, offset in self._global_positions.items()
        ]
        for place, each in self._inputs.items():
            each.committed = committed[place]
            each.position = each.committed if each.committed >= 0 else self._start_of(place)
            assignment.append(TopicPartition(*place, each.position))
        self._consumer.assign(assignment)

    def _start_of(self, place: Place) -> int:
        """Asked for once, and committed with the first records: nobody asks again after a failure, when it may be elsewhere."""
        first, end = bounds_of(self._consumer, place)
        return first if begins_early(place[0], self._layout, self._options) else end

    def run(self) -> None:
        control, writer = self._control, self._writer
        self._last_commit_s = time.monotonic()
        while not control.is_stopping:
            if control.is_paused:
                self._pause()
                continue
            control.enter(Phase.RUNNING)
            messages = self._take()
            if messages:
                self._process(messages)
            if self._waiting:
                self._drain()
            self._punctuate()
            writer.push()
            if len(messages) < SLICE:
                writer.hurry()
            self._commit_if_due(is_idle=not messages)
        self._commit()

    def close(self) -> None:
        self._writer.close()
        self._consumer.close()
        self._assembly.close()

    def _committed(self) -> tuple[dict[Place, int], dict[Place, int]]:
        """Offsets, -1 where there is none, and the stream times that were committed with them."""
        asked = [TopicPartition(*place) for place in self._inputs]
        found = retriable_calls(
            lambda: self._consumer.committed(asked, OFFSETS_TIMEOUT_S),
            "committed offsets",
            timeout_s=OFFSETS_TIMEOUT_S,
            log=log,
            codes=RETRIABLE_CODES,
        )
        for each in found:
            if each.error is not None:
                raise KafkaException(each.error)
        return {_place(each): max(each.offset, -1) for each in found}, {
            _place(each): time_of(each.metadata) for each in found
        }

    def _restored(self, count: int) -> None:
        self._restored_count = count
        self._control.progress()
        self._memory.check(self._assembly.entries)
        if self._control.is_stopping:
            raise Stopping

    def _take(self) -> list[Any]:
        """What is there; waits for the first until something is due."""
        now_s = time.monotonic()
        wait_s = IDLE_S
        if self._is_dirty:
            wait_s = min(wait_s, max(0.0, self._due_s(is_idle=True) - now_s))
        first = self._consumer.poll(wait_s)
        if first is None:
            return []
        return [first, *self._consumer.consume(SLICE, 0)]

    def _process(self, messages: list[Any]) -> None:
        inputs, monotonic, letters = self._inputs, time.monotonic, self._letters
        next_push_s = monotonic() + PUSH_S
        for message in messages:
            if message.error() is not None:
                self._on_error(message)
                continue
            offset = message.offset()
            found = inputs.get((message.topic(), message.partition()))
            if found is None:
                self._take_global(message, offset)
                continue
            if offset < found.next_offset() and not self._begins_anew(found, offset):
                continue
            record = as_input(message)
            found.is_at_end = False
            if found.lane.is_single:
                if not self._is_dirty:
                    self._begin()
                letters.at = record
                found.lane.process(record)
                found.position = offset + 1
                self._read_count += 1
            else:
                found.queue.append(record)
            if monotonic() >= next_push_s:
                next_push_s = self._push()

    def _take_global(self, message: Any, offset: int) -> None:
        place = message.topic(), message.partition()
        if offset >= self._global_positions[place]:
            self._letters.at = record = as_input(message)
            self._globals[place](record)
            self._global_positions[place] = offset + 1

    def _drain(self) -> None:
        """Of lanes with several topics: whatever may be processed now."""
        now_s, max_idle_s = time.monotonic(), self._max_idle_s
        next_push_s = now_s + PUSH_S
        for lane in self._waiting:
            while (found := lane.next(now_s, max_idle_s)) is not None:
                record = found.queue.popleft()
                if not self._is_dirty:
                    self._begin()
                self._letters.at = record
                lane.process(record)
                found.position = record.offset + 1
                self._read_count += 1
                now_s = time.monotonic()
                if now_s >= next_push_s:
                    next_push_s = self._push()
            for each in lane.inputs:
                self._hold(each)

    def _push(self) -> float:
        """In the middle of many records; when to do so again."""
        self._writer.push()
        self._control.progress()
        self._punctuate()
        now_s = time.monotonic()
        if now_s >= self._due_s(is_idle=False):
            self._commit()
        return now_s + PUSH_S

    def _punctuate(self) -> None:
        """Timers by the wall clock."""
        if not self._timed:
            return
        now_ms = int(time.time() * 1000)
        for task in self._timed:
            due_ms = task.due_ms()
            if due_ms is not None and due_ms <= now_ms:
                if not self._is_dirty:
                    self._begin()
                self._letters.at = None  # what fails has no record
                task.punctuate(now_ms)

    def _hold(self, found: Input) -> None:
        """One topic that runs ahead of the others fills no memory."""
        enough = self._options.buffered_records
        if len(found.queue) > enough and not found.is_held:
            self._consumer.pause([TopicPartition(*found.place)])
            found.is_held = True
        elif found.is_held and len(found.queue) <= enough // 2:
            self._consumer.resume([TopicPartition(*found.place)])
            found.is_held = False

    def _begin(self) -> None:
        self._writer.begin()
        self._is_dirty = True

    def _due_s(self, *, is_idle: bool) -> float:
        if is_idle and self._options.commit_interval_ms is None:
            early_s = EARLY_S[self._options.is_exactly_once]
            wait_s = min(max(early_s, EARLY_FACTOR * self._commit_took_s), self._options.commit_s)
        else:
            wait_s = self._options.commit_s
        return self._last_commit_s + wait_s

    def _commit_if_due(self, *, is_idle: bool) -> None:
        now_s = time.monotonic()
        if self._is_dirty:
            if now_s >= self._due_s(is_idle=is_idle):
                self._commit()
        elif self._has_marks and now_s - self._last_commit_s >= MARKS_S:
            self._has_marks = False
            if any(each.to_commit() != each.committed for each in self._inputs.values()):
                self._begin()
                self._commit()

    def _commit(self) -> None:
        if not self._is_dirty:
            return
        began_s = time.monotonic()
        self._memory.check(self._assembly.entries)
        self._assembly.flush(self._writer.change, int(time.time() * 1000))
        moved = {
            each: offset
            for each in self._inputs.values()
            if (offset := each.to_commit()) != each.committed and offset >= 0
        }
        positions = [
            TopicPartition(*each.place, offset, metadata_of(each.lane.stream_time()))
            for each, offset in moved.items()
        ]
        self._writer.commit(positions, self._consumer)
        for each, offset in moved.items():
            each.committed = offset
        self._is_dirty = False
        self._commit_count += 1
        self._last_commit_s = time.monotonic()
        self._commit_took_s = self._last_commit_s - began_s

    def _pause(self) -> None:
        """Commits, and keeps the connections until it goes on."""
        self._commit()
        assigned = self._consumer.assignment()
        self._consumer.pause(assigned)
        self._control.enter(Phase.PAUSED)
        while self._control.is_paused and not self._control.is_stopping:
            message = self._consumer.poll(PAUSED_POLL_S)
            self._control.progress()
            if message is not None:
                self._process([message])  # it was on its way, and a transaction must not stay open
                self._commit()
        held = {place for place, each in self._inputs.items() if each.is_held}
        self._consumer.resume([each for each in assigned if _place(each) not in held])

    def _on_error(self, message: Any) -> None:
        error = message.error()
        if error.code() == KafkaError._PARTITION_EOF:
            found = self._inputs.get((message.topic(), message.partition()))
            if found is not None:
                found.reach_end(message.offset())
                self._has_marks = True
        elif error.fatal() or error.code() not in RETRIABLE_CODES:
            raise KafkaException(error)
        else:
            log.warning("%s", error.str())

    def _begins_anew(self, found: Input, offset: int) -> bool:
        """librdkafka may give records a second time; a topic that was deleted and made again begins at its beginning."""
        ends = self._consumer.get_watermark_offsets(TopicPartition(*found.place), timeout=END_TIMEOUT_S)
        if ends is None or ends[1] >= found.next_offset():
            log.info("%s-%d gave record %d again", *found.place, offset)
            return False
        log.warning("%s-%d is shorter than before: it is read from %d", *found.place, offset)
        found.begin_anew(offset)
        return True

    def _log_trouble(self, topic: str, value: bytes) -> None:
        self._write_aside(OutputRecord(topic, None, value, int(time.time() * 1000)))

    def _write_aside(self, record: OutputRecord) -> None:
        if not self._is_dirty:  # a record of a table that every task reads whole
            self._begin()
        self._writer.send(record)

    def _counters(self) -> dict[str, Any]:
        return {
            "read": self._read_count,
            "written": self._writer.written,
            "commits": self._commit_count,
            "commit_ms": round(self._commit_took_s * 1000, 1),
            "restored": self._restored_count,
            "entries": self._assembly.entries(),
            "troubles": dict(self._troubles.counts),
        }

    def _get(self, asked: Any) -> str | None:
        """Packed as `kernel.state_values` does, in base 64; asked for by store, partition and key (base 64)."""
        store = self._assembly.store(asked["store"], asked["partition"])
        return _text(store.look_up(base64.b64decode(asked["key"])))

    def _scan(self, asked: Any) -> list[tuple[str | None, str | None]]:
        store = self._assembly.store(asked["store"], asked["partition"])
        first = base64.b64decode(asked.get("first") or "")
        last = None if asked.get("last") is None else base64.b64decode(asked["last"])
        found = store.look_through(first, last, int(asked.get("limit", 1000)))
        return [(_text(key), _text(value)) for key, value in found]


def _all(takers: list[Callable[[InputRecord], None]]) -> Callable[[InputRecord], None]:
    def take(record: InputRecord) -> None:
        for each in takers:
            each(record)

    return take


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _place(partition: TopicPartition) -> Place:
    return partition.topic, partition.partition
