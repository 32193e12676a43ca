"""Times as Java's SimpleDateFormat writes them, for the patterns that people give to Kafka's tools."""

import re
from collections.abc import Callable
from datetime import datetime

TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+|'")
# Letters that are numbers: what they count.
NUMBERS: dict[str, Callable[[datetime], int]] = {
    "M": lambda time: time.month,
    "d": lambda time: time.day,
    "H": lambda time: time.hour,
    "h": lambda time: time.hour % 12 or 12,
    "m": lambda time: time.minute,
    "s": lambda time: time.second,
    "S": lambda time: time.microsecond // 1000,
    "D": lambda time: time.timetuple().tm_yday,
}
NAMES_FROM_LETTERS = 3


def date_text(pattern: str, time: datetime) -> str:
    """ValueError for a pattern that is none, or has letters that are not known here."""
    parts = []
    end = 0
    for match in TOKEN.finditer(pattern):
        parts.append(_part(pattern, match, time))
        end = match.end()
    assert end == len(pattern)
    return "".join(parts)


def _part(pattern: str, match: re.Match[str], time: datetime) -> str:
    text = match.group()
    if match.group(1) is not None:
        return match.group(1).replace("''", "'") or "'"
    if text == "'":
        raise ValueError(f"an unterminated quote: {pattern}")
    letter = match.group(2)
    return text if letter is None else _field(pattern, letter, len(text), time)


def _field(pattern: str, letter: str, width: int, time: datetime) -> str:
    if letter == "y":
        return f"{time.year % 100:02d}" if width == 2 else f"{time.year:0{width}d}"
    if letter == "M" and width >= NAMES_FROM_LETTERS:
        return time.strftime("%b" if width == NAMES_FROM_LETTERS else "%B")
    if letter in NUMBERS:
        return f"{NUMBERS[letter](time):0{width}d}"
    if letter == "E":
        return time.strftime("%a" if width <= NAMES_FROM_LETTERS else "%A")
    if letter == "a":
        return time.strftime("%p")
    if letter in "Zz":
        return time.astimezone().strftime("%z" if letter == "Z" else "%Z")
    raise ValueError(f"a letter that is not known here: {letter} in {pattern}")
