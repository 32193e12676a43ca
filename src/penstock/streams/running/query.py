"""A running plan as its owner sees it: started, watched, asked, paused, stopped, removed."""

from __future__ import annotations

import base64
import logging
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from penstock.admin import Cluster, TopicPartition
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.spark.tasks.job import STOP_S, Launcher, LongJob
from penstock.spark.tasks.launching import SparkLauncher
from penstock.spark.tasks.states import FINAL, JobState, TaskError, TaskView
from penstock.streams.kernel.records import Row
from penstock.streams.kernel.state_values import unpack
from penstock.streams.kernel.topology import cut
from penstock.streams.plan.nodes import Plan
from penstock.streams.running import topics
from penstock.streams.running.layout import Cut, Layout
from penstock.streams.running.options import RunOptions, run_options
from penstock.streams.running.watchdog import EVENT, Where
from penstock.streams.running.worker import Program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("penstock.streams")

LOOK_S: Final = 30.0
TROUBLES_KEPT: Final = 100
SCAN_LIMIT: Final = 10_000


class RunningQuery:
    """Threads may share it. The offsets of the group `<application id>` tell anybody else how far it is."""

    def __init__(
        self,
        cut_plan: Cut,
        layout: Layout,
        options: RunOptions,
        launcher: Launcher,
        *,
        registry: Callable[[], Any] | None = None,
        query_id: str = "",
        on_change: Callable[[], None] = lambda: None,
        deliver: Callable[[Row], None] | None = None,
    ) -> None:
        """`start` makes one; this is for who has cut and laid out a plan himself."""
        self.options, self.layout = options, layout
        self.notices: list[str] = []
        """What has changed about its topics since it was started."""
        self._troubles: deque[dict[str, Any]] = deque(maxlen=TROUBLES_KEPT)
        self._stuck: dict[int, Where] = {}
        self._stuck_s: dict[int, float] = {}
        program = Program(cut_plan, layout, options, registry, query_id, deliver)
        self._job = LongJob(
            program,
            tasks=options.parallelism,
            name=options.application_id,
            launcher=launcher,
            on_change=on_change,
            on_event=self._on_event,
        )
        self._stopped = threading.Event()

    @classmethod
    def start(
        cls,
        plan: Plan,
        application_id: str,
        *,
        bootstrap: str,
        properties: Mapping[str, str] | None = None,
        spark: SparkSession | None = None,
        launcher: Launcher | None = None,
        parallelism: int | None = None,
        guarantee: str | None = None,
        registry: Callable[[], Any] | None = None,
        processing_log: str | None = None,
        dead_letters: str | None = None,
        fails_on_bad_records: bool = False,
        query_id: str = "",
        on_change: Callable[[], None] = lambda: None,
        deliver: Callable[[Row], None] | None = None,
    ) -> Self:
        """Makes the internal topics and starts the tasks, on Spark or by another launcher; returns before they run.

        `properties` are Kafka Streams' and the clients'. `parallelism`: the number of tasks; without it as many as the machine
        has cores, and never more than the largest topic has partitions. `registry` makes the client of a schema registry, in each
        task. CannotRun, BadOption and the errors of the admin library say why it cannot be started.
        """
        if (spark is None) == (launcher is None):
            raise ValueError("a plan runs on a Spark session or by a launcher: give one of them")
        chosen = launcher if launcher is not None else SparkLauncher(_given(spark))
        threads = (properties or {}).get("num.stream.threads")
        wanted = parallelism or (None if threads is not None else os.cpu_count() or 1)
        options = run_options(
            application_id,
            bootstrap,
            properties,
            parallelism=wanted,
            guarantee=guarantee,
            processing_log=processing_log,
            dead_letters=dead_letters,
            fails_on_bad_records=fails_on_bad_records,
        )
        cut_plan = partial(cut, plan)
        with topics.cluster_of(options) as cluster:
            layout = topics.prepare(cluster, cut_plan(), options)
            options = options.with_parallelism(min(options.parallelism, layout.largest))
            if options.is_exactly_once:
                topics.fence_others(cluster, options)
        made = cls(
            cut_plan,
            layout,
            options,
            chosen,
            registry=registry,
            query_id=query_id,
            on_change=on_change,
            deliver=deliver,
        )
        made.begin()
        return made

    def begin(self) -> None:
        self._job.start()
        threading.Thread(target=self._watch, name=f"penstock-watch-{self._job.name}", daemon=True).start()

    @property
    def application_id(self) -> str:
        return self.options.application_id

    @property
    def state(self) -> JobState:
        return self._job.state

    @property
    def reason(self) -> str | None:
        """Why it has failed for good."""
        return self._job.reason

    @property
    def errors(self) -> tuple[TaskError, ...]:
        """The last failures of tasks. They were, or will be, started again."""
        return self._job.errors

    @property
    def troubles(self) -> tuple[dict[str, Any], ...]:
        """Some of the last records that could not be read or processed; all of them are in the processing log."""
        return tuple(self._troubles)

    @property
    def stuck(self) -> tuple[str, ...]:
        """Of tasks that do not come back from a step: which, and for how long. The limit is `max.poll.interval.ms`."""
        return tuple(
            f"task {each.task}: {each.still_s:.0f} s in {self._stuck[each.task]}"
            for each in self.tasks
            if each.task in self._stuck and each.still_s >= self._stuck_s[each.task]
        )

    @property
    def tasks(self) -> tuple[TaskView, ...]:
        return self._job.tasks

    @property
    def counters(self) -> dict[str, Any]:
        """Of all tasks since each of them began: records read, written, restored, entries of stores, troubles by kind."""
        sums: Counter[str] = Counter()
        troubles: Counter[str] = Counter()
        for task in self.tasks:
            troubles.update(task.counters.get("troubles") or {})
            sums.update({name: n for name, n in task.counters.items() if isinstance(n, int)})
        return {**sums, "troubles": dict(troubles)}

    def lag(self) -> dict[TopicPartition, int]:
        """How many offsets each partition that is read has behind the committed one."""
        with topics.cluster_of(self.options) as cluster:
            places = [TopicPartition(*place) for place in self.layout.inputs()]
            ends = cluster.offsets.ends(partitions=places, committed=True)
            committed = cluster.groups.committed(self.application_id)
            spans = cluster.offsets.spans(*{place.topic for place in places})
        found = {}
        for place in places:
            at = committed[place].offset if place in committed else spans[place].start_offset
            found[place] = max(0, ends[place] - at)
        return found

    def wait_until_running(self, timeout_s: float) -> JobState:
        return self._job.wait_for(JobState.RUNNING, timeout_s=timeout_s)

    def pause(self) -> None:
        self._job.pause()

    def resume(self) -> None:
        self._job.resume()

    def stop(self, within_s: float = STOP_S) -> None:
        """Lets the tasks commit and end; those that take longer are cancelled."""
        self._stopped.set()
        self._job.stop(within_s)

    def clean_up(self) -> list[str]:
        """Deletes its internal topics and its group, for good; which topics there were. It must have been stopped."""
        if self.state not in FINAL:
            raise RuntimeError(f"{self.application_id} is {self.state}: stop it first")
        with topics.cluster_of(self.options) as cluster:
            return topics.remove(cluster, self.application_id)

    def get(self, store: str, key: bytes, partition: int, *, timeout_s: float = 10.0) -> Any:
        """What a store has under a key now, as the kernel keeps it. NotAnswered while its task is not there."""
        asked = {"store": store, "partition": partition, "key": _text(key)}
        answer = self._job.ask(partition % self.options.parallelism, "get", asked, timeout_s=timeout_s)
        return None if answer is None else unpack(base64.b64decode(answer))

    def scan(
        self,
        store: str,
        partition: int,
        first: bytes = b"",
        last: bytes | None = None,
        *,
        limit: int = SCAN_LIMIT,
        timeout_s: float = 10.0,
    ) -> list[tuple[bytes, Any]]:
        asked = {
            "store": store,
            "partition": partition,
            "first": _text(first),
            "last": None if last is None else _text(last),
            "limit": limit,
        }
        found = self._job.ask(partition % self.options.parallelism, "scan", asked, timeout_s=timeout_s)
        return [(base64.b64decode(key), unpack(base64.b64decode(value))) for key, value in found]

    def partitions_of_store(self, store: str) -> int:
        for part in self.layout.parts:
            if store in dict(part.changelogs) or store in dict(part.replayed):
                return part.partitions
        raise LookupError(f"{self.application_id} has no store '{store}'")

    def _on_event(self, task: int, name: str, data: Any) -> None:
        if name == EVENT and isinstance(data, dict):
            where, still_s = (
                Where(str(data.get("step")), str(data.get("function"))),
                float(data.get("still_s", 0)),
            )
            self._stuck[task], self._stuck_s[task] = where, still_s
            log.warning("%s: task %d is %.0f s in %s", self.application_id, task, still_s, where)
        if name == "trouble" and isinstance(data, dict):
            self._troubles.append({**data, "task": task, "time_ms": int(time.time() * 1000)})

    def _watch(self) -> None:
        while not self._stopped.wait(LOOK_S) and self.state not in FINAL:
            try:
                with topics.cluster_of(self.options) as cluster:
                    self._look(cluster)
            except (Refused, Unreachable, UserError, OSError) as error:
                log.info("%s: its topics cannot be looked at just now: %s", self.application_id, error)

    def _look(self, cluster: Cluster) -> None:
        for notice in topics.grown(cluster, self.layout):
            if notice not in self.notices:
                self.notices.append(notice)
                log.warning("%s: %s", self.application_id, notice)
        topics.purge(cluster, self.layout)


def _given(spark: SparkSession | None) -> SparkSession:
    assert spark is not None
    return spark


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
