"""A whole plan in one process, over stores in memory: what TopologyTestDriver is for Kafka Streams.

    driver = Driver(plan, partitions={"clicks": 4})
    driver.pipe("clicks", key=b"ann", value=b'{"PAGE": "home"}', timestamp=1000)
    driver.outputs("VISITS")

A record and all that follows from it are worked off before `pipe` comes back. Records in internal topics wait their turn in the
order
in which they were written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from penstock.streams.kernel.memory_stores import MemoryStore
from penstock.streams.kernel.partitioner import partition_of
from penstock.streams.kernel.plan_task import PlanTask
from penstock.streams.kernel.records import Headers, InputRecord, OutputRecord, Row
from penstock.streams.kernel.state_values import pack, unpack
from penstock.streams.kernel.task import OnError, Trouble
from penstock.streams.kernel.topology import Subtopology, cut, partition_counts, tasks_of
from penstock.streams.plan.nodes import Plan


class Driver:
    """`partitions` of the source topics: one number for all, or by topic (else 1). Sinks have as many as `partitions` says for
    them.

    `delivered` are the rows of a plan that ends in `Deliver`, `troubles` what was left out; `deliver` and `on_error` take them
    in their place."""

    def __init__(
        self,
        plan: Plan,
        *,
        partitions: int | Mapping[str, int] = 1,
        registry: Any = None,
        on_error: OnError | None = None,
        on_output: Callable[[InputRecord], None] | None = None,
        deliver: Callable[[Row], None] | None = None,
    ) -> None:
        self.subtopologies = cut(plan)
        self.delivered: list[Row] = []
        self.troubles: list[Trouble] = []
        self._on_error = on_error if on_error is not None else self.troubles.append
        self._on_output = on_output
        self._deliver = deliver if deliver is not None else self.delivered.append
        self._registry = registry
        self._wanted = partitions
        topics = {topic for part in self.subtopologies for topic in (*part.topics, *part.global_topics)}
        self._counts = {topic: self.partitions_of(topic) for topic in topics}
        self._internal = partition_counts(self.subtopologies, self._counts)
        self._written: dict[str, list[InputRecord]] = {}
        self._offsets: dict[tuple[str, int], int] = {}
        self._queue: deque[InputRecord] = deque()
        self._wall_ms = 0
        self._stores = {
            (part.number, partition): {spec.name: MemoryStore() for spec in part.stores}
            for part in self.subtopologies
            for partition in range(self._tasks_of(part))
        }
        self._tasks: dict[tuple[int, int], PlanTask] = {}
        self._make_tasks({})

    def partitions_of(self, topic: str) -> int:
        return self._wanted if isinstance(self._wanted, int) else self._wanted.get(topic, 1)

    def topics(self) -> frozenset[str]:
        """What the plan reads from outside."""
        return frozenset(self._counts)

    def pipe(
        self,
        topic: str,
        *,
        key: bytes | None = None,
        value: bytes | None = None,
        timestamp: int = 0,
        headers: Headers = (),
        partition: int | None = None,
    ) -> None:
        """A record of a source topic. Without a partition it goes where its key belongs."""
        at = self._place(topic, key, partition, self._counts.get(topic, 1))
        self.process(InputRecord(topic, at, self._next_offset(topic, at), timestamp, key, value, headers))

    def process(self, record: InputRecord) -> None:
        self._queue.append(record)
        self._drain()
        self._punctuate()

    def advance_wall_clock(self, milliseconds: int) -> None:
        """It stands still but for this. Timers that are due are called, each once."""
        self._wall_ms += milliseconds
        self._punctuate()

    def _punctuate(self) -> None:
        """Also sets timers that are new."""
        for task in self._tasks.values():
            due_ms = task.due_ms()
            if due_ms is not None and due_ms <= self._wall_ms:
                task.punctuate(self._wall_ms)
        self._drain()

    def _drain(self) -> None:
        while self._queue:
            self._work(self._queue.popleft())

    def outputs(self, topic: str) -> list[InputRecord]:
        """All records of a sink so far, as a consumer would read them, in the order in which they were written."""
        return self._written.get(topic, [])

    def restart(self) -> None:
        """All tasks end and come back with what their stores hold, as bytes would bring it."""
        times = {}
        for place, task in self._tasks.items():
            task.flush()
            times[place] = task.stream_time()
        for stores in self._stores.values():
            for name, store in stores.items():
                stores[name] = again = MemoryStore()
                for key, value in store.all():
                    again.put(key, unpack(pack(value)))
        self._make_tasks(times)

    def stores(self, name: str) -> dict[int, MemoryStore]:
        """A store's parts by partition."""
        return {partition: stores[name] for (_, partition), stores in self._stores.items() if name in stores}

    def _make_tasks(self, times: Mapping[tuple[int, int], int]) -> None:
        for part in self.subtopologies:
            for partition in range(self._tasks_of(part)):
                place = part.number, partition
                self._tasks[place] = part.make_task(
                    partition=partition,
                    stores=self._stores[place],
                    output=self._write,
                    on_error=self._on_error,
                    registry=self._registry,
                    deliver=self._deliver,
                    stream_time=times.get(place, -1),
                )
        self._punctuate()

    def _tasks_of(self, part: Subtopology) -> int:
        return max(tasks_of(part, self._counts, self._internal), default=1)

    def _work(self, record: InputRecord) -> None:
        for part in self.subtopologies:
            if record.topic in part.global_topics:
                for partition in range(self._tasks_of(part)):
                    self._tasks[part.number, partition].process(record)
            elif record.topic in part.topics or record.topic in part.internal:
                self._tasks[part.number, record.partition].process(record)

    def _write(self, record: OutputRecord) -> None:
        internal = self._internal.get(record.topic)
        count = internal if internal is not None else self.partitions_of(record.topic)
        at = self._place(record.topic, record.key, record.partition, count)
        written = InputRecord(
            record.topic,
            at,
            self._next_offset(record.topic, at),
            record.timestamp,
            record.key,
            record.value,
            record.headers,
        )
        if internal is not None:
            self._queue.append(written)
            return
        self._written.setdefault(record.topic, []).append(written)
        if self._on_output is not None:
            self._on_output(written)
        if record.topic in self._counts:  # the plan reads what it writes
            self._queue.append(written)

    def _place(self, topic: str, key: bytes | None, partition: int | None, count: int) -> int:
        if partition is not None:
            return partition
        return 0 if key is None or count == 1 else partition_of(key, count)

    def _next_offset(self, topic: str, partition: int) -> int:
        offset = self._offsets.get((topic, partition), 0)
        self._offsets[topic, partition] = offset + 1
        return offset
