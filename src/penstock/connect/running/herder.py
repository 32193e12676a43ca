"""What can be asked of a worker: the REST API and the command line call nothing else. All calls block.

Whoever is not the leader answers what it has read; what changes something raises `NotLeader` there.
"""

from __future__ import annotations

import concurrent.futures
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from penstock.connect import common_settings as common
from penstock.connect.errors import ConnectError, InvalidConfig
from penstock.connect.findings import Verdict, definitions
from penstock.connect.plugins import SINK, SOURCE, Plugins
from penstock.connect.providers import Providers
from penstock.connect.running.crew import Crew
from penstock.connect.running.desk import Desk
from penstock.connect.running.leading import Leading
from penstock.connect.running.loggers import Loggers, number_of
from penstock.connect.running.offsets import OffsetKeeping
from penstock.connect.running.refusals import (
    NotLeader,
    Refusal,
    bad_request,
    conflict,
    failed,
    no_connector,
    not_found,
    not_stopped,
)
from penstock.connect.state import configs, statuses
from penstock.connect.state.configs import Change, Config, Kind, Target
from penstock.connect.state.values import Written
from penstock.connect.topics.book import Book
from penstock.connect.topics.writing import Fenced
from penstock.connect.validation import Given, Validation

T = TypeVar("T")
log = logging.getLogger("penstock.connect")

CHECK_S: Final = 50.0
STOP_WAIT_S: Final = 20.0
UNKNOWN: Final = "unknown"


