"""Dates and times as texts, by a Java pattern."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from penstock.streams.functions.date_patterns import Element, Sign, elements_of, names_of
from penstock.streams.functions.iso_times import DAY_MS, date_of, days_of
from penstock.streams.functions.refusals import FunctionFailed
from penstock.streams.functions.zones import Zone, offset_text

_DATE_FIELDS = frozenset("uyYMLQqdDwWFEecG")


@dataclass(frozen=True)
class Moment:
    """What is written: a date (`days`), a time of day (`of_day`, milliseconds), or both, with a zone or without."""

    days: int | None = None
    of_day: int | None = None
    zone: Zone | None = None
    offset: int = 0
    epoch_ms: int = 0

    @cached_property
    def date(self) -> tuple[int, int, int]:
        if self.days is None:
            raise FunctionFailed("Unsupported field: a time has no date")
        return date_of(self.days)

    @cached_property
    def time(self) -> int:
        if self.of_day is None:
            raise FunctionFailed("Unsupported field: a date has no time")
        return self.of_day

    def zoned(self) -> Zone:
        if self.zone is None:
            raise FunctionFailed("Unable to extract ZoneId")
        return self.zone


def moment_in(epoch_ms: int, zone: Zone) -> Moment:
    offset = zone.offset_at(epoch_ms)
    days, of_day = divmod(epoch_ms + offset * 1000, DAY_MS)
    return Moment(days, of_day, zone, offset, epoch_ms)


def formatted(moment: Moment, pattern: str) -> str:
    template = _template(pattern)
    if (
        template is not None
        and moment.days is not None
        and moment.of_day is not None
        and 0 < moment.date[0] <= 9999
    ):
        time = moment.of_day
        clock = (time // 3_600_000, time // 60_000 % 60, time // 1000 % 60, time % 1000)
        return template(*moment.date, *clock)
    elements = elements_of(pattern)
    text, _ = _written(moment, elements, 0)
    return text


_PLAIN = {
    "y": "{0:04d}",
    "u": "{0:04d}",
    "M": "{1:02d}",
    "d": "{2:02d}",
    "H": "{3:02d}",
    "m": "{4:02d}",
    "s": "{5:02d}",
}


@lru_cache(1024)
def _template(pattern: str) -> Callable[..., str] | None:
    """For patterns of plain numbers, which are most: year, month, day, hour, minute, second, milliseconds into their places."""
    text = ""
    for element in elements_of(pattern):
        is_year = element.field in "yu" and element.least == 4
        if element.kind == "literal":
            text += element.text.replace("{", "{{").replace("}", "}}")
        elif (
            element.kind == "number"
            and element.field in _PLAIN
            and (is_year or (element.least, element.most) == (2, 2))
        ):
            text += _PLAIN[element.field]
        elif element.kind == "fraction" and element.most == 3:
            text += "{6:03d}"
        else:
            return None
    return text.format


def _written(moment: Moment, elements: tuple[Element, ...], at: int) -> tuple[str, int]:
    """Up to the end of the optional part that it is called for; what it says that it does not have is left out there."""
    texts: list[str] = []
    pad = 0
    while at < len(elements):
        element = elements[at]
        at += 1
        if element.kind == "end":
            break
        if element.kind == "pad":
            pad = element.most
            continue
        if element.kind == "begin":
            end = _end_of(elements, at)
            try:
                text, _ = _written(moment, elements[:end], at)
            except FunctionFailed:
                text = ""
            at = end
        else:
            text = _text(moment, element)
        if pad:
            if len(text) > pad:
                raise FunctionFailed(
                    f"Cannot print as output of {len(text)} characters exceeds pad width of {pad}"
                )
            text, pad = text.rjust(pad), 0
        texts.append(text)
    return "".join(texts), at


def _end_of(elements: tuple[Element, ...], at: int) -> int:
    depth = 1
    while depth:
        depth += {"begin": 1, "end": -1}.get(elements[at].kind, 0)
        at += 1
    return at


def _text(moment: Moment, element: Element) -> str:
    match element.kind:
        case "literal":
            return element.text
        case "number":
            return _number(_value(moment, element.field), element)
        case "reduced":
            return f"{abs(_value(moment, element.field)) % 100:02d}"
        case "fraction":
            return f"{moment.time % 1000:03d}000000"[: element.most]
        case "text":
            return names_of(element.field, element.least)[_index(moment, element.field)]
        case "offset":
            moment.zoned()
            return offset_text(moment.offset, element.field, element.text)
        case "localized":
            moment.zoned()
            return _localized(moment.offset, element.least)
        case "zone":
            return moment.zoned().name
        case _:
            return moment.zoned().short_name(moment.epoch_ms)


def _localized(offset: int, width: int) -> str:
    if not offset:
        return "GMT"
    text = offset_text(offset, "+HH:MM:ss")
    if width == 4:
        return f"GMT{text}"
    hours, _, rest = text[1:].partition(":")
    return f"GMT{text[0]}{int(hours)}" + ("" if rest == "00" else f":{rest}")


def _number(value: int, element: Element) -> str:
    digits = str(abs(value))
    if len(digits) > element.most:
        raise FunctionFailed(f"The value {value} exceeds the maximum print width {element.most}")
    if value < 0 and element.sign is Sign.NONE:
        raise FunctionFailed(f"The value {value} cannot be negative according to the pattern")
    sign = "-" if value < 0 else "+" if element.sign is Sign.EXCEEDS and len(digits) > element.least else ""
    return sign + digits.rjust(element.least, "0")


def _value(moment: Moment, field: str) -> int:
    if field in _DATE_FIELDS:
        return _date_value(moment, field)
    time = moment.time
    match field:
        case "H":
            return time // 3_600_000
        case "k":
            return time // 3_600_000 or 24
        case "K":
            return time // 3_600_000 % 12
        case "h":
            return time // 3_600_000 % 12 or 12
        case "m":
            return time // 60_000 % 60
        case "s":
            return time // 1000 % 60
        case "n":
            return time % 1000 * 1_000_000
        case "N":
            return time * 1_000_000
        case _:  # A
            return time


def _date_value(moment: Moment, field: str) -> int:
    year, month, day = moment.date
    assert moment.days is not None
    match field:
        case "u":
            return year
        case "y":
            return year if year > 0 else 1 - year
        case "M" | "L":
            return month
        case "Q" | "q":
            return (month + 2) // 3
        case "d":
            return day
        case "D":
            return moment.days - days_of(year, 1, 1) + 1
        case "F":
            return (day - 1) % 7 + 1
        case "e" | "c":
            return (moment.days + 4) % 7 + 1  # weeks begin with Sunday
        case "W":
            return (day + (moment.days - day + 5) % 7 - 1) // 7 + 1
        case _:
            week_year, week = week_of(moment.days, year)
            return week_year if field == "Y" else week


def week_of(days: int, year: int) -> tuple[int, int]:
    """The week and its year: weeks begin with Sunday, and the one with the first of January is the first."""
    for each in (year + 1, year):
        first = days_of(each, 1, 1)
        start = first - (first + 4) % 7
        if days >= start:
            return each, (days - start) // 7 + 1
    first = days_of(year - 1, 1, 1)
    return year - 1, (days - (first - (first + 4) % 7)) // 7 + 1


def _index(moment: Moment, field: str) -> int:
    match field:
        case "a":
            return moment.time // 43_200_000
        case "E":
            _ = moment.date
            assert moment.days is not None
            return (moment.days + 3) % 7
        case "G":
            return int(moment.date[0] > 0)
        case _:
            return _date_value(moment, field) - 1
