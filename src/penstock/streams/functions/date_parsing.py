"""Texts as dates and times, by a Java pattern.

`parsed` gives the fields that stand in a text. `timestamp`, `date` and `time` make of them what is wanted, by Java's rules: what
is missing in a timestamp is that of 1970-01-01T00:00, a day that the month does not have is its last.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from penstock.streams.functions.date_patterns import DAYS, MONTHS, Element, Sign, elements_of, names_of
from penstock.streams.functions.iso_times import DAY_MS, date_of, days_of, is_leap, month_length
from penstock.streams.functions.refusals import FunctionFailed
from penstock.streams.functions.zones import Zone, zone_of, zone_of_short_name

Fields = dict[str, int]
_RANGES: Final = {
    "M": (1, 12), "Q": (1, 4), "d": (1, 31), "D": (1, 366), "H": (0, 24), "k": (1, 24), "K": (0, 11), "h": (1, 12),
    "m": (0, 59), "s": (0, 59), "n": (0, 999_999_999), "A": (0, DAY_MS - 1), "N": (0, DAY_MS * 1_000_000 - 1),
    "F": (1, 7), "w": (1, 53), "W": (0, 6), "e": (1, 7), "E": (1, 7),
}  # fmt: skip
_DATE_FIELDS: Final = frozenset("GuyYMQdDwWFeE")
_SAME: Final = {"L": "M", "q": "Q", "c": "e"}
_OFFSET_DIGITS: Final = 6


class Parsed:
    """The fields by their letters (S: nanoseconds of the second), and the zone that stands in the text."""

    def __init__(self) -> None:
        self.fields: Fields = {}
        self.zone: Zone | None = None

    def copy(self) -> Parsed:
        other = Parsed()
        other.fields, other.zone = dict(self.fields), self.zone
        return other


class _Mismatch(Exception):
    def __init__(self, at: int) -> None:
        self.at = at


def parsed(text: str, pattern: str) -> Parsed:
    elements = elements_of(pattern)
    try:
        found, end = _read(elements, 0, len(elements), text, 0, Parsed())
    except _Mismatch as mismatch:
        raise FunctionFailed(f"Text '{text[:100]}' could not be parsed at index {mismatch.at}") from None
    if end < len(text):
        raise FunctionFailed(f"Text '{text[:100]}' could not be parsed, unparsed text found at index {end}")
    return found


def _read(
    elements: tuple[Element, ...], at: int, stop: int, text: str, position: int, found: Parsed
) -> tuple[Parsed, int]:
    while at < stop:
        element = elements[at]
        at += 1
        if element.kind == "begin":
            end = _end_of(elements, at)
            try:
                found, position = _read(elements, at, end - 1, text, position, found.copy())
            except _Mismatch:
                pass
            at = end
        elif element.kind == "pad":
            position = _padded(text, position, element, elements[at], found)
            at += 1
        elif element.kind != "end":
            position = _READERS[element.kind](text, position, element, found)
    return found, position


def _end_of(elements: tuple[Element, ...], at: int) -> int:
    depth = 1
    while depth:
        depth += {"begin": 1, "end": -1}.get(elements[at].kind, 0)
        at += 1
    return at


def _padded(text: str, position: int, pad: Element, element: Element, found: Parsed) -> int:
    end = position + pad.most
    if end > len(text):
        raise _Mismatch(position)
    part = text[position:end].lstrip(" ")
    if _READERS[element.kind](part, 0, element, found) != len(part):
        raise _Mismatch(position)
    return end


def _literal(text: str, position: int, element: Element, found: Parsed) -> int:
    end = position + len(element.text)
    if text[position:end].lower() != element.text.lower():
        raise _Mismatch(position)
    return end


def _digits(text: str, position: int, least: int, most: int) -> int:
    """Where the digits end; there have to be `least`."""
    end = position
    while end < len(text) and end - position < most and text[end] in "0123456789":
        end += 1
    if end - position < least:
        raise _Mismatch(position)
    return end


def _number(text: str, position: int, element: Element, found: Parsed) -> int:
    start, sign = position, text[position : position + 1]
    if sign in ("+", "-") and sign:
        if element.sign is Sign.NONE or (sign == "+" and element.sign is Sign.NORMAL):
            raise _Mismatch(position)
        start += 1
    most = element.most
    end = _digits(text, start, element.least, most)
    if element.behind:  # leave their digits to the numbers behind
        end = max(start + element.least, min(end, _digits(text, start, 0, 99) - element.behind))
    width = end - start
    if element.sign is Sign.EXCEEDS and ((sign == "+") != (width > element.least)) and sign != "-":
        raise _Mismatch(position)
    value = int(text[start:end])
    if sign == "-" and not value:
        raise _Mismatch(position)
    _keep(found, element.field, -value if sign == "-" else value, position)
    return end


def _reduced(text: str, position: int, element: Element, found: Parsed) -> int:
    end = _digits(text, position, 2, 2)
    _keep(found, element.field, 2000 + int(text[position:end]), position)
    return end


def _fraction(text: str, position: int, element: Element, found: Parsed) -> int:
    end = _digits(text, position, element.least, element.most)
    _keep(found, "S", int(text[position:end].ljust(9, "0")), position)
    return end


def _text(text: str, position: int, element: Element, found: Parsed) -> int:
    rest = text[position:].lower()
    names = names_of(element.field, element.least)
    best = max((name for name in names if rest.startswith(name.lower())), key=len, default=None)
    if best is None:
        raise _Mismatch(position)
    number = names.index(best)
    _keep(found, element.field, number if element.field in "aG" else number + 1, position)
    return position + len(best)


def _offset(text: str, position: int, element: Element, found: Parsed) -> int:
    zero = element.text
    sign = text[position : position + 1]
    if sign not in ("+", "-") or not sign:
        if zero and text[position : position + len(zero)].lower() == zero.lower():
            found.zone = zone_of("Z")
            return position + len(zero)
        raise _Mismatch(position)
    at = _digits(text, position + 1, 2, 2)
    parts = [text[position + 1 : at]]
    colon = ":" if ":" in element.field else ""
    for name in ("MM", "SS"):
        is_needed, is_allowed = name in element.field, name.lower() in element.field.lower()
        next_at = at + len(colon)
        if (
            not is_allowed
            or text[at:next_at] != colon
            or not text[next_at : next_at + 2].isdigit()
            or len(text) < next_at + 2
        ):
            if is_needed:
                raise _Mismatch(position)
            break
        parts.append(text[next_at : next_at + 2])
        at = next_at + 2
    found.zone = _zone(sign + ":".join(parts), position)
    return at


_GMT: Final = re.compile(r"GMT(?:[+-][0-9]{1,2}(?::[0-9]{2}(?::[0-9]{2})?)?)?", re.IGNORECASE)


def _localized(text: str, position: int, element: Element, found: Parsed) -> int:
    match = _GMT.match(text, position)
    if match is None:
        raise _Mismatch(position)
    found.zone = _zone(match.group().upper(), position)
    return match.end()


def _zone(name: str, position: int) -> Zone:
    try:
        return zone_of(name)
    except FunctionFailed:
        raise _Mismatch(position) from None


def _zone_id(text: str, position: int, element: Element, found: Parsed) -> int:
    """The longest name of a zone that stands there."""
    end = position
    while end < len(text) and end - position < 64 and (text[end].isalnum() or text[end] in "/_+-:"):
        end += 1
    while end > position:
        name = text[position:end]
        short = zone_of_short_name(name) if element.kind == "zone_name" else None
        try:
            found.zone = short or zone_of(name)
            return end
        except FunctionFailed:
            end -= 1
    raise _Mismatch(position)


_READERS: Final[dict[str, Callable[[str, int, Element, Parsed], int]]] = {
    "literal": _literal,
    "number": _number,
    "reduced": _reduced,
    "fraction": _fraction,
    "text": _text,
    "offset": _offset,
    "localized": _localized,
    "zone": _zone_id,
    "zone_name": _zone_id,
}


def _keep(found: Parsed, field: str, value: int, position: int) -> None:
    field = _SAME.get(field, field)
    if found.fields.setdefault(field, value) != value:
        raise _Mismatch(position)


# ---------------------------------------------------------------- what the fields mean


def _checked(found: Parsed) -> Fields:
    for field, value in found.fields.items():
        least, most = _RANGES.get(field, (value, value))
        if not least <= value <= most:
            raise FunctionFailed(f"Invalid value for {field} (valid values {least} - {most}): {value}")
    return found.fields


def _year(fields: Fields) -> int | None:
    if "u" in fields:
        return fields["u"]
    if "y" not in fields:
        return None
    return 1 - fields["y"] if fields.get("G") == 0 else fields["y"]


def _days(fields: Fields) -> int | None:
    """The date that is whole: year, month and day, or year and day of the year."""
    year = _year(fields)
    if year is None:
        return None
    if not -999_999 < year < 999_999:
        raise FunctionFailed(f"The year {year} is too far away")
    days = None
    if "M" in fields and "d" in fields:
        days = days_of(year, fields["M"], min(fields["d"], month_length(year, fields["M"])))
    elif "D" in fields:
        if fields["D"] == 366 and not is_leap(year):
            raise FunctionFailed(f"Invalid date 'DayOfYear 366' as '{year}' is not a leap year")
        days = days_of(year, 1, 1) + fields["D"] - 1
    if days is not None and "E" in fields and (days + 3) % 7 + 1 != fields["E"]:
        raise FunctionFailed(f"Conflict found: the day of the week is not {DAYS[fields['E'] - 1]}")
    return days


def _hour(fields: Fields) -> int | None:
    if "H" in fields or "k" in fields:
        return fields["H"] if "H" in fields else fields["k"] % 24
    half = fields["K"] if "K" in fields else fields["h"] % 12 if "h" in fields else None
    return None if half is None or "a" not in fields else fields["a"] * 12 + half


def _of_day(fields: Fields) -> int | None:
    """The time that is whole: at least an hour, and nothing missing between what is there."""
    if "A" in fields or "N" in fields:
        return fields["A"] if "A" in fields else fields["N"] // 1_000_000
    hour = _hour(fields)
    gaps = ("m" not in fields and ("s" in fields or "S" in fields)) or ("s" not in fields and "S" in fields)
    if hour is None or gaps:
        return None
    nanoseconds = fields.get("S", fields.get("n", 0))
    if hour == 24 and (fields.get("m", 0) or fields.get("s", 0) or nanoseconds):
        raise FunctionFailed("Invalid value for HourOfDay (valid values 0 - 23): 24")
    return ((hour * 60 + fields.get("m", 0)) * 60 + fields.get("s", 0)) * 1000 + nanoseconds // 1_000_000


_PLAIN: Final = {"y": 4, "u": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2}


@lru_cache(1024)
def _plain_form(pattern: str) -> tuple[re.Pattern[str], tuple[str, ...]] | None:
    """For patterns of plain numbers, each with all its digits, which are most: where they stand, and what they are."""
    form, fields = "", ""
    for element in elements_of(pattern):
        width = _PLAIN.get(element.field, 0)
        if element.kind == "literal":
            form += re.escape(element.text)
        elif element.kind == "number" and width and element.least == width and element.field not in fields:
            form += f"([0-9]{{{width}}})"
            fields += element.field
        elif element.kind == "fraction" and element.most == 3:
            form += "([0-9]{3})"
            fields += "S"
        else:
            return None
    is_whole = "M" in fields and "d" in fields and ("y" in fields) != ("u" in fields)
    return (
        (re.compile(form, re.IGNORECASE), tuple(fields))
        if is_whole and "H" in fields and "m" in fields
        else None
    )


def _plain_timestamp(text: str, pattern: str) -> int | None:
    """The clock's time since 1970, where nothing is special about it."""
    form = _plain_form(pattern)
    match = None if form is None else form[0].fullmatch(text)
    if form is None or match is None:
        return None
    values = dict(zip(form[1], map(int, match.groups()), strict=True))
    year, month, day = values.get("y") or values.get("u") or 0, values["M"], values["d"]
    hour, minute, second = values["H"], values["m"], values.get("s", 0)
    if not (year > 0 and 0 < month <= 12 and 0 < day <= 28 and hour < 24 and minute < 60 and second < 60):
        return None
    if "S" in values and "s" not in values:
        return None
    return (
        days_of(year, month, day) * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + values.get("S", 0)
    )


