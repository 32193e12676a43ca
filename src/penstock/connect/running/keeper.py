"""Makes a connector what the book says: its instance, its tasks, its status. A thread for each connector, at the leader.

It is woken when a record of the connector has come, when somebody asks for a restart, and when the connector wants other tasks.
Each time it looks at the book and does what is missing, so that it does not matter what it has missed.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Final

from penstock.connect.errors import ConnectError, InvalidConfig
from penstock.connect.plugins import SOURCE
from penstock.connect.providers import Secrets
from penstock.connect.running.desk import Desk
from penstock.connect.running.instance import Context, Guard, Instance, LeftBehind
from penstock.connect.running.job import TaskJob
from penstock.connect.running.refusals import NotLeader
from penstock.connect.state import configs, statuses
from penstock.connect.state.configs import Config, Target
from penstock.connect.tasks.fencing import fence
from penstock.connect.tasks.restarting import Restarting
from penstock.connect.topics.writing import Fenced

log = logging.getLogger("penstock.connect")

TRACE_CHARS: Final = 16_000
LOOK_S: Final = 5.0
WRITE_AGAIN_S: Final = 1.0


class Keeper:
    def __init__(self, name: str, desk: Desk, left: Callable[[Keeper], None] = lambda keeper: None) -> None:
        """`left`: it has ended, since its connector is gone."""
        self.name = name
        self._desk, self._left = desk, left
        self._changed = threading.Condition()
        self._is_woken = True
        self._is_over = self._has_left = False
        self._tells_end = True
        self._restarts_connector = False
        self._restarted_tasks: set[int] = set()
        self._asks_tasks = False
        self._told_failure: BaseException | None = None
        self._instance: Instance | None = None
        self.job: TaskJob | None = None
        self._is_paused = False
        self._failures = 0
        self._retry_s: float | None = None
        self._has_failed = False
        self._failed_config: Config | None = None
        self._wanted: tuple[Config | None, Target] = (None, Target.STARTED)
        self._guard = Guard(self._changed, self._is_left)
        self._thread = threading.Thread(target=self._run, name=f"penstock-keeper-{name}", daemon=True)

    # Called by others.

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> bool:
        """False: it has left, since the connector was gone."""
        with self._changed:
            self._is_woken = True
            self._changed.notify_all()
            return not self._has_left

    def restart(self, *, connector: bool, tasks: Iterable[int] = ()) -> None:
        with self._changed:
            self._restarts_connector = self._restarts_connector or connector
            self._restarted_tasks.update(tasks)
        self.wake()

    def end(self, *, tells: bool) -> None:
        """Asks it to end; `join` waits. `tells`: the status of what has ended is written."""
        with self._changed:
            self._is_over, self._tells_end = True, tells
        self.wake()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def wait_stopped(self, timeout_s: float) -> bool:
        """Until nothing runs any more."""
        with self._changed:
            return self._changed.wait_for(lambda: self._instance is None and self.job is None, timeout_s)

    # Its thread.

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_woken or self._is_over, self._pause_s())
                self._is_woken = False
                if self._is_over:
                    break
            try:
                if not self._look():
                    self._left(self)
                    return
            except LeftBehind:
                log.warning("The connector %s does not come back, and is left behind", self.name)
                self._instance = None
                self.wake()
            except (Fenced, NotLeader):
                log.info("The connector %s waits for the next leader", self.name)
            except Exception as error:
                self._failed(error)
        self._end()

    def _pause_s(self) -> float:
        if self._retry_s is None:
            return LOOK_S
        return min(LOOK_S, max(0.0, self._retry_s - time.monotonic()))

    def _is_left(self) -> bool:
        """What is waited for is not wanted any more. The lock is held."""
        return self._is_over or self._restarts_connector or self._said() != self._wanted

    def _said(self) -> tuple[Config | None, Target]:
        known = self._desk.book.configs
        return known.connectors.get(self.name), known.target(self.name)

    def _look(self) -> bool:
        """False: there is no such connector any more."""
        config, target = self._wanted = self._said()
        if config is None:
            self._stop_instance()
            self._stop_job()
            self._desk.forget(self.name)
            with self._changed:
                self._has_left = self._said()[0] is None  # it may have been made anew meanwhile
                return not self._has_left
        with self._changed:
            failure, self._told_failure = self._told_failure, None
            restarts, self._restarts_connector = self._restarts_connector, False
            tasks, self._restarted_tasks = self._restarted_tasks, set()
        if failure is not None:
            raise failure
        if restarts or config != self._failed_config:
            self._failures = 0 if config != self._failed_config else self._failures
            self._retry_s, self._has_failed = None, False
        if restarts:
            self._stop_instance()
        if target is Target.STOPPED:
            self._stop(config)
        elif target is Target.PAUSED:
            self._pause(config)
        elif not self._waits():
            self._start(config)
        if tasks and self.job is not None:
            self.job.restart(sorted(tasks))
        return True

    def _waits(self) -> bool:
        """After a failure: for its time, or for somebody."""
        if not self._has_failed:
            return False
        return self._retry_s is None or time.monotonic() < self._retry_s

    def _start(self, config: Config) -> None:
        is_new = self._instance is None or self._instance.config != config
        if is_new:
            self._stop_instance()
            context = Context(self._ask_tasks, self._fail)
            desk = self._desk
            made = self._guard.call(
                self.name, lambda: Instance(self.name, config, desk.plugins, desk.providers, context)
            )
            self._instance = made
            self._guard.call(self.name, made.start, then=made.stop)
            desk.tell_connector(self.name, statuses.RUNNING, version=made.version)
        with self._changed:
            asks, self._asks_tasks = self._asks_tasks, False
        instance = self._instance
        assert instance is not None
        known = self._desk.book.configs
        if is_new or asks or self.name in known.inconsistent:
            found = self._guard.call(self.name, instance.task_configs)
            if tuple(found) != known.tasks.get(self.name) or self.name in known.inconsistent:
                self._desk.write(configs.task_records(self.name, found))
        self._run_tasks(config, is_paused=False)
        if self.job is not None and self._is_paused:
            self.job.resume()
        self._is_paused = False
        self._has_failed, self._retry_s = False, None

    def _pause(self, config: Config) -> None:
        self._stop_instance()
        is_told = self._desk.book.statuses.connectors.get(self.name)
        if self.job is not None and not self._is_paused:
            self.job.pause()
        self._run_tasks(config, is_paused=True)
        self._is_paused = True
        if is_told is None or is_told.state != statuses.PAUSED or is_told.worker_id != self._desk.worker_id:
            self._desk.tell_connector(self.name, statuses.PAUSED, version=self._desk.version(config))

    def _stop(self, config: Config) -> None:
        self._stop_instance()
        self._stop_job()
        if self._desk.book.configs.tasks.get(self.name):
            self._desk.write(configs.task_records(self.name, []))
        self._desk.forget_tasks(self.name)
        is_told = self._desk.book.statuses.connectors.get(self.name)
        if is_told is None or is_told.state != statuses.STOPPED:
            self._desk.tell_connector(self.name, statuses.STOPPED, version=self._desk.version(config))

    def _run_tasks(self, config: Config, *, is_paused: bool) -> None:
        wanted = self._desk.book.configs.tasks.get(self.name, ())
        job = self.job
        if job is not None and job.is_over and job.reason is not None:
            reason = job.reason
            self._stop_job()
            raise ConnectError(f"the tasks of {self.name} cannot go on: {reason}")
        if job is not None and job.has_gaps:
            # Only who leads may take it back: this write fails for any other.
            self._desk.write(configs.task_records(self.name, wanted))
            self._stop_job()
        job = self.job
        if job is not None and (job.is_over or job.configs != wanted or job.config != config):
            self._stop_job()
        if self.job is None and wanted:
            self._desk.forget_tasks(self.name, since=len(wanted))
            self._fence(config, len(wanted))
            job = TaskJob(self._desk, self.name, config, wanted)
            job.start(is_paused=is_paused)
            self._set_job(job)

    def _fence(self, config: Config, tasks: int) -> None:
        """Those of an earlier start that have no successor: nobody else would shut them out."""
        worker, known = self._desk.options.worker, self._desk.book.configs
        if (
            not worker.is_exactly_once
            or self._desk.options.is_standalone
            or self._desk.kind(config) != SOURCE
        ):
            return
        before = known.fenced_tasks.get(self.name, 0)
        if before > tasks:
            fence(worker, self.name, self._desk.providers.resolved(config), range(tasks, before))
        if before != tasks:
            self._desk.write([configs.fencing_record(self.name, tasks)])

    def _stop_instance(self) -> None:
        instance, self._instance = self._instance, None
        if instance is None:
            return
        done = threading.Event()

        def stop() -> None:
            try:
                instance.stop()
            except Exception as error:
                log.warning("The connector %s did not stop as it should: %s", self.name, error)
            done.set()

        threading.Thread(target=stop, name=f"penstock-connector-{self.name}", daemon=True).start()
        if not done.wait(max(self._desk.options.graceful_s, 0.1)):
            log.warning("The connector %s has not stopped in time, and is left behind", self.name)
        with self._changed:
            self._changed.notify_all()

    def _stop_job(self, *, tells: bool = True) -> None:
        job = self.job
        if job is not None:
            job.stop(tells=tells)
        self._set_job(None)

    def _set_job(self, job: TaskJob | None) -> None:
        with self._changed:
            self.job = job
            self._changed.notify_all()

    def _failed(self, error: BaseException) -> None:
        """It is told, and tried again after a while. Its tasks go on, as Kafka's do."""
        config = self._wanted[0] or {}
        self._stop_instance()
        hidden = self._secrets(config).hidden
        trace = hidden("".join(traceback.format_exception(error)))[-TRACE_CHARS:]
        log.warning(
            "The connector %s has failed: %s: %s", self.name, type(error).__name__, hidden(str(error))
        )
        self._failures += 1
        self._has_failed, self._failed_config = True, config
        try:
            restarting = Restarting.of(config, self._desk.options.worker.properties)
            delay_s = restarting.delay_s(self._failures, error, self._desk.chance())
        except Exception:
            delay_s = None
        self._retry_s = None if delay_s is None else time.monotonic() + delay_s
        self._desk.tell_connector(self.name, statuses.FAILED, trace=trace, version=self._desk.version(config))

    def _secrets(self, config: Config) -> Secrets:
        try:
            return self._desk.providers.secrets(config)
        except InvalidConfig:
            return Secrets()  # they cannot be had now, so nobody had them

    def _ask_tasks(self) -> None:
        with self._changed:
            self._asks_tasks = True
        self.wake()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._told_failure = error
        self.wake()

    def _end(self) -> None:
        had_instance = self._instance is not None
        self._stop_instance()
        self._stop_job(tells=self._tells_end)
        if self._tells_end and had_instance:
            self._desk.tell_connector(self.name, statuses.UNASSIGNED)
