"""What is sent to every task of a connector. Calling it is the task's whole work."""

from __future__ import annotations

import ctypes
import logging
import os
import random
import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from penstock.connect.errors import InvalidConfig
from penstock.connect.interface import SourceConnector
from penstock.connect.tasks.assembly import Load, loader
from penstock.connect.tasks.counters import SINK_NAMES, SOURCE_NAMES, Counters
from penstock.connect.tasks.frame import Frame, Stopping
from penstock.connect.tasks.restarting import Restarting
from penstock.connect.tasks.settings import WorkerSettings
from penstock.connect.tasks.task_log import TaskLog
from penstock.connect.tasks.writing import Fenced
from penstock.spark.tasks.control import Control

log = logging.getLogger("penstock.connect")

TRACE_MAX: Final = 8000
FAILED_PHASE: Final = "failed"
WAIT_S: Final = 3600.0
HUNG_POLL_S: Final = 0.1


class TaskState(StrEnum):
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    UNASSIGNED = "UNASSIGNED"


@dataclass(frozen=True)
class TaskProgram:
    """`config` is the connector's, as its writer gave it; a task's configuration stands over it. Both may hold references to
    the worker's config providers, which are looked up in the task.

    Tells `status` ({"state", "trace", "version", …}) and `topic` ({"name"}). Answers `status`, and `restart`, which begins anew.
    """

    connector: str
    config: Mapping[str, str] = field(repr=False)
    task_configs: Sequence[Mapping[str, str]] = field(repr=False)
    worker: WorkerSettings
    load: Load | None = None
    """None: the plugins of the worker."""

    def __call__(self, control: Control) -> None:
        _Lives(self, control).run()


class Hung(BaseException):
    """Raised in the thread of a task that did not come back when it was to begin anew. No Exception: a connector that catches
    those would go on as if its records were written, and `errors.tolerance=all` would leave a record out for it."""


def _raise_in(thread: int, kind: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))