def _partial_days(fields: Fields) -> int:
    """From 1970-01-01 on, field by field: year, month, day of the week, day of the month or of the year."""
    year = _year(fields)
    if fields.get("D") == 366 and year is None:
        raise FunctionFailed("Leap day cannot be parsed without supplying the year field")
    days = days_of(1970 if year is None else year, fields.get("M", 1), 1)
    if "E" in fields:
        days += fields["E"] - 1 - (days + 3) % 7
    in_year, in_month, _ = date_of(days)
    if "d" in fields:
        if fields["d"] > month_length(in_year, in_month):
            raise FunctionFailed(f"Invalid date '{MONTHS[in_month - 1].upper()} {fields['d']}'")
        days = days_of(in_year, in_month, fields["d"])
    return days_of(in_year, 1, 1) + fields["D"] - 1 if "D" in fields else days


def timestamp(text: str, pattern: str, zone: Zone) -> int:
    plain = _plain_timestamp(text, pattern)
    if plain is not None:
        return plain - zone.offset_of_local(plain) * 1000
    found = parsed(text, pattern)
    fields = _checked(found)
    if {"Y", "w"} <= fields.keys() and ("e" in fields or "E" in fields):
        raise FunctionFailed("Dates by weeks cannot be parsed")
    days = _days(fields)
    if days is None:
        days = _partial_days(fields)
    of_day = _of_day(fields)
    if of_day is None:
        hour = _hour(fields)
        if hour is None:
            hour = fields.get("a", 0) * 12 + (fields["K"] if "K" in fields else fields.get("h", 0) % 12)
        nanoseconds = fields.get("S", fields.get("n", 0))
        of_day = (
            (hour * 60 + fields.get("m", 0)) * 60 + fields.get("s", 0)
        ) * 1000 + nanoseconds // 1_000_000
    local = days * DAY_MS + of_day
    return local - (found.zone or zone).offset_of_local(local) * 1000


@lru_cache(16)
def _only_time(fields: frozenset[str]) -> bool:
    return not fields & _DATE_FIELDS


def time(text: str, pattern: str) -> int:
    found = parsed(text, pattern)
    fields = _checked(found)
    if not _only_time(frozenset(fields)):
        raise FunctionFailed("Time format contains date field.")
    of_day = _of_day(fields)
    if of_day is None:
        raise FunctionFailed("Unable to obtain LocalTime")
    return of_day % DAY_MS


def date(text: str, pattern: str) -> int:
    days = _days(_checked(parsed(text, pattern)))
    if days is None:
        raise FunctionFailed("Unable to obtain LocalDate")
    return days
