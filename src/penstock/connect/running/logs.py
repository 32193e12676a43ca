"""The last lines of each connector's log, in the memory of the worker that leads: of its tasks, wherever they run, and of the
connector itself. They begin anew with a new leader."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

LINES_MAX: Final = 1_000
"""Of one connector."""
CONNECTORS_MAX: Final = 1_000
"""Of more than so many the one that was silent for longest is forgotten."""
CHARACTERS_MAX: Final = 32 << 20
"""Of all connectors. Of more than so many the one that was silent for longest loses its lines."""
THREAD_PREFIXES: Final = ("penstock-keeper-", "penstock-connector-")
"""Of threads that work for one connector, named after it."""


class Line(NamedTuple):
    number: int
    """Counts from 0 over all connectors: who follows asks for what is after the last that he has seen."""
    time_ms: int
    level: str
    task: int | None
    """None: the connector itself."""
    logger: str
    text: str


class ConnectorLogs:
    """Shared between threads."""

    def __init__(self, lines_max: int = LINES_MAX, characters_max: int = CHARACTERS_MAX) -> None:
        self._lines_max = lines_max
        self._characters_max = characters_max
        self._characters = 0
        self._lock = threading.Lock()
        self._lines: OrderedDict[str, deque[Line]] = OrderedDict()
        self._next = 0

    def add(self, connector: str, task: int | None, told: Mapping[str, Any]) -> None:
        """`told`: time_ms, level, logger and text."""
        with self._lock:
            lines = self._lines.setdefault(connector, deque())
            self._lines.move_to_end(connector)
            time_ms = told.get("time_ms")
            line = Line(
                self._next,
                time_ms if isinstance(time_ms, int) else int(time.time() * 1000),
                str(told.get("level")),
                task,
                str(told.get("logger")),
                str(told.get("text")),
            )
            lines.append(line)
            self._next += 1
            self._characters += len(line.text)
            if len(lines) > self._lines_max:
                self._drop_from(lines)
            while len(self._lines) > CONNECTORS_MAX or self._characters > self._characters_max:
                silent, its_lines = next(iter(self._lines.items()))
                if silent == connector:
                    if len(lines) == 1:
                        break
                    self._drop_from(lines)
                else:
                    self._characters -= sum(len(each.text) for each in its_lines)
                    del self._lines[silent]

    def _drop_from(self, lines: deque[Line]) -> None:
        self._characters -= len(lines.popleft().text)

    def last(
        self, connector: str, count: int, *, after: int | None = None, task: int | None = None
    ) -> tuple[list[Line], int]:
        """The last lines in order, and the number to ask after next. `after`: none of that number or before; a number that is
        not known yet is one of a worker that led before, and all are told. `task`: of this one only."""
        with self._lock:
            known = list(self._lines.get(connector, ()))
            upto = self._next - 1
        since = -1 if after is None or after > upto else after
        found = [line for line in known if line.number > since and (task is None or line.task == task)]
        return found[-count:] if count else [], upto


class ConnectorHandler(logging.Handler):
    """Takes what threads of this worker write that work for one connector."""

    def __init__(self, logs: ConnectorLogs) -> None:
        super().__init__(logging.INFO)
        self._logs = logs

    def emit(self, record: logging.LogRecord) -> None:
        try:
            for prefix in THREAD_PREFIXES:
                name = threading.current_thread().name  # the record does not say: it costs
                if name.startswith(prefix):
                    text = record.getMessage()
                    if record.exc_info and record.exc_info[0] is not None:
                        text += f"\n{logging.Formatter().formatException(record.exc_info)}"
                    told = {
                        "time_ms": int(record.created * 1000),
                        "level": record.levelname,
                        "logger": record.name,
                        "text": text[:4_000],
                    }
                    self._logs.add(name.removeprefix(prefix), None, told)
                    return
        except Exception:
            self.handleError(record)
