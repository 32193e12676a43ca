"""How SimpleDateFormat reads: field by field, each taking what it can, and then as many months, days and hours as were read."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Final

from penstock.connect.data.logical import EPOCH
from penstock.connect.transforms.times import DAY_MS

MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
FIRST_TWO_DIGIT_YEAR: Final = 1946
"""Of two digits, the year is one from this on. Java takes the 80 years before the day on which the format was made, and the 20
behind it; here it is always the same, and the same everywhere."""
_NUMBERS: Final = "dDHKSWFhkmsuwyYML"
_MAX_DIGITS: Final = 10
_FIRST_DAY: Final = EPOCH.toordinal()
_MS_OF: Final = {"H": 3_600_000, "m": 60_000, "s": 1_000, "S": 1}
_ZONE_HOURS: Final = {
    "UTC": 0, "UT": 0, "GMT": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
    "CET": 1, "CEST": 2,
}  # fmt: skip
Part = tuple[str, int]
"""A letter and how often it stands there; or a text, and 0."""


_EXACT_WIDTHS: Final = {"y": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2, "S": 3}


class _Unreadable(Exception):
    pass


def exact_reader(parts: tuple[Part, ...]) -> Callable[[str], int | None] | None:
    """For patterns such as yyyy-MM-dd HH:mm:ss, a quick reader of texts that have exactly this form. None: of another form."""
    letters = [letter for letter, count in parts if count]
    if len(set(letters)) < len(letters) or not {"y", "M", "d"} <= set(letters):
        return None
    if any(count and _EXACT_WIDTHS.get(letter) != count for letter, count in parts):
        return None
    form = re.compile(
        "".join(f"(?P<{letter}>[0-9]{{{count}}})" if count else re.escape(letter) for letter, count in parts)
    )
    later = [letter for letter in letters if letter not in "yMd"]

    def read(text: str) -> int | None:
        found = form.fullmatch(text)
        if found is None:
            return None
        try:
            day = dt.date(int(found["y"]), int(found["M"]), int(found["d"])).toordinal()
        except ValueError:
            return None
        ms = (day - _FIRST_DAY) * DAY_MS
        for letter in later:
            ms += int(found[letter]) * _MS_OF[letter]
        return ms

    return read


def parsed_ms(parts: tuple[Part, ...], text: str) -> int | None:
    reader = _Reader(text)
    try:
        for number, part in enumerate(parts):
            follower = parts[number + 1] if number + 1 < len(parts) else None
            reader.take(part, is_abutting=follower is not None and _is_number(follower))
        return _ms(reader.fields)
    except (_Unreadable, OverflowError, ValueError):
        return None


def _is_number(part: Part) -> bool:
    letter, count = part
    return count > 0 and letter in _NUMBERS and not (letter in "ML" and count > 2)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.fields: dict[str, int] = {}

    def take(self, part: Part, *, is_abutting: bool) -> None:
        letter, count = part
        if not count:
            if not self._text.startswith(letter, self._at):
                raise _Unreadable
            self._at += len(letter)
            return
        while self._text[self._at : self._at + 1] in (" ", "\t") and self._at < len(self._text):
            self._at += 1
        if _is_number(part):
            self._set(letter, count, *self._number(count if is_abutting else None))
        elif letter in "zZX":
            self.fields["zone"] = self._zone(letter, count)
        else:
            self.fields["M" if letter == "L" else letter] = self._name(letter)

    def _number(self, width: int | None) -> tuple[int, int]:
        """What it is, and how many digits it has. `width`: it must not go further, as another number follows at once."""
        if width is not None and self._at + width > len(self._text):
            raise _Unreadable
        limit = len(self._text) if width is None else self._at + width
        sign = 1
        if self._text[self._at : self._at + 1] == "-" and self._at < limit:
            sign = -1
            self._at += 1
        end = self._at
        while end < limit and self._text[end].isdecimal():
            end += 1
        if end == self._at or end - self._at > _MAX_DIGITS:
            raise _Unreadable
        number, digits = int(self._text[self._at : end]), end - self._at
        self._at = end
        return sign * number, digits if sign > 0 else 0

    def _set(self, letter: str, count: int, value: int, digits: int) -> None:
        if letter in "yY" and count <= 2 and digits == 2:
            century = FIRST_TWO_DIGIT_YEAR - FIRST_TWO_DIGIT_YEAR % 100
            value += century + (100 if value < FIRST_TWO_DIGIT_YEAR % 100 else 0)
        self.fields["y" if letter == "Y" else "M" if letter == "L" else letter] = value

    def _name(self, letter: str) -> int:
        if letter in "ML":
            names = _forms(MONTHS, 1)
        elif letter == "E":
            names = _forms(DAYS, 1)
        else:
            names = {"am": 0, "pm": 1} if letter == "a" else {"bc": 0, "ad": 1}
        rest = self._text[self._at : self._at + 20].lower()
        best = max((name for name in names if rest.startswith(name)), key=len, default=None)
        if best is None:
            raise _Unreadable
        self._at += len(best)
        return names[best]

    def _zone(self, letter: str, count: int) -> int:
        """Minutes ahead of UTC."""
        first = self._text[self._at : self._at + 1]
        if letter == "X":
            if first == "Z":
                self._at += 1
                return 0
            return self._offset(has_minutes=count > 1, has_colon=count == 3)
        if first and first in "+-":
            return self._offset(has_minutes=True, has_colon=False)
        name = next((name for name in sorted(_ZONE_HOURS, key=len, reverse=True) if self._starts(name)), None)
        if name is None:
            raise _Unreadable
        self._at += len(name)
        if name == "GMT" and self._text[self._at : self._at + 1] in ("+", "-"):
            return self._offset(has_minutes=True, has_colon=True)
        return _ZONE_HOURS[name] * 60

    def _starts(self, name: str) -> bool:
        return self._text[self._at : self._at + len(name)].upper() == name

    def _offset(self, *, has_minutes: bool, has_colon: bool) -> int:
        sign = {"+": 1, "-": -1}.get(self._text[self._at : self._at + 1])
        if sign is None:
            raise _Unreadable
        self._at += 1
        hours = self._digits(1 if has_colon and self._text[self._at + 1 : self._at + 2] == ":" else 2)
        minutes = 0
        if has_minutes:
            if has_colon:
                if self._text[self._at : self._at + 1] != ":":
                    raise _Unreadable
                self._at += 1
            minutes = self._digits(2)
        if hours > 23 or minutes > 59:
            raise _Unreadable
        return sign * (hours * 60 + minutes)

    def _digits(self, count: int) -> int:
        found = self._text[self._at : self._at + count]
        if len(found) < count or not (found.isascii() and found.isdecimal()):
            raise _Unreadable
        self._at += count
        return int(found)


def _forms(names: tuple[str, ...], first: int) -> dict[str, int]:
    """Long and short."""
    found = {name.lower(): number for number, name in enumerate(names, first)}
    return found | {name[:3].lower(): number for number, name in enumerate(names, first)}


def _ms(fields: dict[str, int]) -> int:
    year = fields.get("y", 1970)
    if fields.get("G") == 0:
        year = 1 - year
    over, month = divmod(fields.get("M", 1) - 1, 12)
    if "D" in fields and "M" not in fields and "d" not in fields:
        start, day = dt.date(year, 1, 1), fields["D"]
    else:
        start, day = dt.date(year + over, month + 1, 1), fields.get("d", 1)
    if "H" in fields or "k" in fields:
        hour = fields["H"] if "H" in fields else fields["k"] % 24
    else:
        hour = fields.get("K", fields.get("h", 0) % 12) + 12 * fields.get("a", 0)
    minute = fields.get("m", 0) - fields.get("zone", 0)
    days = start.toordinal() - _FIRST_DAY + day - 1
    return (((days * 24 + hour) * 60 + minute) * 60 + fields.get("s", 0)) * 1000 + fields.get("S", 0)
