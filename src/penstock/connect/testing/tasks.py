"""What tests of sources and of sinks have in common: a connector, one of its tasks, and what the task has said."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from penstock.connect.errors import ConnectError, RetriableError
from penstock.connect.interface import Connector, Task
from penstock.connect.plugins import PREDICATE, TRANSFORMATION, Plugins
from penstock.connect.records import ConnectRecord
from penstock.connect.tasks.calls import Calls
from penstock.connect.tasks.counters import Counters
from penstock.connect.tasks.failing import Failing, Failure, LeftOut, Origin, Policy, Stage, class_name
from penstock.connect.testing.checking import check, completed
from penstock.connect.transforms.chain import Chain

WAITED_MAX_S: Final = 60.0


class Report(NamedTuple):
    """A record that the task itself has refused (`context.report`), or that a transform could not take."""

    record: ConnectRecord
    error: BaseException


class TaskTest:
    """Entered, it starts the connector and its task; left, it stops both."""

    def __init__(
        self,
        connector: type[Connector],
        config: Mapping[str, str],
        *,
        task: int,
        max_tasks: int | None,
        real_waits: bool,
    ) -> None:
        check(connector, config)
        self.config = completed(connector, config)
        self.connector: Connector = connector()
        self.task_configs: list[dict[str, str]] = []
        """What the connector has made for its tasks."""
        self.task: Any = None
        self.reports: list[Report] = []
        self.failure: Exception | None = None
        """What has made the task fail. `restart` begins anew."""
        self.connector_failure: BaseException | None = None
        """What the connector has said with `context.fail`."""
        self.wants_reconfiguration = False
        self.waited_s = 0.0
        """So long the task has waited since the last call, or would have."""
        self._number = task
        self._max_tasks = int(self.config.get("tasks.max", "1")) if max_tasks is None else max_tasks
        self._real_waits = real_waits
        self._stopping = threading.Event()
        self._plugins = Plugins()
        self._failing = Failing(Policy.of(self.config), Counters(), self.name, lambda _: False)
        self._calls = Calls()
        self._chain: Chain | None = None

    @property
    def name(self) -> str:
        return f"{self.config['name']}-{self._number}"

    def __enter__(self) -> Self:
        self.connector.configure(dict(self.config))
        self.connector.context = _ConnectorContext(self)
        self.connector.start()
        self.reconfigure()
        self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What a failed test leaves behind must not hide why it failed.
        with contextlib.suppress(Exception) if kind is not None else contextlib.nullcontext():
            self._end()
            self.connector.stop()
        self._calls.close()

    def reconfigure(self) -> list[dict[str, str]]:
        """Asks the connector for its tasks' configurations again; the next `restart` has them."""
        self.wants_reconfiguration = False
        found = self.connector.task_configs(self._max_tasks)
        if len(found) > self._max_tasks:
            raise ConnectError(
                f"task_configs({self._max_tasks}) gives {len(found)} configurations: at most {self._max_tasks} may be"
            )
        for config in found:
            for name, value in config.items():
                if not isinstance(name, str) or not isinstance(value, str):
                    raise ConnectError(f"a task's configuration has texts only, not {name!r}: {value!r}")
        self.task_configs = [dict(config) for config in found]
        return self.task_configs

    def restart(self) -> None:
        """The task is stopped as a worker stops it, and another one begins where it ended."""
        self._end()
        self._begin()

    def crash(self) -> None:
        """The task's process is killed: nothing more is asked of it. Another one begins where the last commit was."""
        self._stopping.set()
        self._close_chain()
        self._forget()
        self._begin()

    def _make_task(self) -> Task:
        if self._number >= len(self.task_configs):
            raise ConnectError(
                f"the connector has made {len(self.task_configs)} tasks: there is no task {self._number}"
            )
        given = {**self.config, **self.task_configs[self._number]}
        task: Task = type(self.connector).task_class()
        task.log = logging.getLogger(f"penstock.connect.{self.name}")
        task.configure(given)
        if given.get("transforms", "").strip():
            self._chain = Chain.from_config(
                given, lambda name: self._plugins.load(name, TRANSFORMATION, PREDICATE)
            )
        self.failure = None
        self._stopping.clear()
        return task

    def _begin(self) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        raise NotImplementedError

    def _forget(self) -> None:
        """What a process knows that is killed."""
        raise NotImplementedError

    def _call(self, method: Callable[..., Any], *given: Any) -> Any:
        """A call of the task. All but a RetriableError makes it fail."""
        self.waited_s = 0.0
        try:
            return self._calls.of(method)(*given)
        except RetriableError:
            raise
        except Exception as error:
            self.failure = error
            raise

    def _stop_task(self) -> None:
        self._stopping.set()
        try:
            self._calls.of(self.task.stop)()
        finally:
            self._close_chain()

    def _close_chain(self) -> None:
        chain, self._chain = self._chain, None
        if chain is not None:
            chain.close()

    def _transformed(self, record: Any, origin: Origin) -> Any:
        """None where it is left out."""
        chain = self._chain
        if chain is None:
            return record
        try:
            return self._failing.run(Stage.TRANSFORMATION, chain, lambda: self._apply(chain, record), origin)
        except LeftOut:
            return None
        except ConnectError as error:
            self.failure = error
            raise

    def _apply(self, chain: Chain, record: Any) -> Any:
        try:
            return chain.apply(record)
        except Exception as error:
            self.reports.append(Report(record, error))
            raise

    def _report(self, stage: Stage, record: ConnectRecord, error: BaseException, origin: Origin) -> None:
        """ToleranceExceeded, unless `errors.tolerance` is all."""
        self.reports.append(Report(record, error))
        self._failing.report(Failure(stage, class_name(self.task), error, origin))

    def _wait(self, seconds: float) -> None:
        self.waited_s += seconds
        if self._real_waits:
            self._stopping.wait(seconds)
        elif self.waited_s > WAITED_MAX_S:
            raise AssertionError(
                f"the task has waited for more than {WAITED_MAX_S:.0f} s in one call: it should return after a second or "
                "so, and will be called again"
            )


class _ConnectorContext:
    def __init__(self, test: TaskTest) -> None:
        self._test = test

    def request_reconfiguration(self) -> None:
        self._test.wants_reconfiguration = True

    def fail(self, error: BaseException) -> None:
        self._test.connector_failure = error
