"""A connector's instance in the server: its own code, which may fail and may hang."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from penstock.connect import common_settings as common
from penstock.connect.errors import ConnectError
from penstock.connect.interface import Connector
from penstock.connect.plugins import SINK, SOURCE, Plugins, loaded
from penstock.connect.providers import Providers
from penstock.connect.settings import Kind
from penstock.connect.state.configs import Config
from penstock.connect.tasks.settings import value_of

T = TypeVar("T")
log = logging.getLogger("penstock.connect")


class LeftBehind(Exception):
    """It has not come back, and something else was asked meanwhile."""


class Guard:
    """Calls of a connector's own code, each in a thread of its own: `is_over` says when nobody waits for it any more."""

    def __init__(self, changed: threading.Condition, is_over: Callable[[], bool]) -> None:
        self._changed, self._is_over = changed, is_over

    def call(self, name: str, call: Callable[[], T], *, then: Callable[[], None] = lambda: None) -> T:
        """What it returns or raises. LeftBehind; `then` is called if it comes back after that."""
        found: list[T] = []
        failed: list[BaseException] = []
        is_left = False

        def run() -> None:
            try:
                found.append(call())
            except BaseException as error:
                failed.append(error)
            with self._changed:
                self._changed.notify_all()
                late = is_left
            if late:
                try:
                    then()
                except Exception as error:
                    log.warning("%s, which was left behind: %s", name, error)

        thread = threading.Thread(target=run, name=f"penstock-connector-{name}", daemon=True)
        thread.start()
        with self._changed:
            self._changed.wait_for(lambda: bool(found or failed) or self._is_over())
            if not found and not failed:
                is_left = True
                raise LeftBehind(name)
        if failed:
            raise failed[0]
        return found[0]


class Context:
    """`ConnectorContext`."""

    def __init__(self, reconfigure: Callable[[], None], fail: Callable[[BaseException], None]) -> None:
        self._reconfigure, self._fail = reconfigure, fail

    def request_reconfiguration(self) -> None:
        self._reconfigure()

    def fail(self, error: BaseException) -> None:
        self._fail(error)


class Instance:
    def __init__(
        self, name: str, config: Config, plugins: Plugins, providers: Providers, context: Context
    ) -> None:
        """InvalidConfig; whatever the connector's own code raises."""
        self.name, self.config = name, config
        self._resolved = providers.resolved(config)
        self._providers = providers
        plugin = plugins.find(config.get(common.CLASS, ""), SOURCE, SINK)
        if plugin is None:
            raise ConnectError(f"there is no connector {config.get(common.CLASS)}")
        kind = cast(type[Connector], loaded(plugin))
        self.is_source = plugin.kind == SOURCE
        self.version = kind.version
        self.connector = kind()
        self.connector.configure(self._resolved)
        self.connector.context = context

    def start(self) -> None:
        self.connector.start()

    def stop(self) -> None:
        self.connector.stop()

    def task_configs(self) -> list[Config]:
        """As they are written: references instead of what they stand for. ConnectError."""
        most: int = value_of(self._resolved, common.TASKS_MAX, Kind.INT, 1)
        found = self.connector.task_configs(most)
        if len(found) > most:
            told = (
                f"The connector {self.name} has generated {len(found)} tasks, which is greater than {most}, the maximum number "
                "of tasks it is configured to create."
            )
            if value_of(self._resolved, common.ENFORCE, Kind.BOOLEAN, True):
                raise ConnectError(
                    f"{told} This is a bug of the connector; 'tasks.max.enforce' set to false lets it have them."
                )
            log.warning("%s", told)
        return [self._written(each) for each in found]

    def _written(self, given: Mapping[str, Any]) -> Config:
        references = {
            self._resolved[name]: text for name, text in self.config.items() if self._providers.refers(text)
        }
        own = {name: references.get(str(text), str(text)) for name, text in given.items() if text is not None}
        found = {**self.config, **own, "task.class": self._task_class()}
        found.pop("connector.plugin.version", None)
        return found

    def _task_class(self) -> str:
        """By Kafka Connect's name where it has one: its workers read it."""
        task = self.connector.task_class
        return task.java_names[0] if task.java_names else f"{task.__module__}.{task.__qualname__}"
