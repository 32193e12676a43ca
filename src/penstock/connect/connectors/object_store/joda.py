"""The patterns of `path.format`, as Joda-Time reads them: 'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from typing import Final

_TOKENS: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
Write = Callable[[dt.datetime], str]
_NUMBERS: Final[Mapping[str, Callable[[dt.datetime], int]]] = {
    "y": lambda when: when.year, "Y": lambda when: when.year, "x": lambda when: when.isocalendar().year,
    "w": lambda when: when.isocalendar().week, "e": lambda when: when.isoweekday(), "D": lambda when: when.timetuple().tm_yday,
    "M": lambda when: when.month, "d": lambda when: when.day, "H": lambda when: when.hour,
    "k": lambda when: when.hour or 24, "K": lambda when: when.hour % 12, "h": lambda when: when.hour % 12 or 12,
    "m": lambda when: when.minute, "s": lambda when: when.second,
}  # fmt: skip


class PathFormat:
    def __init__(self, pattern: str) -> None:
        """ValueError for what has no meaning."""
        self._writes: list[Write] = []
        end = 0
        for found in _TOKENS.finditer(pattern):
            if found.start() != end:
                break
            end = found.end()
            self._writes.append(_write(found))
        if end != len(pattern):
            raise ValueError(f"the pattern {pattern!r} is not understood from {pattern[end:]!r} on")

    def format(self, when: dt.datetime) -> str:
        return "".join([write(when) for write in self._writes])


def _write(found: re.Match[str]) -> Write:
    text, letter = found[1], found[2]
    if text is not None:
        shown = text.replace("''", "'") or "'"
        return lambda when: shown
    if letter is None:
        plain = found[0]
        return lambda when: plain
    return _letters(letter, len(found[0]))


def _letters(letter: str, count: int) -> Write:
    if letter == "M" and count >= 3:
        return lambda when: _MONTHS[when.month - 1][: None if count > 3 else 3]
    if letter == "E":
        return lambda when: _DAYS[when.weekday()][: None if count > 3 else 3]
    if letter == "a":
        return lambda when: "AM" if when.hour < 12 else "PM"
    if letter == "S":
        return lambda when: f"{when.microsecond // 1000:03}".ljust(count, "0")[:count]
    if letter == "Z":
        return lambda when: f"{when:%z}" if count == 1 else f"{when:%z}"[:3] + ":" + f"{when:%z}"[3:]
    number = _NUMBERS.get(letter)
    if number is None:
        raise ValueError(f"Illegal pattern component: {letter * count}")
    if letter in "yYx" and count == 2:
        return lambda when: f"{number(when) % 100:02}"
    return lambda when: f"{number(when):0{count}}"
