"""Dates, times of day and timestamps as their plain ISO text, from and to the numbers that rows have.

DATE is days since 1970, TIME milliseconds of the day, TIMESTAMP milliseconds since 1970. Texts may be partial: `2020` is
2020-01-01, `2020-05-26T10` is ten o'clock. Python's dates end with the year 9999; these functions go further, as Java's do.
"""

from __future__ import annotations

import re
from typing import Final

from penstock.streams.functions.refusals import FunctionFailed

DAY_MS: Final = 86_400_000
_DATE: Final = re.compile(r"([+-]?\d{4,9})-(\d{2})-(\d{2})", re.ASCII)
_TIME: Final = re.compile(r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?", re.ASCII)
_FULL_TIME: Final = re.compile(r"(\d{2}):(\d{2}):(\d{2})\.(\d{3})", re.ASCII)
_OFFSET: Final = re.compile(r"([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?", re.ASCII)
_MONTH_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_TIMESTAMP_HELP: Final = (
    "\nRequired format is: \"yyyy-MM-dd'T'HH:mm:ss.SSS\", with an optional numeric 4-digit timezone, for example: "
    "'2020-05-26T23:59:58.000' or with tz: '2020-05-26T23:59:58.000+0200'. "
    "A trailing 'Z' instead of tz indicates the zero UTC offset. Partials are also supported, for example \"2020-05-26\""
)
_TIME_HELP: Final = (
    "\nRequired format is: \"HH:mm:ss.SSS\", for example: '01:34:20.123' or '01:34:20'. "
    "Partials are also supported, for example '01:34'"
)
_DATE_HELP: Final = (
    "\nRequired format is: \"yyyy-MM-dd\", for example '2020-05-26'. "
    "Partials are also supported, for example '2020-05'"
)


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def month_length(year: int, month: int) -> int:
    return 29 if month == 2 and is_leap(year) else _MONTH_DAYS[month - 1]


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def date_of(days: int) -> tuple[int, int, int]:
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def year_text(year: int) -> str:
    if 0 <= year <= 9999:
        return f"{year:04d}"
    return f"-{-year:04d}" if year < 0 else f"+{year}"


def date_text(days: int) -> str:
    year, month, day = date_of(days)
    return f"{year_text(year)}-{month:02d}-{day:02d}"


def time_text(milliseconds: int) -> str:
    """To the second; seconds of zero are left out, as Java's LocalTime does it."""
    seconds = milliseconds // 1000
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    return f"{text}:{seconds % 60:02d}" if seconds % 60 else text


def timestamp_text(milliseconds: int) -> str:
    days, rest = divmod(milliseconds, DAY_MS)
    seconds, fraction = divmod(rest, 1000)
    year, month, day = date_of(days)
    shown = year_text(year) if year > 0 else f"{1 - year:04d}"  # pattern yyyy: the year of the era
    return f"{shown}-{month:02d}-{day:02d}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:03d}"


def _completed_date(text: str) -> str:
    match len(text.rstrip("-").split("-")):
        case 1:
            return f"{text}-01-01"
        case 2:
            return f"{text}-01"
        case _:
            return text


def _days(text: str) -> int:
    found = _DATE.fullmatch(text)
    if found is None:
        raise FunctionFailed(f"Text '{text}' could not be parsed at index 0")
    year, month, day = (int(part) for part in found.groups())
    if not 1 <= month <= 12:
        raise FunctionFailed(
            f"Text '{text}' could not be parsed: Invalid value for MonthOfYear (valid values 1 - 12): {month}"
        )
    if not 1 <= day <= month_length(year, month):
        raise FunctionFailed(f"Text '{text}' could not be parsed: Invalid date")
    return days_of(year, month, day)


def parse_date(text: str) -> int:
    try:
        return _days(_completed_date(text))
    except FunctionFailed as error:
        raise FunctionFailed(f"Failed to parse date '{text}': {error}{_DATE_HELP}") from None


def parse_time(text: str) -> int:
    found = _TIME.fullmatch(text)
    if found is not None:
        hour, minute, second = (int(part or 0) for part in found.groups()[:3])
        if hour < 24 and minute < 60 and second < 60:
            fraction = (found.group(4) or "").ljust(3, "0")[:3]
            return ((hour * 60 + minute) * 60 + second) * 1000 + int(fraction)
    problem = f"Text '{text}' could not be parsed at index 0"
    raise FunctionFailed(f"Failed to parse time '{text}': {problem}{_TIME_HELP}")


def offset_ms(text: str) -> int:
    """Of a zone such as +02:00, +0200 or Z."""
    if text in ("", "Z"):
        return 0
    found = _OFFSET.fullmatch(text)
    if found is None:
        raise FunctionFailed(
            f"Failed to parse timezone '{text}': Invalid ID for ZoneOffset, invalid format: {text}"
        )
    hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
    if hours > 18 or minutes > 59 or seconds > 59:
        raise FunctionFailed(
            f"Failed to parse timezone '{text}': Zone offset not in valid range: -18:00 to +18:00"
        )
    total = ((hours * 60 + minutes) * 60 + seconds) * 1000
    return -total if found.group(1) == "-" else total


def parse_timestamp(text: str) -> int:
    try:
        date, mark, rest = text.partition("T")
        zone = ""
        if not mark:
            date = _completed_date(text)
        else:
            at = rest.find("+") if "+" in rest else rest.find("-")
            zone = rest[at:] if at >= 0 else ""
            rest = rest[: len(rest) - len(zone)].removesuffix("Z")
        time = rest if len(rest) >= 12 else rest + "00:00:00.000"[len(rest) :]
        found = _FULL_TIME.fullmatch(time)
        if found is None:
            raise FunctionFailed(f"Text '{date}T{time}' could not be parsed at index {len(date) + 1}")
        hour, minute, second, fraction = (int(part) for part in found.groups())
        if hour > 23 or minute > 59 or second > 59:
            raise FunctionFailed(f"Text '{date}T{time}' could not be parsed: invalid time of day")
        of_day = ((hour * 60 + minute) * 60 + second) * 1000 + fraction
        return _days(date) * DAY_MS + of_day - offset_ms(zone)
    except FunctionFailed as error:
        raise FunctionFailed(f"Failed to parse timestamp '{text}': {error}{_TIMESTAMP_HELP}") from None
