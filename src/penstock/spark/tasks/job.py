"""A job of long tasks: started, watched over, paused, stopped."""

from __future__ import annotations

import atexit
import logging
import random
import threading
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

from penstock.client.patience import Backoff
from penstock.spark.tasks.board import Entry, board_at
from penstock.spark.tasks.failures import NotAnswered
from penstock.spark.tasks.frames import Message, new_secret
from penstock.spark.tasks.program import RETRIES, WELL_AFTER_S, Body, Program
from penstock.spark.tasks.states import FINAL, JobState, Phase, TaskError, TaskView, state_of

log = logging.getLogger("penstock.spark.tasks")

ERRORS_KEPT: Final = 100
STOP_S: Final = 15.0
END_FAILED_S: Final = 5.0
GIVEN_S: Final = 1.0  # what a task gets that has made no progress for as long as it may take to stop
TOLD_S: Final = 3.0
JOIN_S: Final = 0.1
CANCEL_S: Final = 20.0
UNHEARD_S: Final = 1.0
ASK_S: Final = 10.0
RESTARTS: Final = Backoff(1.0, factor=2, max_s=60, jitter=0.2)


class Launcher(Protocol):
    host: str
    """The address of this process for its tasks."""

    def check(self, tasks: int) -> None:
        """NoRoom where there is none for so many."""

    def run(self, program: Program, name: str, attempts_before: int) -> None:
        """Runs all tasks; returns when they have come to an end, and raises when one of them cannot be had to run. Attempts are
        numbered from `attempts_before`."""

    def cancel(self, name: str) -> None:
        """Ends the tasks of this name at once."""

    def is_over(self) -> bool:
        """Nothing can be started here any more."""

    attempts: int
    """How often `run` starts a task that dies."""