class Herder:
    def __init__(self, desk: Desk, leading: Leading, crew: Crew) -> None:
        self._desk, self._leading, self._crew = desk, leading, crew
        self._book: Book = desk.book
        self._validation = Validation(desk.plugins, desk.options.worker, desk.providers)
        self._offsets = OffsetKeeping(desk)
        self._loggers = Loggers()
        self._deciding = threading.Lock()
        self.cluster_id = ""

    @property
    def plugins(self) -> Plugins:
        return self._desk.plugins

    @property
    def providers(self) -> Providers:
        return self._desk.providers

    # What is there.

    def names(self) -> list[str]:
        with self._book.lock:
            return sorted(self._book.configs.connectors)

    def config(self, name: str) -> Config:
        with self._book.lock:
            found = self._book.configs.connectors.get(name)
        if found is None:
            raise no_connector(name)
        return found

    def info(self, name: str) -> dict[str, Any]:
        config = self.config(name)
        with self._book.lock:
            tasks = len(self._book.configs.tasks.get(name, ()))
        return {
            "name": name,
            "config": dict(config),
            "tasks": [{"connector": name, "task": number} for number in range(tasks)],
            "type": self._kind(config),
        }

    def status(self, name: str) -> dict[str, Any]:
        with self._book.lock:
            found = self._book.statuses.connectors.get(name)
            tasks = self._book.statuses.tasks_of(name)
            config = self._book.configs.connectors.get(name)
        if found is None or config is None:
            raise not_found(f"No status found for connector {name}")
        return _status_document(name, found, tasks, self._kind(config))

    def task_status(self, name: str, task: int) -> dict[str, Any]:
        with self._book.lock:
            found = self._book.statuses.tasks_of(name).get(task)
        if found is None:
            raise not_found(f"No status found for task {name}-{task}")
        return {"id": task, **found.document()}

    def tasks(self, name: str) -> list[dict[str, Any]]:
        self.config(name)
        with self._book.lock:
            tasks = self._book.configs.tasks.get(name, ())
        return [
            {"id": {"connector": name, "task": number}, "config": dict(config)}
            for number, config in enumerate(tasks)
        ]

    def logs(
        self, name: str, count: int, *, after: int | None = None, task: int | None = None
    ) -> dict[str, Any]:
        """The last lines of its log, and of its tasks', as the worker that leads has heard them."""
        self._must_lead()
        hidden = self.providers.secrets(self.config(name)).hidden
        lines, upto = self._desk.logs.last(name, count, after=after, task=task)
        return {"lines": [{**line._asdict(), "text": hidden(line.text)} for line in lines], "last": upto}

    def topics(self, name: str) -> dict[str, Any]:
        if not self._desk.options["topic.tracking.enable"]:
            raise Refusal(403, "Topic tracking is disabled.")
        with self._book.lock:
            return {name: {"topics": self._book.statuses.topics_of(name)}}

    def reset_topics(self, name: str) -> None:
        if not self._desk.options["topic.tracking.enable"]:
            raise Refusal(403, "Topic tracking is disabled.")
        if not self._desk.options["topic.tracking.allow.reset"]:
            raise Refusal(403, "Topic tracking reset is disabled.")
        with self._book.lock:
            known = self._book.statuses.topics_of(name)
        self._book.tell([statuses.topic_removal(name, topic) for topic in known], wait=True)

    def definitions(self, name: str) -> list[dict[str, Any]]:
        plugin = self.plugins.find(name)
        if plugin is None:
            raise not_found(f"Unknown plugin {name}.")
        try:
            return definitions(plugin)
        except InvalidConfig as error:
            raise failed(str(error)) from None

    # Checking.

    def validate(self, plugin: str, config: Given) -> dict[str, Any]:
        named = config.get(common.CLASS)
        if named and self._simple(named) != self._simple(plugin):
            raise bad_request(f"Included connector type {named} does not match request type {plugin}")
        try:
            return self._checked(config).document()
        except InvalidConfig as error:
            raise failed(
                f"org.apache.kafka.connect.runtime.rest.errors.BadRequestException: {error}"
            ) from None

    def _checked(self, config: Given) -> Verdict:
        """A connector's own check may hang: nobody waits for it without end."""
        return _within(lambda: self._validation.check(config), CHECK_S)

    def _check(self, config: Given) -> Config:
        try:
            refusal = self._checked(config).refusal()
        except InvalidConfig as error:
            raise bad_request(str(error)) from None
        if refusal is not None:
            raise bad_request(refusal)
        return {name: text for name, text in config.items() if text is not None}

    # Changing.

    def create(self, name: str, config: Given, target: Target = Target.STARTED) -> dict[str, Any]:
        self._must_lead()
        checked = self._check(self._named(name, config))
        with self._deciding:
            if name in self._book.configs.connectors:
                raise conflict(f"Connector {name} already exists")
            records = [] if target is Target.STARTED else [configs.target_record(name, target)]
            self._write([*records, configs.connector_record(name, checked)])
        return {"name": name, "config": dict(checked), "tasks": [], "type": self._kind(checked)}

    def put(self, name: str, config: Given) -> tuple[bool, dict[str, Any]]:
        """Whether it is new, and how it is now."""
        self._must_lead()
        checked = self._check(self._named(name, config))
        with self._deciding:
            is_new = name not in self._book.configs.connectors
            self._write([configs.connector_record(name, checked)])
        return is_new, {**self.info(name), "config": dict(checked)}

    def patch(self, name: str, changes: Given) -> dict[str, Any]:
        self._must_lead()
        while True:
            before = self.config(name)
            merged: dict[str, str | None] = {**before, **changes}
            checked = self._check({key: text for key, text in merged.items() if text is not None})
            with self._deciding:
                if self.config(name) == before:  # else somebody has changed it meanwhile
                    self._write([configs.connector_record(name, checked)])
                    return {**self.info(name), "config": dict(checked)}

    def delete(self, name: str) -> None:
        self._must_lead()
        with self._deciding:
            self.config(name)
            self._write(configs.removal_records(name))

    def set_target(self, name: str, target: Target) -> None:
        self._must_lead()
        with self._deciding:
            if name not in self._book.configs.connectors:
                raise not_found(f"Unknown connector {name}")
            records = [configs.target_record(name, target)]
            if target is Target.STOPPED and self._book.configs.tasks.get(name):
                records = [*configs.task_records(name, []), *records]
            self._write(records)

    def restart(
        self, name: str, *, with_tasks: bool = False, only_failed: bool = False
    ) -> dict[str, Any] | None:
        """The status that it has then, where tasks are asked for or only what has failed."""
        self._must_lead()
        keeper = self._keeper(name)
        if not with_tasks and not only_failed:
            keeper.restart(connector=True)
            return None
        with self._book.lock:
            known = self._book.statuses.connectors.get(name)
            tasks = self._book.statuses.tasks_of(name)
        if known is None:
            raise not_found(f"Status for connector {name} not found")
        connector = not only_failed or known.state == statuses.FAILED
        chosen = [
            task
            for task, status in tasks.items()
            if with_tasks and (not only_failed or status.state == statuses.FAILED)
        ]
        again = self._desk.status(statuses.RESTARTING)
        told = []
        if connector:
            known = known._replace(state=statuses.RESTARTING, trace=None)
            told.append(statuses.connector_record(name, again))
        for task in chosen:
            tasks[task] = tasks[task]._replace(state=statuses.RESTARTING, trace=None)
            told.append(statuses.task_record(name, task, again))
        self._book.tell(told, wait=True)
        keeper.restart(connector=connector, tasks=chosen)
        return _status_document(name, known, tasks, self._kind(self.config(name)))

    def restart_task(self, name: str, task: int) -> None:
        self._must_lead()
        keeper = self._keeper(name)
        if not 0 <= task < len(self._book.configs.tasks.get(name, ())):
            raise not_found(f"Unknown task: {name}-{task}")
        keeper.restart(connector=False, tasks=[task])

    # How far they are.

    def offsets(self, name: str) -> dict[str, Any]:
        return self._offsets.told(name, self.config(name))

    def alter_offsets(self, name: str, given: Any) -> str:
        config = self._stopped(name)
        return self._without_secrets(config, lambda: self._offsets.alter(name, config, given))

    def reset_offsets(self, name: str) -> str:
        config = self._stopped(name)
        return self._without_secrets(config, lambda: self._offsets.reset(name, config))

    def _without_secrets(self, config: Config, ask: Callable[[], str]) -> str:
        """In what the connector says of its refusal."""
        try:
            return ask()
        except (ConnectError, InvalidConfig) as error:
            raise type(error)(self.providers.secrets(config).hidden(str(error))) from None

    def _stopped(self, name: str) -> Config:
        self._must_lead()
        config = self.config(name)
        with self._book.lock:
            is_stopped = self._book.configs.target(name) is Target.STOPPED
            has_tasks = bool(self._book.configs.tasks.get(name))
        if not is_stopped or has_tasks:
            raise not_stopped(name)
        keeper = self._crew.keeper(name)
        if keeper is not None and not keeper.wait_stopped(STOP_WAIT_S):
            raise failed(f"The tasks of {name} have not stopped yet: try again in a few seconds.")
        return config

    # Loggers.

    def loggers(self) -> dict[str, Any]:
        return self._loggers.all()

    def logger(self, name: str) -> dict[str, Any]:
        return self._loggers.get(name)

    def set_logger(self, name: str, level: str) -> list[str]:
        return self._loggers.set(name, level)

    def set_logger_everywhere(self, name: str, level: str) -> None:
        """At all workers of the group."""
        self._must_lead()
        number_of(level)
        self._write([configs.logger_record(name, level.upper())])

    def on_change(self, change: Change) -> None:
        """A record has been read."""
        if change.kind is Kind.LOGGER:
            self._loggers.set(change.name, self._book.configs.loggers[change.name])
            return
        self._crew.changed(change)

    def write(self, records: Sequence[Written]) -> None:
        """For keepers."""
        self._write(records)

    def _write(self, records: Sequence[Written]) -> None:
        try:
            self._book.write(records)
        except Fenced:
            self._leading.lost()
            raise NotLeader from None

    def _must_lead(self) -> None:
        if not self._leading.leads:
            raise NotLeader

    def _keeper(self, name: str) -> Any:
        if name not in self._book.configs.connectors:
            raise not_found(f"Unknown connector: {name}")
        found = self._crew.keeper(name)
        if found is None:
            raise NotLeader
        return found

    def _named(self, name: str, config: Given) -> dict[str, str | None]:
        named = config.get(common.NAME)
        if named is not None and named != name:
            raise bad_request(
                f"Connector name configuration ({named}) doesn't match connector name in the URL ({name})"
            )
        return {**config, common.NAME: name}

    def _kind(self, config: Mapping[str, str]) -> str:
        found = self.plugins.find(config.get(common.CLASS, ""), SOURCE, SINK)
        return UNKNOWN if found is None else found.kind

    def _simple(self, name: str) -> str:
        """What Kafka compares: names without their packages and without Connector."""
        found = self.plugins.find(name, SOURCE, SINK)
        return found.name if found is not None else name.rpartition(".")[2].removesuffix("Connector")


def _status_document(
    name: str, connector: statuses.Status, tasks: Mapping[int, statuses.Status], kind: str
) -> dict[str, Any]:
    return {
        "name": name,
        "connector": connector.document(),
        "tasks": [{"id": task, **status.document()} for task, status in tasks.items()],
        "type": kind,
    }


def _within(call: Callable[[], T], timeout_s: float) -> T:
    """Refusal when it takes longer: its thread is left behind."""
    done: concurrent.futures.Future[T] = concurrent.futures.Future()

    def run() -> None:
        try:
            done.set_result(call())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="penstock-connect-check", daemon=True).start()
    try:
        return done.result(timeout_s)
    except concurrent.futures.TimeoutError:
        if done.done():
            raise
        raise failed("Request timed out: the connector has not checked its configuration in time.") from None
