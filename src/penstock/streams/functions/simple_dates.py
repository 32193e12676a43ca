"""PARSE_DATE has patterns of another kind, Java's SimpleDateFormat: numbers take what digits there are, names in any form, and
what is too large goes over into the next month. What stands behind the date does not count."""

from __future__ import annotations

from typing import Final

from penstock.streams.functions.date_patterns import DAYS, MONTHS
from penstock.streams.functions.iso_times import DAY_MS, date_of, days_of
from penstock.streams.functions.refusals import FunctionFailed
from penstock.streams.functions.surroundings import WORLD
from penstock.streams.functions.zones import Zone, zone_of, zone_of_short_name

_NUMBERS: Final = "dDHKSWFhkmsuwyYML"
_LETTERS: Final = "GyYMLDEFHKSWadhkmsuwXZz"
Part = tuple[str, int]  # a letter and how often it stands there; or a text, and 0


def _parts(pattern: str) -> list[Part]:
    parts: list[Part] = []
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter.isascii() and letter.isalpha():
            if letter not in _LETTERS:
                raise FunctionFailed(f"Format '{letter}' not supported")
            end = at
            while pattern[end : end + 1] == letter:
                end += 1
            parts.append((letter, end - at))
            at = end
        else:
            text, at = _literal(pattern, at)
            parts.append((text, 0))
    return parts


def _literal(pattern: str, at: int) -> tuple[str, int]:
    """Up to the next letter; letters between quotes are text, too."""
    text = ""
    is_quoted = False
    while at < len(pattern):
        character = pattern[at]
        if character == "'":
            if pattern[at + 1 : at + 2] == "'":
                text += "'"
                at += 2
                continue
            is_quoted = not is_quoted
        elif not is_quoted and character.isascii() and character.isalpha():
            break
        else:
            text += character
        at += 1
    if is_quoted:
        raise FunctionFailed("Unterminated quote")
    return text, at


def _is_number(part: Part) -> bool:
    letter, count = part
    return count > 0 and letter in _NUMBERS and not (letter in "ML" and count > 2)


def parse_date(text: str, pattern: str) -> int:
    """Days since 1970; a time that is not midnight is refused."""
    parts = _parts(pattern)
    fields: dict[str, int] = {}
    zone: Zone | None = None
    at = 0
    for number, part in enumerate(parts):
        letter, count = part
        if count == 0:
            if not text.startswith(letter, at):
                raise FunctionFailed(f"Unparseable date: {text[:100]}")
            at += len(letter)
        elif _is_number(part):
            is_followed = number + 1 < len(parts) and _is_number(parts[number + 1])
            value, at = _number(text, at, count if is_followed else 0)
            _set(fields, letter, count, value)
        elif letter in "XZz":
            zone, at = _zone(text, at)
        else:
            at = _name(text, at, letter, fields)
    local = _local(fields)
    days, rest = divmod(local - (0 if zone is None else zone.offset_of_local(local) * 1000), DAY_MS)
    if rest:
        raise FunctionFailed("Date format contains time field.")
    return days


def _number(text: str, at: int, width: int) -> tuple[int, int]:
    if not width:
        while text[at : at + 1].isspace():
            at += 1
    end = at
    while end < len(text) and text[end].isdigit() and (not width or end - at < width) and end - at < 10:
        end += 1
    if end == at:
        raise FunctionFailed(f"Unparseable date: {text[:100]}")
    return int(text[at:end]), end


def _set(fields: dict[str, int], letter: str, count: int, value: int) -> None:
    if letter in "yY" and count <= 2 and value < 100:
        start = date_of(WORLD.now_ms() // DAY_MS)[0] - 80
        value += start - start % 100 + (100 if value < start % 100 else 0)
    fields["y" if letter == "Y" else "M" if letter == "L" else letter] = value


def _name(text: str, at: int, letter: str, fields: dict[str, int]) -> int:
    names: dict[str, int]
    match letter:
        case "M" | "L":
            names = _forms(MONTHS, 1)
        case "E":
            names = _forms(DAYS, 1)
        case "a":
            names = {"am": 0, "pm": 1}
        case _:
            names = {"ad": 1, "bc": 0}
    rest = text[at:].lower()
    best = max((name for name in names if rest.startswith(name)), key=len, default=None)
    if best is None:
        raise FunctionFailed(f"Unparseable date: {text[:100]}")
    fields["M" if letter == "L" else letter] = names[best]
    return at + len(best)


def _forms(names: tuple[str, ...], first: int) -> dict[str, int]:
    found = {name.lower(): number for number, name in enumerate(names, first)}
    return {**found, **{name[:3].lower(): number for number, name in enumerate(names, first)}}


def _zone(text: str, at: int) -> tuple[Zone, int]:
    end = at
    while end < len(text) and end - at < 64 and (text[end].isalnum() or text[end] in "/_+-:"):
        end += 1
    while end > at:
        try:
            return zone_of_short_name(text[at:end]) or zone_of(text[at:end]), end
        except FunctionFailed:
            end -= 1
    raise FunctionFailed(f"Unparseable date: {text[:100]}")


def _local(fields: dict[str, int]) -> int:
    year = fields.get("y", 1970)
    if fields.get("G") == 0:
        year = 1 - year
    if "D" in fields and "M" not in fields and "d" not in fields:
        days = days_of(year, 1, 1) + fields["D"] - 1
    else:
        over, month = divmod(fields.get("M", 1) - 1, 12)
        days = days_of(year + over, month + 1, 1) + fields.get("d", 1) - 1
    if "H" in fields or "k" in fields:
        hour = fields["H"] if "H" in fields else fields["k"] % 24
    else:
        hour = fields.get("K", fields.get("h", 0) % 12) + 12 * fields.get("a", 0)
    of_day = ((hour * 60 + fields.get("m", 0)) * 60 + fields.get("s", 0)) * 1000 + fields.get("S", 0)
    return days * DAY_MS + of_day
