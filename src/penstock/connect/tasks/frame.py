"""What the work of a task has around it: who it is, its configuration, its driver, its counters."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

from penstock.connect.tasks.assembly import CONNECTOR_CLASS, Assembly, Load
from penstock.connect.tasks.counters import Counters
from penstock.connect.tasks.settings import WorkerSettings
from penstock.spark.tasks.control import Control
from penstock.spark.tasks.states import Phase

SLICE_S: Final = 1.0
"""So often a task that waits says that it is there."""


class Stopping(Exception):
    """The task is to stop, or to begin anew, before it has begun or while it waits for the cluster."""


class Frame:
    """`is_over`: the task is to stop, or to begin anew. `tell` says a state to the driver, with what belongs to it."""

    def __init__(
        self,
        control: Control,
        *,
        connector: str,
        worker: WorkerSettings,
        load: Load,
        counters: Counters,
    ) -> None:
        self.control = control
        self.connector, self.task = connector, control.index
        self.worker = worker
        self.config: Mapping[str, str] = {}
        """Known when the task begins: it may name secrets that are looked up then."""
        self.counters = counters
        self.name = f"{connector}-{control.index}"
        self._load = load
        self._topics: set[str] = set()
        self._is_restart_asked = False
        self._changed = threading.Event()
        control.on_change(self._changed.set)
        self.state = ""
        self.version = ""

    @property
    def is_over(self) -> bool:
        return self.control.is_stopping or self._is_restart_asked

    def connector_class(self) -> type[Any]:
        return self._load(self.config.get(CONNECTOR_CLASS, ""), "source", "sink")

    def assemble(self) -> Assembly:
        task = self.connector_class().task_class()
        task.log = logging.getLogger(f"penstock.connect.{self.name}")
        task.configure(dict(self.config))
        self.version = str(task.version)
        return Assembly(task, self.config, self.worker.properties, self._load)

    def begin_anew(self) -> None:
        """Another thread asks for it."""
        self._is_restart_asked = True
        self._changed.set()

    def check(self) -> None:
        """While the task waits for somebody: it is still there."""
        self.control.progress()
        if self.is_over:
            raise Stopping

    def wait(self, seconds: float) -> None:
        """Returns early when the task is to stop, to begin anew, to pause or to resume."""
        deadline_s = time.monotonic() + seconds
        was_paused = self.control.is_paused
        while not self.is_over and self.control.is_paused == was_paused:
            self.control.progress()
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return
            if self._changed.wait(min(left_s, SLICE_S)):
                self._changed.clear()

    def running(self) -> None:
        if self.state != "RUNNING":
            self.tell("RUNNING")
        self.control.enter(Phase.RUNNING)

    def paused(self) -> None:
        if self.state != "PAUSED":
            self.tell("PAUSED")
        self.control.enter(Phase.PAUSED)

    def tell(self, state: str, **more: Any) -> None:
        self.state = state
        self.control.tell("status", {"state": state, "trace": None, "version": self.version, **more})

    def meet(self, topic: str) -> bool:
        """A topic that the connector uses; True the first time."""
        if topic in self._topics:
            return False
        self._topics.add(topic)
        self.control.tell("topic", {"name": topic})
        return True
