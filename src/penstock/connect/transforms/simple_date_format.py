"""Java's SimpleDateFormat: patterns of letters, with which times are written and read. Always in UTC, with English names.

A pattern is made once; then `format` makes text of milliseconds since 1970, and `parse` milliseconds of text. Years go from 1 to
9999, and days before 1582 are those of today's calendar (Java has the Julian one there).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Final

from penstock.connect.data.logical import TIMESTAMP, timestamp_from_ms
from penstock.connect.transforms.simple_date_parsing import DAYS, MONTHS, Part, exact_reader, parsed_ms

_LETTERS: Final = "GyYMLwWDdFEuaHkKhmsSzZX"
_MAX_PATTERN: Final = 1_000
Text = Callable[[dt.datetime], str]


class SimpleDateFormat:
    __slots__ = ("_exact", "_others", "_parts", "_template", "pattern")

    def __init__(self, pattern: str) -> None:
        """ValueError, in Java's words."""
        if len(pattern) > _MAX_PATTERN:
            raise ValueError(f"A pattern has no more than {_MAX_PATTERN} characters")
        self.pattern = pattern
        self._parts = _parts(pattern)
        self._template, self._others = _template(self._parts)
        self._exact = exact_reader(self._parts)

    def format(self, ms: int) -> str:
        """DataError for a time that Python does not have."""
        when = timestamp_from_ms(TIMESTAMP, ms)
        return self._template.format(when, [write(when) for write in self._others])

    def parse(self, text: str) -> int | None:
        """Lenient as Java's: what is too large goes over into the next unit, and what stands behind does not count. None: it has
        not this form."""
        ms = self._exact(text) if self._exact is not None else None
        return parsed_ms(self._parts, text) if ms is None else ms

    @property
    def is_of_days(self) -> bool:
        """The text is the same for all times of a day."""
        return not any(count and letter in "aHkKhmsS" for letter, count in self._parts)


def _parts(pattern: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter.isascii() and letter.isalpha():
            end = at
            while pattern[end : end + 1] == letter:
                end += 1
            if letter not in _LETTERS:
                raise ValueError(f"Illegal pattern character '{letter}'")
            if letter == "X" and end - at > 3:
                raise ValueError(f"invalid ISO 8601 format: length={end - at}")
            parts.append((letter, end - at))
            at = end
        else:
            text, at = _literal(pattern, at)
            if text:
                parts.append((text, 0))
    return tuple(parts)


def _literal(pattern: str, at: int) -> tuple[str, int]:
    """Up to the next letter; letters between quotes are text, too, and two quotes are one."""
    text = ""
    is_quoted = False
    while at < len(pattern):
        character = pattern[at]
        if character == "'":
            if pattern[at + 1 : at + 2] == "'":
                text += "'"
                at += 1
            else:
                is_quoted = not is_quoted
        elif not is_quoted and character.isascii() and character.isalpha():
            break
        else:
            text += character
        at += 1
    if is_quoted:
        raise ValueError("Unterminated quote")
    return text, at


def _template(parts: tuple[Part, ...]) -> tuple[str, list[Text]]:
    """A text for `str.format`, with the time as its first argument and a list of other texts as the second."""
    template = ""
    others: list[Text] = []
    for letter, count in parts:
        if not count:
            template += letter.replace("{", "{{").replace("}", "}}")
        elif letter in _ATTRIBUTES and not (letter in "ML" and count > 2):
            template += f"{{0.{_ATTRIBUTES[letter]}:0{count}d}}"
        elif letter == "y" and count != 2:
            template += f"{{0.year:0{count}d}}"
        else:
            template += f"{{1[{len(others)}]}}"
            others.append(_writer(letter, count))
    return template, others


_ATTRIBUTES: Final = {"M": "month", "L": "month", "d": "day", "H": "hour", "m": "minute", "s": "second"}


def _writer(letter: str, count: int) -> Text:
    if letter in _NUMBERS:
        number = _NUMBERS[letter]
        return lambda when: f"{number(when):0{count}d}"
    if letter in "yY":
        if letter == "Y" and count != 2:
            return lambda when: f"{_week_year(when)[0]:0{count}d}"
        return lambda when: f"{(when.year if letter == 'y' else _week_year(when)[0]) % 100:02d}"
    if letter in "ML":
        return lambda when: MONTHS[when.month - 1] if count > 3 else MONTHS[when.month - 1][:3]
    if letter == "E":
        return lambda when: DAYS[_day_of_week(when)] if count > 3 else DAYS[_day_of_week(when)][:3]
    if letter == "a":
        return lambda when: "AM" if when.hour < 12 else "PM"
    text = {"G": "AD", "z": "Coordinated Universal Time" if count > 3 else "UTC", "Z": "+0000", "X": "Z"}[
        letter
    ]
    return lambda when: text


def _day_of_week(when: dt.datetime) -> int:
    """From Sunday on, which is 0."""
    return when.isoweekday() % 7


def _day_of_year(when: dt.datetime) -> int:
    return when.timetuple().tm_yday


def _week_year(when: dt.datetime) -> tuple[int, int]:
    """The year to which the week belongs, and its number: weeks begin on Sunday, and that of January 1st is the first."""
    saturday = when.toordinal() + 6 - _day_of_week(when)
    if saturday > dt.date.max.toordinal():
        return when.year + 1, 1
    last = dt.date.fromordinal(saturday)
    return last.year, (last.timetuple().tm_yday - 1) // 7 + 1


def _week_of_month(when: dt.datetime) -> int:
    first_day = (_day_of_week(when) - when.day + 1) % 7
    return (when.day - 1 + first_day) // 7 + 1


_NUMBERS: Final[dict[str, Callable[[dt.datetime], int]]] = {
    "S": lambda when: when.microsecond // 1000,
    "k": lambda when: when.hour or 24,
    "K": lambda when: when.hour % 12,
    "h": lambda when: when.hour % 12 or 12,
    "D": _day_of_year,
    "u": dt.datetime.isoweekday,
    "F": lambda when: (when.day - 1) // 7 + 1,
    "w": lambda when: _week_year(when)[1],
    "W": _week_of_month,
}
