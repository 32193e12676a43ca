"""The tasks of a connector at work: one long job."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from penstock.connect.running.desk import Desk
from penstock.connect.state.configs import Config
from penstock.connect.state.statuses import FAILED, RESTARTING
from penstock.connect.tasks import TaskProgram, task_log
from penstock.spark.tasks import JobState, LongJob
from penstock.spark.tasks.failures import NotAnswered
from penstock.spark.tasks.states import FINAL, Phase

log = logging.getLogger("penstock.connect")

ASK_S: Final = 5.0
OUT_OF_REACH_S: Final = 120.0  # longer than the pauses between starts


class TaskJob:
    """`configs`: as they are in the topic of configs; what they refer to goes to the tasks only."""

    def __init__(self, desk: Desk, name: str, config: Config, configs: Sequence[Config]) -> None:
        """What the configs refer to is looked up by the tasks. ConnectError; NoRoom."""
        self.config, self.configs = config, tuple(configs)
        self._desk, self._name = desk, name
        self._lost: set[int] = set()
        self._is_over = threading.Event()
        program = TaskProgram(name, config, self.configs, desk.options.worker)
        self._job = LongJob(
            program,
            tasks=len(configs),
            name=name,
            launcher=desk.launchers.get(),
            on_event=self._event,
            on_change=self._look,
        )

    @property
    def is_over(self) -> bool:
        """It has come to an end by itself."""
        return self._job.state in FINAL

    @property
    def reason(self) -> str | None:
        return self._job.reason

    @property
    def has_gaps(self) -> bool:
        """A task has ended by itself, since another worker has begun it too, or has been out of reach for long."""
        return any(
            view.phase == Phase.ENDED or (view.phase == Phase.LOST and view.silent_s > OUT_OF_REACH_S)
            for view in self._job.tasks
        )

    def start(self, *, is_paused: bool) -> None:
        if is_paused:
            self._job.pause()
        self._job.start()

    def pause(self) -> None:
        self._job.pause()

    def resume(self) -> None:
        self._job.resume()

    def stop(self, *, tells: bool = True) -> None:
        """Returns when the tasks are gone. What they tell until then counts, unless another worker has started them already."""
        if not tells:
            self._is_over.set()
        self._job.stop(self._desk.options.graceful_s)
        self._is_over.set()

    def restart(self, tasks: Iterable[int]) -> None:
        """Each begins anew. One that is not there is being started anyway."""
        for task in tasks:
            try:
                self._job.ask(task, "restart", timeout_s=ASK_S)
            except NotAnswered as error:
                log.info("task %s-%d could not be told to restart: %s", self._name, task, error)

    def counters(self) -> Mapping[int, Mapping[str, Any]]:
        return {view.task: view.counters for view in self._job.tasks}

    def _event(self, task: int, name: str, data: Any) -> None:
        if not isinstance(data, dict):
            return
        if name == task_log.EVENT:
            self._desk.logs.add(self._name, task, data)
        if self._is_over.is_set():
            return
        if name == "status":
            if data.get("state") == FAILED:
                log.warning("task %s-%d has failed: %s", self._name, task, _last_line(data.get("trace")))
            self._desk.tell_task(
                self._name, task, str(data.get("state")), trace=data.get("trace"), version=data.get("version")
            )
        elif name == "topic":
            self._desk.tell_topic(self._name, str(data.get("name")), task)

    def _look(self) -> None:
        """A process that has died tells nothing: that it is started again is told for it."""
        job = getattr(self, "_job", None)
        if job is None or self._is_over.is_set() or job.state == JobState.STOPPING:
            return
        for view in job.tasks:
            if view.phase == Phase.LOST and view.task not in self._lost:
                self._lost.add(view.task)
                self._desk.tell_task(self._name, view.task, RESTARTING)
            elif view.phase != Phase.LOST:
                self._lost.discard(view.task)


def _last_line(trace: Any) -> str:
    lines = str(trace or "").strip().splitlines()
    return lines[-1] if lines else "it does not say why"