class _Lives:
    """A task from its first start to its end, over all that fails meanwhile."""

    def __init__(self, program: TaskProgram, control: Control) -> None:
        self._program, self._control = program, control
        self._counters = Counters()
        self._frame: Frame | None = None
        self._work: Any = None
        self._failures = 0
        self._thread = threading.get_ident()
        self._restarts = 0
        self._trace: str | None = None
        self._hidden: Callable[[str], str] = lambda text: text
        control.count(self._counters.read)
        control.answer("restart", self._restart)
        control.answer("status", self._status)

    def run(self) -> None:
        logger = f"penstock.connect.{self._program.connector}-{self._control.index}"
        with TaskLog(self._control, logger, lambda text: self._hidden(text)):
            self._run()

    def _run(self) -> None:
        while not self._control.is_stopping:
            try:
                if self._is_fenced_in_its_life():
                    return  # what is told of this task is its successor's to tell
            except Hung:
                pass  # it came back just before that was raised
        if self._frame is not None:
            self._frame.tell(TaskState.UNASSIGNED)

    def _is_fenced_in_its_life(self) -> bool:
        """From one start to the next."""
        frame = self._frame = self._make_frame()
        began_s = time.monotonic()
        failure = self._live(frame)
        if isinstance(failure, Fenced):
            log.info("%s ends: %s", frame.name, failure)
            return True
        if failure is not None:
            self._fail(frame, failure, time.monotonic() - began_s)
        elif not self._control.is_stopping:
            self._failures, self._trace = 0, None
            self._tell_restart(frame)
        return False

    def _make_frame(self) -> Frame:
        program, worker = self._program, self._program.worker
        return Frame(
            self._control,
            connector=program.connector,
            worker=worker,
            load=program.load or loader(worker.properties),
            counters=self._counters,
        )

    def _live(self, frame: Frame) -> Exception | None:
        """From start to end; what has made it fail."""
        self._control.enter("starting")
        try:
            frame.config = self._config()
            self._work = work = self._make_work(frame)
        except Exception as error:
            return error
        failure: Exception | None = None
        try:
            work.open()
            work.run()
        except (Stopping, Hung):
            pass
        except Exception as error:
            failure = error
        try:
            work.close()
        except (Exception, Hung) as error:
            log.warning("%s is not closed as it should be: %s", frame.name, error)
        return failure

    def _make_work(self, frame: Frame) -> Any:
        if issubclass(frame.connector_class(), SourceConnector):
            self._counters.begin(SOURCE_NAMES)
            from penstock.connect.tasks.source import SourceWork

            return SourceWork(frame)
        self._counters.begin(SINK_NAMES)
        from penstock.connect.tasks.sink import SinkWork

        return SinkWork(frame)

    def _config(self) -> dict[str, str]:
        """With what stands elsewhere."""
        program = self._program
        if self._control.index >= len(program.task_configs):
            raise InvalidConfig(f"there is no configuration for task {self._control.index}")
        given = {**program.config, **program.task_configs[self._control.index]}
        if not any("${" in value for value in given.values() if value is not None):
            return given
        from penstock.connect.providers import Providers

        providers = Providers.of(program.worker.properties)
        self._hidden = providers.secrets(given).hidden
        return providers.resolved(given)

    def _fail(self, frame: Frame, failure: Exception, ran_s: float) -> None:
        """Tells it, and waits until the task is to be started again."""
        if self._control.is_stopping:
            log.warning("%s has failed while it stopped: %s", frame.name, failure)
            return
        restarting = self._restarting(frame)
        self._failures = 1 if restarting.is_well_after(ran_s, self._failures) else self._failures + 1
        delay_s = restarting.delay_s(self._failures, failure, random.random())
        self._trace = self._hidden("".join(traceback.format_exception(failure)))[-TRACE_MAX:]
        log.error("%s has failed: %s: %s", frame.name, type(failure).__name__, self._hidden(str(failure)))
        frame.tell(
            TaskState.FAILED,
            trace=self._trace,
            failures=self._failures,
            restart_s=None if delay_s is None else round(delay_s, 3),
        )
        self._control.enter(FAILED_PHASE)
        deadline_s = None if delay_s is None else time.monotonic() + delay_s
        while not frame.is_over and (deadline_s is None or time.monotonic() < deadline_s):
            frame.wait(WAIT_S if deadline_s is None else deadline_s - time.monotonic())
        if self._control.is_stopping:
            return
        if frame.is_over:
            self._failures = 0  # somebody has asked for it, and may have mended what was wrong
        self._tell_restart(frame)

    def _tell_restart(self, frame: Frame) -> None:
        self._restarts += 1
        frame.tell(TaskState.RESTARTING)

    def _restarting(self, frame: Frame) -> Restarting:
        try:
            return Restarting.of(frame.config, self._program.worker.properties)
        except InvalidConfig as error:
            log.warning("%s: %s", frame.name, error)
            return Restarting()

    def _restart(self, _: Any) -> bool:
        frame = self._frame
        if frame is not None:
            frame.begin_anew()
            threading.Thread(
                target=self._end_if_hung, args=(frame,), name="penstock-connect-hung", daemon=True
            ).start()
        return True

    def _end_if_hung(self, frame: Frame) -> None:
        """A task whose code does not come back (it hangs in poll or put) is ended after the graceful time, and started again by
        whoever watches it. In a process of its own that is sure; in a thread, as a standalone worker has it, it ends where it
        next runs Python code."""
        deadline_s = time.monotonic() + self._program.worker.graceful_timeout_s
        while self._frame is frame and not self._control.is_stopping:
            if time.monotonic() > deadline_s:
                own = logging.getLogger(f"penstock.connect.{frame.name}")
                own.error("%s does not come back, and is ended", frame.name)
                if self._control.owns_process:
                    os.kill(os.getpid(), signal.SIGKILL)
                _raise_in(self._thread, Hung)
                return
            time.sleep(HUNG_POLL_S)

    def _status(self, _: Any) -> dict[str, Any]:
        frame, work = self._frame, self._work
        return {
            "state": TaskState.UNASSIGNED if frame is None or not frame.state else frame.state,
            "trace": self._trace if frame is not None and frame.state == TaskState.FAILED else None,
            "version": "" if frame is None else frame.version,
            "failures": self._failures,
            "restarts": self._restarts,
            "counters": self._counters.read(),
            **({} if work is None else work.status()),
        }
