"""What a task writes to its log, told to the driver, so that one asks the worker for it and not the machine that it ran on.

A line belongs to the task when its thread wrote it, or its own logger (`self.log`), or anybody in a process that is the task's
alone. Bounded: a line is cut, and of more than `LINES_PER_S` in a second the rest is only counted. Secrets are hidden. What the
driver does not hear is in the log of the process only, where all of it is as before.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from penstock.spark.tasks.control import Control

EVENT: Final = "log"
LINES_PER_S: Final = 200
TEXT_MAX: Final = 4_000
OWN: Final = "penstock.spark.tasks"
"""Logs of the way to the driver are not sent that way."""

_formatter: Final = logging.Formatter()


class TaskLog(logging.Handler):
    """Use as a context, in the task's thread. `hidden` takes secrets out of a text."""

    def __init__(self, control: Control, logger: str, hidden: Callable[[str], str]) -> None:
        super().__init__(logging.INFO)
        self._control, self._logger, self._hidden = control, logger, hidden
        self._thread = threading.get_ident()
        self._second, self._lines, self._left_out = 0, 0, 0
        self._is_telling = threading.local()
        self._level: int | None = None
        self._heard: list[logging.Logger] = []

    def __enter__(self) -> Self:
        root = logging.getLogger()
        if not root.handlers:  # Python's handler of last resort would say nothing from now on
            root.addHandler(_last_resort)
        connect = logging.getLogger("penstock.connect")
        if self._control.owns_process and connect.level == logging.NOTSET:
            self._level = connect.level
            connect.setLevel(logging.INFO)
        self._heard = [root]
        penstock = logging.getLogger("penstock")
        if not penstock.propagate:  # a service's, which has a handler of its own
            self._heard.append(penstock)
        for each in self._heard:
            each.addHandler(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._heard:
            each.removeHandler(self)
        if self._level is not None:
            logging.getLogger("penstock.connect").setLevel(self._level)

    def emit(self, record: logging.LogRecord) -> None:
        if not self._is_mine(record) or getattr(self._is_telling, "now", False):
            return
        self._is_telling.now = True
        try:
            if self._has_room(record):
                self._tell(record.levelname, record.name, self._text(record), int(record.created * 1000))
        except Exception:
            self.handleError(record)
        finally:
            self._is_telling.now = False

    def _is_mine(self, record: logging.LogRecord) -> bool:
        if record.name.startswith(OWN):
            return False
        return (
            self._control.owns_process
            or threading.get_ident() == self._thread
            or record.name == self._logger
            or record.name.startswith(f"{self._logger}.")
        )

    def _has_room(self, record: logging.LogRecord) -> bool:
        second = int(time.monotonic())
        if second != self._second:
            left_out, self._left_out = self._left_out, 0
            self._second, self._lines = second, 0
            if left_out:
                text = f"{left_out} lines are left out here: they were more than {LINES_PER_S} in a second"
                self._tell("WARNING", self._logger, text, int(record.created * 1000))
        if self._lines >= LINES_PER_S:
            self._left_out += 1
            return False
        self._lines += 1
        return True

    def _text(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info and record.exc_info[0] is not None:
            text += "\n" + _formatter.formatException(record.exc_info)
        text = self._hidden(text)
        return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"

    def _tell(self, level: str, logger: str, text: str, time_ms: int) -> None:
        self._control.tell(EVENT, {"time_ms": time_ms, "level": level, "logger": logger, "text": text})


_last_resort: Final = logging.StreamHandler()
_last_resort.setLevel(logging.WARNING)
