"""Dates, times of day and timestamps: from and to text, steps in units, time zones, the present."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Final

from penstock.streams.functions import date_formatting, date_parsing, simple_dates
from penstock.streams.functions.date_formatting import Moment
from penstock.streams.functions.iso_times import DAY_MS, date_of, days_of, month_length
from penstock.streams.functions.java_text import wrap_int, wrap_long
from penstock.streams.functions.refusals import FunctionFailed
from penstock.streams.functions.registry import scalar
from penstock.streams.functions.surroundings import WORLD
from penstock.streams.functions.zones import UTC_ZONE, zone_of

_TIMES: Final = "DATE / TIME"
_UNITS: Final = {
    "MILLISECOND": 1,
    "SECOND": 1000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": DAY_MS,
    "WEEK": 7 * DAY_MS,
}
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_LONG_MAX: Final = 2**63 - 1


def _explained(what: str, run: Callable[..., Any]) -> Callable[..., Any]:
    def call(value: Any, pattern: str, *zone: str) -> Any:
        try:
            return run(value, pattern, *zone)
        except FunctionFailed as error:
            where = f" at timezone '{zone[0]}'" if zone else ""
            raise FunctionFailed(
                f"Failed to {what} '{value}'{where} with formatter '{pattern}': {error}"
            ) from None

    return call


def _format_timestamp(value: int, pattern: str, zone: str | None = None) -> str:
    return date_formatting.formatted(
        date_formatting.moment_in(value, zone_of(zone) if zone else UTC_ZONE), pattern
    )


def _timestamp_to_string(value: int, pattern: str, zone: str = "UTC") -> str:
    return date_formatting.formatted(date_formatting.moment_in(value, zone_of(zone)), pattern)


def _parse_timestamp(text: str, pattern: str, zone: str = "GMT") -> int:
    return date_parsing.timestamp(text, pattern, zone_of(zone))


def _format_date(days: int, pattern: str) -> str:
    return date_formatting.formatted(Moment(days=days), pattern)


def _format_time(of_day: int, pattern: str) -> str:
    return date_formatting.formatted(Moment(of_day=of_day), pattern)


def _declare(name: str, about: str, what: str, run: Callable[..., Any], *signatures: str) -> None:
    scalar(name, *signatures, category=_TIMES, about=about)(_explained(what, run))


_declare(
    "FORMAT_TIMESTAMP",
    "Converts a TIMESTAMP value into its text in the given format, a pattern of java.time.format.DateTimeFormatter.",
    "format timestamp",
    _format_timestamp,
    "TIMESTAMP timestamp, STRING formatPattern -> STRING",
    "TIMESTAMP timestamp, STRING formatPattern, STRING timeZone -> STRING",
)
_declare(
    "TIMESTAMPTOSTRING",
    "Converts a number of milliseconds since 1970 into its text in the given format.",
    "format timestamp",
    _timestamp_to_string,
    "BIGINT epochMilli, STRING formatPattern -> STRING",
    "BIGINT epochMilli, STRING formatPattern, STRING timeZone -> STRING",
)
_declare(
    "PARSE_TIMESTAMP",
    "Converts a text in the given format into a TIMESTAMP value.",
    "parse timestamp",
    _parse_timestamp,
    "STRING formattedTimestamp, STRING formatPattern -> TIMESTAMP",
    "STRING formattedTimestamp, STRING formatPattern, STRING timeZone -> TIMESTAMP",
)
_declare(
    "STRINGTOTIMESTAMP",
    "Converts a text in the given format into milliseconds since 1970.",
    "parse timestamp",
    _parse_timestamp,
    "STRING formattedTimestamp, STRING formatPattern -> BIGINT",
    "STRING formattedTimestamp, STRING formatPattern, STRING timeZone -> BIGINT",
)
_declare(
    "FORMAT_DATE",
    "Converts a DATE value into its text in the given format.",
    "format date",
    _format_date,
    "DATE date, STRING formatPattern -> STRING",
)
_declare(
    "DATETOSTRING",
    "Converts a number of days since 1970 into its text in the given format.",
    "format date",
    _format_date,
    "INTEGER epochDays, STRING formatPattern -> STRING",
)
_declare(
    "PARSE_DATE",
    "Converts a text in the given format, a pattern of java.text.SimpleDateFormat, into a DATE value.",
    "parse date",
    simple_dates.parse_date,
    "STRING formattedDate, STRING formatPattern -> DATE",
)
_declare(
    "STRINGTODATE",
    "Converts a text in the given format into the number of days since 1970.",
    "parse date",
    date_parsing.date,
    "STRING formattedDate, STRING formatPattern -> INTEGER",
)
_declare(
    "FORMAT_TIME",
    "Converts a TIME value into its text in the given format.",
    "format time",
    _format_time,
    "TIME time, STRING formatPattern -> STRING",
)
_declare(
    "PARSE_TIME",
    "Converts a text in the given format into a TIME value.",
    "parse time",
    date_parsing.time,
    "STRING formattedTime, STRING formatPattern -> TIME",
)


def _step(unit: str, count: int) -> int:
    milliseconds = _UNITS[unit] * count
    return max(-_LONG_MAX - 1, min(milliseconds, _LONG_MAX))


def _unit(unit: str) -> str:
    name = unit.upper().removesuffix("S")
    if name not in _UNITS and name not in _MONTHS:
        raise FunctionFailed(f"{unit} is no unit of time")
    return name


def _moved_by_months(days: int, months: int) -> int:
    year, month, day = date_of(days)
    over, month = divmod(month - 1 + months, 12)
    return days_of(year + over, month + 1, min(day, month_length(year + over, month + 1)))


def _declare_step(kind: str, sign: int) -> None:
    def of_date(unit: str, count: int, days: int) -> int:
        name = _unit(unit)
        if name in _MONTHS:
            return _moved_by_months(days, sign * count * _MONTHS[name])
        milliseconds = wrap_long(days * DAY_MS + sign * _step(name, count))
        return wrap_int(abs(milliseconds) // DAY_MS * (1 if milliseconds >= 0 else -1))

    def of_timestamp(unit: str, count: int, timestamp: int) -> int:
        name = _unit(unit)
        if name in _MONTHS:
            days, of_day = divmod(timestamp, DAY_MS)
            return _moved_by_months(days, sign * count * _MONTHS[name]) * DAY_MS + of_day
        return wrap_long(timestamp + sign * _step(name, count))

    def of_time(unit: str, count: int, of_day: int) -> int:
        name = _unit(unit)
        if name in _MONTHS:
            return of_day
        return (of_day + sign * _UNITS[name] * count) % DAY_MS

    run = {"DATE": of_date, "TIME": of_time, "TIMESTAMP": of_timestamp}[kind]
    word, article = ("ADD", "Adds a duration to") if sign > 0 else ("SUB", "Subtracts a duration from")
    scalar(
        f"{kind}{word}",
        f"UNIT unit, INTEGER interval, {kind} {kind.lower()} -> {kind}",
        category=_TIMES,
        about=f"{article} a {kind} value.",
    )(run)


for _kind in ("DATE", "TIME", "TIMESTAMP"):
    _declare_step(_kind, 1)
    _declare_step(_kind, -1)


@scalar(
    "UNIX_DATE", "-> INTEGER", category=_TIMES, about="The number of days since 1970, of a date or of today."
)
def unix_date_now() -> int:
    return WORLD.now_ms() // DAY_MS


@scalar(
    "UNIX_TIMESTAMP",
    "-> BIGINT",
    category=_TIMES,
    about="The number of milliseconds since 1970, of a timestamp or of now.",
)
def unix_timestamp_now() -> int:
    return WORLD.now_ms()


@scalar("UNIX_DATE", "DATE date -> INTEGER")
@scalar("UNIX_TIMESTAMP", "TIMESTAMP timestamp -> BIGINT")
@scalar(
    "FROM_DAYS",
    "INTEGER days -> DATE",
    category=_TIMES,
    about="Converts a number of days since 1970 to a DATE value.",
)
@scalar(
    "FROM_UNIXTIME",
    "BIGINT epochMilli -> TIMESTAMP",
    category=_TIMES,
    about="Converts milliseconds since 1970 to a TIMESTAMP.",
)
def same_number(value: int) -> int:
    return value


@scalar(
    "CONVERT_TZ",
    "TIMESTAMP timestamp, STRING fromTimeZone, STRING toTimeZone -> TIMESTAMP",
    category=_TIMES,
    about="Converts a timestamp from one timezone to another.",
)
def convert_tz(timestamp: int, given: str, wanted: str) -> int:
    try:
        return timestamp + (zone_of(wanted).offset_at(timestamp) - zone_of(given).offset_at(timestamp)) * 1000
    except FunctionFailed as error:
        raise FunctionFailed(f"Invalid time zone: {error}") from None


@scalar(
    "RANDOM",
    "-> DOUBLE",
    category="MATHEMATICAL",
    about="A random number that is not less than 0.0 and less than 1.0.",
)
def random_() -> float:
    return (int.from_bytes(WORLD.random_bytes(7), "big") >> 3) / float(1 << 53)


@scalar("UUID", "-> STRING", category="STRING", about="A random UUID, or the one that 16 bytes are.")
def uuid_random() -> str:
    return str(uuid.UUID(bytes=WORLD.random_bytes(16), version=4))


@scalar("UUID", "BYTES bytes -> STRING")
def uuid_of_bytes(value: bytes) -> str | None:
    return str(uuid.UUID(bytes=value)) if len(value) == 16 else None
