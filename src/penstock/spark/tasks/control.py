"""A task's end of the line to its driver."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from penstock.spark.tasks.frames import Line, Message, proof
from penstock.spark.tasks.states import Phase

log = logging.getLogger("penstock.spark.tasks")

BEAT_S: Final = 1.0
CONNECT_TIMEOUT_S: Final = 10.0
LOOPBACK: Final = "127.0.0.1"
RECONNECT_S: Final = 10.0  # as long as a driver may be out of reach
RETRY_S: Final = 0.2
LEAVE_S: Final = 10.0  # what a task that has lost its driver may take to end, before its process is ended


class Place(NamedTuple):
    """Which task this is, and where its driver listens."""

    address: tuple[str, int]
    secret: str
    job: str
    task: int
    tasks: int
    attempt: int
    owns_process: bool  # the process may be ended with the task


class Refused(Exception):
    """The driver does not want this task (any more)."""


class Control:
    """What a body sees of its driver. All of it may be used by any thread of the task."""

    def __init__(self, place: Place) -> None:
        self.index, self.tasks, self.attempt = place.task, place.tasks, place.attempt
        self._place = place
        self._changed = threading.Condition()
        self._is_stopping = self._is_paused = False
        self._phase: str = Phase.STARTING
        self._counters: Callable[[], Mapping[str, Any]] = dict
        self._progress_s = time.monotonic()
        self._questions: dict[str, Callable[[Any], Any]] = {}
        self._on_change: Callable[[], None] = lambda: None
        self._closing = False
        self._line = self._connect()
        self._thread = threading.Thread(target=self._listen, name="penstock-control", daemon=True)
        self._thread.start()

    @property
    def is_stopping(self) -> bool:
        """The body should finish what it is at, and return."""
        return self._is_stopping

    @property
    def is_paused(self) -> bool:
        return self._is_paused

    @property
    def owns_process(self) -> bool:
        """Nothing else is in this process: it may be ended with the task."""
        return self._place.owns_process

    def wait(self, timeout_s: float) -> None:
        """Until the driver asks for something else than before, or the time is over."""
        with self._changed:
            before = (self._is_stopping, self._is_paused)
            self._changed.wait_for(lambda: (self._is_stopping, self._is_paused) != before, timeout_s)

    def pause_for(self, seconds: float) -> None:
        """Returns earlier when the task is to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopping, seconds)

    def enter(self, phase: str) -> None:
        """Tells the driver at once. `Phase.RUNNING` is where it begins to be of use."""
        self.progress()
        if phase != self._phase:
            self._phase = phase
            self._send(self._beat())

    def progress(self) -> None:
        """The body has come round. A driver sees tasks that do not."""
        self._progress_s = time.monotonic()

    @property
    def still_s(self) -> float:
        """How long ago that was."""
        return time.monotonic() - self._progress_s

    def count(self, counters: Callable[[], Mapping[str, Any]]) -> None:
        """Asked for with every beat, on another thread: anything that is JSON."""
        self._counters = counters

    def on_change(self, call: Callable[[], None]) -> None:
        """Called, on another thread, when the task is to stop, pause or resume."""
        self._on_change = call

    def answer(self, question: str, handler: Callable[[Any], Any]) -> None:
        """Questions of the driver, answered on another thread than the body's: JSON in, JSON out."""
        self._questions[question] = handler

    def error(self, error: BaseException, *, is_fatal: bool = False) -> None:
        """Tells the driver; the body goes on or not, as it likes."""
        detail = "".join(traceback.format_exception(error))[-8000:]
        self._send(
            {
                "kind": "error",
                "time_ms": int(time.time() * 1000),
                "type": type(error).__name__,
                "message": str(error)[:4000],
                "detail": detail,
                "is_fatal": is_fatal,
            }
        )

    def tell(self, name: str, data: Any) -> None:
        """An event for the driver's `on_event`."""
        self._send({"kind": "event", "name": name, "data": data})

    def close(self, phase: str) -> None:
        """The last word."""
        self.enter(phase)
        self._closing = True
        self._line.hang_up()
        self._thread.join(CONNECT_TIMEOUT_S)
        self._line.close()

    def _connect(self) -> Line:
        connected = socket.create_connection(self._place.address, timeout=CONNECT_TIMEOUT_S)
        line = Line(connected)
        try:
            nonce = str(_first(line)[0]["nonce"])
            job, task = self._place.job, self._place.task
            line.send(
                {
                    "proof": proof(self._place.secret, nonce, job=job, task=task),
                    "job": job,
                    "task": task,
                    "attempt": self._place.attempt,
                    "process_id": os.getpid(),
                    "host": socket.gethostname(),
                    "phase": self._phase,
                }
            )
            told, *more = _first(line)
        except EOFError:
            line.close()
            raise Refused("the driver does not know this task any more") from None
        except BaseException:
            line.close()
            raise
        for message in ({**told, "kind": "told"}, *more):
            self._hear(message)
        return line

    def _listen(self) -> None:
        next_beat_s = time.monotonic() + BEAT_S
        while not self._closing:
            try:
                self._line.socket.settimeout(max(0.01, next_beat_s - time.monotonic()))
                for message in self._line.receive():
                    self._hear(message)
            except TimeoutError:
                pass
            except (EOFError, OSError, ValueError):
                if not self._closing and not self._is_stopping:
                    self._reconnect()
                elif not self._closing:
                    return
            if time.monotonic() >= next_beat_s:
                next_beat_s = time.monotonic() + BEAT_S
                self._send(self._beat())

    def _reconnect(self) -> None:
        deadline_s = time.monotonic() + RECONNECT_S
        self._line.close()
        while not self._closing and time.monotonic() < deadline_s:
            try:
                self._line = self._connect()
                return
            except Refused:
                break
            except ConnectionRefusedError:
                if self._place.address[0] == LOOPBACK:
                    break  # nobody listens there any more: the driver's process has gone
                time.sleep(RETRY_S)
            except (OSError, ValueError, KeyError):
                time.sleep(RETRY_S)
        if not self._closing:
            self._lose_driver()

    def _lose_driver(self) -> None:
        """Nobody asks for this task any more; one that does not end would be an orphan."""
        log.warning("task %d of %s has lost its driver, and ends", self.index, self._place.job)
        self._hear({"kind": "stop"})
        if self._place.owns_process:
            self._closing_or_end()

    def _closing_or_end(self) -> None:
        deadline_s = time.monotonic() + LEAVE_S
        while not self._closing and time.monotonic() < deadline_s:
            time.sleep(RETRY_S)
        if not self._closing:
            os.kill(os.getpid(), signal.SIGKILL)

    def _hear(self, message: Message) -> None:
        kind = message.get("kind")
        if kind == "ask":
            threading.Thread(target=self._answer, args=(message,), daemon=True).start()
            return
        with self._changed:
            before = (self._is_stopping, self._is_paused)
            self._is_stopping = self._is_stopping or kind == "stop" or bool(message.get("is_stopping"))
            if kind in ("pause", "resume"):
                self._is_paused = kind == "pause"
            elif kind == "told":
                self._is_paused = bool(message.get("is_paused"))
            self._changed.notify_all()
            is_changed = before != (self._is_stopping, self._is_paused)
        if is_changed:
            self._on_change()

    def _answer(self, message: Message) -> None:
        reply: Message = {"kind": "answer", "id": message.get("id")}
        try:
            handler = self._questions.get(str(message.get("name")))
            if handler is None:
                raise LookupError(f"the task does not answer '{message.get('name')}' (yet)")
            reply["data"] = handler(message.get("data"))
        except Exception as error:
            reply["error"] = f"{type(error).__name__}: {error}"
        try:
            self._send(reply)
        except (TypeError, ValueError) as error:
            self._send({"kind": "answer", "id": message.get("id"), "error": str(error)})

    def _beat(self) -> Message:
        try:
            counters = dict(self._counters())
        except Exception as error:  # they are read while the body changes them
            log.debug("no counters this time: %s", error)
            counters = {}
        return {
            "kind": "beat",
            "phase": str(self._phase),
            "counters": counters,
            "still_s": round(self.still_s, 3),
        }

    def _send(self, message: Message) -> None:
        try:
            self._line.send(message)
        except OSError as error:
            log.debug("the driver does not hear: %s", error)  # the listening thread sees to it


def _first(line: Line) -> list[Message]:
    deadline_s = time.monotonic() + CONNECT_TIMEOUT_S
    while time.monotonic() < deadline_s:
        messages = line.receive()
        if messages:
            return messages
    raise TimeoutError("the driver does not answer")