class LongJob:
    """Threads may share it. `on_change` is called, on a thread of its own choice, when the state may have changed."""

    def __init__(
        self,
        body: Body,
        *,
        tasks: int,
        name: str,
        launcher: Launcher,
        restarts: Backoff = RESTARTS,
        retries: Backoff = RETRIES,
        well_after_s: float = WELL_AFTER_S,
        on_change: Callable[[], None] = lambda: None,
        on_event: Callable[[int, str, Any], None] = lambda task, name, data: None,
    ) -> None:
        if tasks < 1:
            raise ValueError("a job has at least one task")
        self.name = name
        self._launcher = launcher
        self._restarts = restarts
        self._well_after_s = well_after_s
        self._on_change, self._on_event = on_change, on_event
        self._state = JobState.NEW
        self._reason: str | None = None
        self._errors: deque[TaskError] = deque(maxlen=ERRORS_KEPT)
        self._has_failed = False
        self._changed = threading.Condition(threading.RLock())
        self._board = board_at(launcher.host)
        self.id = f"penstock-{name}-{uuid.uuid4().hex[:8]}"
        self._entry = Entry(self.id, new_secret(), tasks, self._look, self._on_message)
        self._program = Program(
            body, self._board.address, self._entry.secret, self.id, tasks, retries, well_after_s
        )
        self._thread: threading.Thread | None = None

    @property
    def state(self) -> JobState:
        return self._state

    @property
    def reason(self) -> str | None:
        """Why it has failed."""
        return self._reason

    @property
    def errors(self) -> tuple[TaskError, ...]:
        """The last ones, oldest first."""
        return tuple(self._errors)

    @property
    def tasks(self) -> tuple[TaskView, ...]:
        return tuple(task.view() for task in self._entry.tasks)

    def start(self) -> None:
        if self._thread is not None:
            raise RuntimeError(f"{self.name} has been started already")
        self._launcher.check(len(self._entry.tasks))
        self._board.put(self._entry)
        self._move(JobState.STARTING)
        _running.add(self)
        self._thread = _thread(self._launcher, self._supervise, f"penstock-job-{self.name}")
        self._thread.start()

    def wait_for(self, *states: JobState, timeout_s: float) -> JobState:
        """Until it is in one of these states, or in one that it never leaves, or the time is over: the state then."""
        with self._changed:
            self._changed.wait_for(lambda: self._state in states or self._state in FINAL, timeout_s)
            return self._state

    def pause(self) -> None:
        self._entry.is_paused = True
        self._board.send_all(self._entry, {"kind": "pause"})

    def resume(self) -> None:
        self._entry.is_paused = False
        self._board.send_all(self._entry, {"kind": "resume"})

    def stop(self, within_s: float = STOP_S) -> None:
        """Lets the tasks end what they are at, up to `within_s`; then they are cancelled. Returns when they are gone. One that
        had not come round for so long already is not waited for."""
        with self._changed:
            if self._thread is None:
                self._move(JobState.STOPPED)
            if self._state in FINAL and not self._entry.is_stopping:
                return
            self._entry.is_stopping = True
            self._move(JobState.STOPPING)
        self._board.send_all(self._entry, {"kind": "stop"})
        if threading.current_thread() is self._thread or self._thread is None:
            return
        # One that nobody has heard of waits for room, perhaps for ever.
        is_heard = any(task.line is not None for task in self._entry.tasks)
        if not self._wait_for_end(self._thread, within_s if is_heard else min(within_s, UNHEARD_S)):
            self._cancel()
            self._thread.join(CANCEL_S)

    def _wait_for_end(self, thread: threading.Thread, within_s: float) -> bool:
        began_s = told_s = time.monotonic()
        while thread.is_alive():
            thread.join(JOIN_S)
            now_s = time.monotonic()
            waited_s = now_s - began_s
            held_up = [each for each in self.tasks if each.phase != Phase.ENDED]
            is_stuck = any(each.still_s >= max(within_s, GIVEN_S) + waited_s for each in held_up)
            if waited_s >= within_s or (is_stuck and waited_s >= GIVEN_S):
                log.warning(
                    "%s has not stopped within %.0f s, and is cancelled: %s",
                    self.name,
                    waited_s,
                    _still(held_up),
                )
                return False
            if now_s - told_s >= TOLD_S:
                told_s = now_s
                log.warning("%s is being stopped, and waits for its tasks: %s", self.name, _still(held_up))
        return True

    def ask(self, task: int, question: str, data: Any = None, *, timeout_s: float = ASK_S) -> Any:
        """What a task's body answers. NotAnswered says why it does not."""
        if self._state in FINAL or self._thread is None:
            raise NotAnswered(f"{self.name} is {self._state}")
        return self._board.ask(self._entry, task, question, data, timeout_s)

    def _supervise(self) -> None:
        failures = 0
        attempts = 0
        try:
            while not self._entry.is_stopping:
                began_s = time.monotonic()
                try:
                    self._launcher.run(self._program, self.id, attempts)
                    break
                except Exception as error:
                    if self._entry.is_stopping:
                        break
                    if self._launcher.is_over():
                        self._finish(JobState.STOPPED, "Spark has been stopped")
                        return
                    self._note(error)
                attempts += self._launcher.attempts
                failures = 1 if time.monotonic() - began_s > self._well_after_s else failures + 1
                self._move(JobState.RESTARTING)
                self._pause_for(self._restarts.delay_s(failures, random.random))
                for task in self._entry.tasks:
                    if task.line is None:
                        task.phase = Phase.WAITING
        except BaseException as error:
            log.exception("the supervision of %s has a bug", self.name)
            self._finish(JobState.FAILED, f"{type(error).__name__}: {error}")
            raise
        if self._reason is not None:
            self._finish(JobState.FAILED, self._reason)
        else:
            self._finish(JobState.STOPPED if self._entry.is_stopping else JobState.ENDED, None)

    def _finish(self, state: JobState, reason: str | None) -> None:
        self._board.take(self._entry)
        _running.discard(self)
        self._reason = reason
        self._move(state)

    def _pause_for(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._entry.is_stopping, seconds)

    def _note(self, error: Exception) -> None:
        """Of the launcher: the cause is deep in what Spark says, and its first line says enough."""
        self._has_failed = True
        lines = [line for line in str(error).splitlines() if line.strip()]
        text = next((line for line in lines if "exited unexpectedly" in line or "Error" in line), None)
        message = text or (lines[0] if lines else "")
        self._errors.append(
            TaskError(
                -1, int(time.time() * 1000), type(error).__name__, message[:1000], str(error)[:8000], False
            )
        )

    def _on_message(self, task: int, message: Message) -> None:
        if message.get("kind") == "event":
            self._on_event(task, str(message.get("name")), message.get("data"))
            return
        if message.get("kind") != "error":
            return
        error = TaskError(
            task,
            int(message.get("time_ms", 0)),
            str(message.get("type")),
            str(message.get("message")),
            str(message.get("detail")),
            bool(message.get("is_fatal")),
        )
        self._errors.append(error)
        self._has_failed = True
        log.warning("task %d of %s: %s: %s", task, self.name, error.kind, error.message)
        if error.is_fatal and self._reason is None:
            self._reason = f"{error.kind}: {error.message}"
            threading.Thread(target=self._end_failed, daemon=True).start()
        self._on_change()

    def _end_failed(self) -> None:
        self.stop(END_FAILED_S)

    def _cancel(self) -> None:
        try:
            self._launcher.cancel(self.id)
        except Exception as error:
            log.warning("%s cannot be cancelled: %s", self.name, error)

    def _look(self) -> None:
        """The board has news."""
        with self._changed:
            if self._state in FINAL or self._state in (JobState.NEW, JobState.STOPPING):
                return
            phases = [task.phase for task in self._entry.tasks]
            found = state_of(phases, has_failed=self._has_failed, is_paused=self._entry.is_paused)
            if found in (JobState.RUNNING, JobState.PAUSED):
                self._has_failed = False
            elif any(phase == Phase.LOST for phase in phases):
                self._has_failed = True
            self._move(found)

    def _move(self, state: JobState) -> None:
        with self._changed:
            if state == self._state or self._state in FINAL:
                return
            self._state = state
            self._changed.notify_all()
        self._on_change()


def _thread(launcher: Launcher, target: Callable[[], None], name: str) -> threading.Thread:
    make = getattr(launcher, "thread", None)
    if make is not None:
        made: threading.Thread = make(target, name)
        return made
    return threading.Thread(target=target, name=name, daemon=True)


def _still(tasks: list[TaskView]) -> str:
    return ", ".join(f"task {each.task} has made no progress for {each.still_s:.0f} s" for each in tasks)


_running: weakref.WeakSet[LongJob] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """Before Spark is stopped, which would take the tasks away in the middle of their work."""
    jobs = list(_running)
    stopping = [threading.Thread(target=job.stop, daemon=True) for job in jobs]
    for thread in stopping:
        thread.start()
    for thread in stopping:
        thread.join(STOP_S + CANCEL_S)
