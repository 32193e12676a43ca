"""Sees when a task does not come back from a step: a function of the program that hangs, or loops for ever.

A thread beside the task's own looks how long ago that last made progress, and then at its stack: which step, which function,
which line. It costs the task nothing. What takes long outside of steps (a commit while brokers restart) is not its business.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

import penstock
from penstock.spark.tasks.control import Control
from penstock.streams.plan.nodes import Node

EVENT: Final = "stuck"
TELL_S: Final = 10.0
LOOK_S: Final = 1.0
LOOKS: Final = 5  # at least so many before the limit
_PACKAGE: Final = str(Path(penstock.__file__).parent)
_KERNEL: Final = str(Path(_PACKAGE, "streams", "kernel"))


class StepTooLong(RuntimeError):
    """A record took longer than `max.poll.interval.ms`."""


class Where(NamedTuple):
    step: str
    function: str  # of the program, with its place; empty: in the step itself

    def __str__(self) -> str:
        return f"{self.step}, in {self.function}" if self.function else self.step


class Watchdog:
    """Of the thread that makes it."""

    def __init__(self, control: Control, limit_s: float) -> None:
        self._control, self._limit_s = control, limit_s
        self._thread_id = threading.get_ident()
        self._ended = threading.Event()
        self._tell_s = self._first_tell_s = min(TELL_S, limit_s / 2)
        self._thread = threading.Thread(target=self._watch, name="penstock-watchdog", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.wait(min(LOOK_S, self._limit_s / LOOKS)):
            still_s = self._control.still_s
            if still_s < self._first_tell_s:
                self._tell_s = self._first_tell_s
                continue
            where = where_is(sys._current_frames().get(self._thread_id))
            if where is None:
                continue
            if still_s >= self._limit_s:
                self._control.error(
                    StepTooLong(
                        f"{still_s:.0f} s in {where}: more than max.poll.interval.ms, {self._limit_s * 1000:.0f}. A function "
                        "that never ends stops its task; mend it, or raise the limit"
                    ),
                    is_fatal=True,
                )
                return
            if still_s >= self._tell_s:
                self._tell_s = 2 * still_s
                told: dict[str, Any] = {"still_s": round(still_s, 1), **where._asdict()}
                self._control.tell(EVENT, told)


def where_is(frame: FrameType | None) -> Where | None:
    """None: in no step."""
    own: FrameType | None = None  # the program's function that was called last
    is_own = True
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_KERNEL):
            node = frame.f_locals.get("node")
            name = node.name if isinstance(node, Node) else ""
            return Where(f"step {name or Path(file).stem}", _place(own))
        if file.startswith((_PACKAGE, "<")):
            is_own = False
        elif is_own:
            own = frame
        frame = frame.f_back
    return None


def _place(frame: FrameType | None) -> str:
    if frame is None:
        return ""
    return f"{frame.f_code.co_name} ({Path(frame.f_code.co_filename).name}, line {frame.f_lineno})"
