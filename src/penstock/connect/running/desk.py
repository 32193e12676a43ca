"""What the keepers of a worker share."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from penstock.connect import common_settings as common
from penstock.connect.plugins import SINK, SOURCE, Plugins
from penstock.connect.providers import Providers
from penstock.connect.running.launchers import Launchers
from penstock.connect.running.logs import ConnectorLogs
from penstock.connect.running.options import WorkerOptions
from penstock.connect.state import statuses
from penstock.connect.state.configs import Config
from penstock.connect.state.statuses import Status
from penstock.connect.state.values import Written
from penstock.connect.topics.book import Book


@dataclass
class Desk:
    options: WorkerOptions
    book: Book
    plugins: Plugins
    providers: Providers
    launchers: Launchers
    worker_id: str
    write: Callable[[Sequence[Written]], None]
    """Configs. Raises where this worker does not lead any more."""
    generation: Callable[[], int] = lambda: 0
    chance: Callable[[], float] = random.random
    logs: ConnectorLogs = field(default_factory=ConnectorLogs)

    def kind(self, config: Config) -> str:
        """source or sink."""
        found = self.plugins.find(config.get(common.CLASS, ""), SOURCE, SINK)
        return SOURCE if found is None else found.kind

    def version(self, config: Config) -> str | None:
        found = self.plugins.find(config.get(common.CLASS, ""), SOURCE, SINK)
        return None if found is None else found.version

    def status(self, state: str, *, trace: str | None = None, version: str | None = None) -> Status:
        return Status(state, self.worker_id, self.generation(), trace, version)

    def tell_connector(
        self, name: str, state: str, *, trace: str | None = None, version: str | None = None
    ) -> None:
        self.book.tell([statuses.connector_record(name, self.status(state, trace=trace, version=version))])

    def tell_task(
        self, name: str, task: int, state: str, *, trace: str | None = None, version: str | None = None
    ) -> None:
        self.book.tell([statuses.task_record(name, task, self.status(state, trace=trace, version=version))])

    def tell_topic(self, name: str, topic: str, task: int) -> None:
        if not self.options["topic.tracking.enable"] or topic in self.book.statuses.topics.get(name, {}):
            return
        self.book.tell([statuses.topic_record(name, topic, task=task, time_ms=int(time.time() * 1000))])

    def forget_tasks(self, name: str, since: int = 0) -> None:
        """Their statuses go."""
        gone = [task for task in self.book.statuses.tasks_of(name) if task >= since]
        if gone:
            self.book.tell([statuses.task_record(name, task, None) for task in gone], wait=True)

    def forget(self, name: str) -> None:
        known = self.book.statuses
        records = [statuses.task_record(name, task, None) for task in known.tasks_of(name)]
        records += [statuses.topic_removal(name, topic) for topic in known.topics_of(name)]
        if name in known.connectors:
            records.append(statuses.connector_record(name, None))
        self.book.tell(records, wait=True)
