"""Levels of the loggers of this worker, as /admin/loggers shows and sets them."""

from __future__ import annotations

import logging
import time
from typing import Any, Final

from penstock.connect.running.refusals import not_found

ROOT: Final = "root"
TRACE: Final = 5
_LEVELS: Final = {
    "OFF": logging.CRITICAL + 10,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
    "ALL": 1,
}
_NAMES: Final = {number: name for name, number in _LEVELS.items()}


class Loggers:
    def __init__(self) -> None:
        self._changed_ms: dict[str, int] = {}

    def all(self) -> dict[str, dict[str, Any]]:
        """Those that have a level of their own."""
        known = [name for name, one in logging.root.manager.loggerDict.items()
                 if isinstance(one, logging.Logger) and one.level != logging.NOTSET]  # fmt: skip
        return {name: self._document(name) for name in sorted({*known, ROOT})}

    def get(self, name: str) -> dict[str, Any]:
        if name != ROOT and name not in logging.root.manager.loggerDict:
            raise not_found(f"Logger {name} not found.")
        return self._document(name)

    def set(self, name: str, level: str) -> list[str]:
        """Those that it changes, of the logger and all below it."""
        number = number_of(level)
        below = [] if name == ROOT else [
            other for other, one in logging.root.manager.loggerDict.items()
            if other.startswith(name + ".") and isinstance(one, logging.Logger) and one.level != logging.NOTSET
        ]  # fmt: skip
        changed = sorted(each for each in {name, *below} if self._logger(each).level != number)
        for each in changed:
            self._logger(each).setLevel(number)
            self._changed_ms[each] = int(time.time() * 1000)
        return changed

    def _document(self, name: str) -> dict[str, Any]:
        number = self._logger(name).getEffectiveLevel()
        return {
            "level": _NAMES.get(number, logging.getLevelName(number)),
            "last_modified": self._changed_ms.get(name),
        }

    def _logger(self, name: str) -> logging.Logger:
        return logging.getLogger(None if name == ROOT else name)


def number_of(level: str) -> int:
    found = _LEVELS.get(level.upper())
    if found is None:
        raise not_found(f"invalid log level '{level}'.")
    return found
