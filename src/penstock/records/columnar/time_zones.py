"""Time zones as Java has them: their names, and which offset a time of day has in them.

    name ─ ZoneId.of, with Java's short names → a fixed offset, or the rules of a region (a TZif file, RFC 9636)

The offset before a change holds until the local time is past both sides of it. So a time that a change skips is moved
by as much as was skipped, and of a time that comes twice the first is meant: as with java.time, and so with Spark.
    02:30 on the day when 02:00 becomes 03:00 → 03:30; when 03:00 becomes 02:00 → the 02:30 of before.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from datetime import date
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

ReadZone = Callable[[str], bytes | None]
"""The TZif data of a region, None if there is none."""

CYCLE_MICROS: Final = 146_097 * 86_400_000_000  # 400 years, after which the calendar and its weekdays repeat
_CYCLE_YEARS: Final = 400
_MAX_KEPT: Final = 256  # zones, of 15 kB each at most
_MAX_OFFSET_S: Final = 18 * 3600
_DAY_S: Final = 86_400
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()

# java.time.ZoneId.SHORT_IDS of Java 17 and 21; from 23 on EST, MST and HST are places, with the same offsets today.
_SHORT_NAMES: Final = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
    "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
}  # fmt: skip
_REGION: Final = re.compile(r"[A-Za-z][\w+-]+(?:/[\w+-]+)*", re.ASCII)
_NOT_OF_JAVA: Final = re.compile(r"posix/.*|right/.*|posixrules|localtime|Factory|ROC", re.ASCII)
_OFFSET: Final = re.compile(r"([+-])(\d\d?|\d\d:\d\d(?::\d\d)?|\d{4}|\d{6})", re.ASCII)
_PREFIXED: Final = re.compile(r"(?:UTC|GMT|UT)([+-].*)?", re.ASCII)
# As Spark writes -1:30 and -01:3 out before it asks Java.
_SHORT_HOUR: Final = re.compile(r"([+-])(\d):", re.ASCII)
_SHORT_MINUTE: Final = re.compile(r"([+-])(\d\d):(\d)\Z", re.ASCII)


class ZoneRules(NamedTuple):
    """`offsets[n]` holds for local times before `ends[n]`, and the last one after them; microseconds, east is positive."""

    ends: Array
    offsets: Array
    repeats_from: int
    """From this local time the changes repeat every CYCLE_MICROS."""


class TimeZones:
    def __init__(self, read: ReadZone) -> None:
        self._read = read
        self.find = lru_cache(_MAX_KEPT)(self._find)

    def _find(self, name: str) -> ZoneRules | None:
        """None if Java knows no such zone."""
        name = _SHORT_MINUTE.sub(r"\1\2:0\3", _SHORT_HOUR.sub(r"\g<1>0\2:", name, count=1))
        name = _SHORT_NAMES.get(name, name)
        if name == "Z":
            return _fixed(0)
        if name[:1] in ("+", "-"):
            return _at_offset(name)
        if found := _PREFIXED.fullmatch(name):
            return _at_offset(found[1]) if found[1] else _fixed(0)
        if not _REGION.fullmatch(name) or _NOT_OF_JAVA.fullmatch(name):
            return None
        data = self._read(name)
        return None if data is None else _rules(data)


def _fixed(seconds: int) -> ZoneRules:
    none = np.empty(0, dtype=np.int64)
    return ZoneRules(none, np.array([seconds * 1_000_000], dtype=np.int64), np.iinfo(np.int64).max)


def _at_offset(text: str) -> ZoneRules | None:
    """±h, ±hh, ±hhmm, ±hh:mm, ±hhmmss, ±hh:mm:ss"""
    found = _OFFSET.fullmatch(text)
    if found is None:
        return None
    digits = found[2].replace(":", "")
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4] or 0), int(digits[4:] or 0)
    total = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or total > _MAX_OFFSET_S:
        return None
    return _fixed(-total if found[1] == "-" else total)


class _Changes(NamedTuple):
    """Of a TZif file: `offset` until the first of `changes` (when, offset from then on), by `rest` after the last."""

    offset: int
    changes: list[tuple[int, int]]
    rest: str


def _rules(data: bytes) -> ZoneRules | None:
    found = _read_tzif(data)
    if found is None:
        return None
    changes = found.changes
    last = changes[-1][0] if changes else 0
    first_year = date.fromordinal(_EPOCH_DAY + last // _DAY_S).year
    later = [change for change in _by_rest(found.rest, first_year) if not changes or change[0] > last]
    ends, offsets = [], [found.offset]
    for when, offset in (*changes, *later):
        if offset != offsets[-1]:
            ends.append(when + max(offset, offsets[-1]))
            offsets.append(offset)
    repeats_from = (date(first_year + 2, 1, 1).toordinal() - _EPOCH_DAY) * _DAY_S * 1_000_000
    return ZoneRules(
        np.array(ends, dtype=np.int64) * 1_000_000,
        np.array(offsets, dtype=np.int64) * 1_000_000,
        repeats_from if later else np.iinfo(np.int64).max,
    )


_HEADER: Final = struct.Struct(">4sc15x6I")


def _read_tzif(data: bytes) -> _Changes | None:
    """The block of 64-bit times, which is the second."""
    if data[:4] != b"TZif" or data[4:5] < b"2":
        return None
    _, _, isut, isstd, leaps, times, types, characters = _HEADER.unpack_from(data)
    start = _HEADER.size + times * 5 + types * 6 + characters + leaps * 8 + isstd + isut
    _, _, isut, isstd, leaps, times, types, characters = _HEADER.unpack_from(data, start)
    at = start + _HEADER.size
    whens = struct.unpack_from(f">{times}q", data, at)
    of_type = data[at + times * 8 : at + times * 9]
    at += times * 9
    offsets = [struct.unpack_from(">i", data, at + number * 6)[0] for number in range(types)]
    at += types * 6 + characters + leaps * 12 + isstd + isut
    rest = data[at:].strip(b"\n").decode("ascii")
    changes = [(when, offsets[kind]) for when, kind in zip(whens, of_type, strict=True)]
    return _Changes(offsets[0], changes, rest)


_NAME, _HOURS = r"(?:[A-Za-z]{3,}|<[^>]+>)", r"[+-]?\d{1,3}(?::\d\d){0,2}"
_REST: Final = re.compile(
    rf"{_NAME}({_HOURS})(?:{_NAME}({_HOURS})?,([^,/]+)(?:/({_HOURS}))?,([^,/]+)(?:/({_HOURS}))?)?", re.ASCII
)
_TWO_O_CLOCK: Final = "2"


def _by_rest(rest: str, first_year: int) -> Iterator[tuple[int, int]]:
    """Changes of a POSIX rule such as WET0WEST,M3.5.0/1,M10.5.0 for as long as it takes to repeat; in order of time."""
    found = _REST.fullmatch(rest)
    if found is None or found[3] is None:
        return
    standard = -_seconds(found[1])
    daylight = -_seconds(found[2]) if found[2] else standard + 3600
    start_time, end_time = _seconds(found[4] or _TWO_O_CLOCK), _seconds(found[6] or _TWO_O_CLOCK)
    for year in range(first_year, first_year + _CYCLE_YEARS + 4):
        start = _day(found[3], year) * _DAY_S + start_time - standard
        end = _day(found[5], year) * _DAY_S + end_time - daylight
        yield from sorted([(start, daylight), (end, standard)])


def _seconds(text: str) -> int:
    hours, minutes, seconds = (*map(int, text.lstrip("+-").split(":")), 0, 0)[:3]
    total = hours * 3600 + minutes * 60 + seconds
    return -total if text.startswith("-") else total


def _day(rule: str, year: int) -> int:
    """Since 1970: M3.5.0, the last Sunday of March; J60, 1 March in every year; 59, the 60th day."""
    first = date(year, 1, 1).toordinal() - _EPOCH_DAY
    if rule.startswith("M"):
        month, week, weekday = map(int, rule[1:].split("."))
        month_start = date(year, month, 1).toordinal() - _EPOCH_DAY
        next_start = date(year + month // 12, month % 12 + 1, 1).toordinal() - _EPOCH_DAY
        day = month_start + (weekday - (month_start + 4)) % 7 + 7 * (week - 1)
        return day if day < next_start else day - 7
    if rule.startswith("J"):
        is_leap = date(year, 12, 31).timetuple().tm_yday == 366
        number = int(rule[1:])
        return first + number - (0 if is_leap and number > 59 else 1)
    return first + int(rule)
