"""Dates, times and timestamps as Java's `Date`: milliseconds since 1970, in UTC."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from penstock.connect.data.logical import (
    DATE,
    TIME,
    TIMESTAMP,
    date_from_days,
    date_to_days,
    time_from_ms,
    time_to_ms,
    timestamp_from_ms,
    timestamp_to_ms,
)

DAY_MS: Final = 86_400_000


def ms_of(value: dt.date | dt.time | dt.datetime) -> int:
    if isinstance(value, dt.datetime):
        return timestamp_to_ms(TIMESTAMP, value)
    if isinstance(value, dt.time):
        return time_to_ms(TIME, value)
    return date_to_days(DATE, value) * DAY_MS


def date_at(ms: int) -> dt.date:
    return date_from_days(DATE, ms // DAY_MS)


def time_at(ms: int) -> dt.time:
    return time_from_ms(TIME, ms % DAY_MS)


def timestamp_at(ms: int) -> dt.datetime:
    return timestamp_from_ms(TIMESTAMP, ms)


def is_time(value: Any) -> bool:
    return isinstance(value, (dt.date, dt.time))
