"""From spans to dates and timestamps, compiled; as json_scalars.py.

ISO 8601 as Spark casts it: yyyy[-[m]m[-[d]d]] and after a T or a blank [h]h[:[m]m[:[s]s[.f…]]]; a zone after seconds.
"""

import numpy as np
from numba import int32, int64, njit, void

from penstock.records.columnar.json_escapes import code_at
from penstock.records.columnar.json_scalars import (
    BAD,
    GOOD,
    LOCAL,
    MAX_DIGITS,
    NOTHING,
    UNDECIDED,
    ZONED,
    long_at,
)
from penstock.records.columnar.json_walk import BYTES, KINDS, KINDS_IN, NULL, PLACES, PLACES_IN, TEXT, WHOLE

MADE_FROM = "8e3ba11655bf5773"
"""Of byte_kernels.py, json_escapes.py, json_walk.py and json_scalars.py, as in kernels.py."""

_DAY_S = np.int64(86_400)
_SECOND_MICROS = np.int64(1_000_000)
_DAYS_BEFORE = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334], dtype=np.int64)
_MONTH_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], dtype=np.int64)
# What 64 bits of microseconds, and 32 bits of days, reach to.
_FIRST_SECOND, _FIRST_MICROS = np.int64(-9_223_372_036_855), np.int64(224_192)
_LAST_SECOND, _LAST_MICROS = np.int64(9_223_372_036_854), np.int64(775_807)
_SMALLEST, _LARGEST = np.int64(-(2**31)), np.int64(2**31 - 1)
_FIRST_GREGORIAN_DAY = np.int64(-141_427)  # 1582-10-15


@njit(cache=True, nogil=True)
def _digits(text, at, stop, most):
    """(number, behind it); the place stays where there is no digit."""
    number = np.int64(0)
    last = min(stop, at + most)
    while at < last and 48 <= code_at(text, at) <= 57:
        number = number * 10 + code_at(text, at) - 48
        at += 1
    return number, at


@njit(cache=True, nogil=True)
def _days(year, month, day):
    """Since 1970-01-01, in the calendar of today for all times."""
    before = year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400 + _DAYS_BEFORE[month - 1] + day - 1
    if month > 2 and _is_leap(year):
        days += 1
    return days - 719_162


@njit(cache=True, nogil=True)
def _is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


@njit(cache=True, nogil=True)
def _date(text, at, stop, most):
    """(days, behind it or -1) of yyyy, yyyy-[m]m or yyyy-[m]m-[d]d. Only behind the last of them can more follow."""
    nowhere = np.int64(-1)
    negative = code_at(text, at) == 45
    if negative or code_at(text, at) == 43:
        at += 1
    year, end = _digits(text, at, stop, most + 1)
    if end - at < 4 or end - at > most:
        return np.int64(0), nowhere
    if negative:
        year = -year
    month, day = np.int64(1), np.int64(1)
    if end == stop:
        return _days(year, month, day), end
    if code_at(text, end) != 45:
        return np.int64(0), nowhere
    month, at = _digits(text, end + 1, stop, 2)
    if at == end + 1 or not 1 <= month <= 12:
        return np.int64(0), nowhere
    end = at
    if end == stop:
        return _days(year, month, day), end
    if code_at(text, end) != 45:
        return np.int64(0), nowhere
    day, at = _digits(text, end + 1, stop, 2)
    last = _MONTH_DAYS[month - 1]
    if month == 2 and _is_leap(year):
        last += 1
    if at == end + 1 or not 1 <= day <= last:
        return np.int64(0), nowhere
    return _days(year, month, day), at


@njit(cache=True, nogil=True)
def _is_blank(code):
    return code <= 32 or code == 127


@njit(cache=True, nogil=True)
def _trimmed(text, at, stop):
    while at < stop and _is_blank(code_at(text, at)):
        at += 1
    while stop > at and _is_blank(code_at(text, stop - 1)):
        stop -= 1
    return at, stop


@njit(cache=True, nogil=True)
def _has_gmt(text, at, stop):
    for place in range(at, stop - 2):
        if code_at(text, place) == 71 and code_at(text, place + 1) == 77 and code_at(text, place + 2) == 84:
            return True
    return False


@njit(cache=True, nogil=True)
def _day_number(text, at, stop):
    """(days, result) of digits: days since 1970, in the Julian calendar before 1582, as Spark once wrote dates."""
    negative = at < stop and code_at(text, at) == 45
    if negative or (at < stop and code_at(text, at) == 43):
        at += 1
    number, end = _digits(text, at, stop, MAX_DIGITS)
    if end == at or end != stop:
        return np.int64(0), BAD
    if negative:
        number = -number
    if number < _SMALLEST or number > _LARGEST:
        return np.int64(0), BAD
    if number < _FIRST_GREGORIAN_DAY:
        number = _from_julian(number)
    return number, (GOOD if number >= _SMALLEST else BAD)


@njit(cache=True, nogil=True)
def _from_julian(days):
    """The day that has the same date in the calendar of today."""
    since = (
        days + 719_470
    )  # 0000-03-01 of that calendar, in which years begin with March, and leap days end them
    cycle, rest = since // 1461, since % 1461
    in_cycle = min(rest // 365, np.int64(3))
    day = rest - in_cycle * 365
    month = (5 * day + 2) // 153
    day_of_month = day - (153 * month + 2) // 5 + 1
    year = cycle * 4 + in_cycle
    if month < 10:
        return _days(year, month + 3, day_of_month)
    return _days(year + 1, month - 9, day_of_month)


@njit([void(BYTES, PLACES_IN, PLACES_IN, KINDS_IN, int32[::1], KINDS)], cache=True, nogil=True)
def to_dates(data, starts, stops, kinds, out, results):
    """UNDECIDED where there is a GMT in what cannot be read: Spark then reads it without."""
    text = np.int64(data.ctypes.data)
    for row in range(len(kinds)):
        out[row] = 0
        kind = kinds[row]
        if kind <= NULL:
            results[row] = NOTHING
            continue
        results[row] = BAD
        at, stop = _trimmed(text, np.int64(starts[row]), np.int64(stops[row]))
        if kind != TEXT or at >= stop:
            continue
        days, end = _date(text, at, stop, 7)
        is_date = end == stop or (
            end > 0 and (code_at(text, end) == 84 or code_at(text, end) == 32)
        )  # T, blank
        if is_date and _SMALLEST <= days <= _LARGEST:
            out[row] = days
            results[row] = GOOD
            continue
        if _has_gmt(text, at, stop):
            results[row] = UNDECIDED
            continue
        days, results[row] = _day_number(text, np.int64(starts[row]), np.int64(stops[row]))
        out[row] = days


@njit(cache=True, nogil=True)
def _time_of_day(text, at, stop):
    """(seconds, microseconds, behind it or -1) of [h]h[:[m]m[:[s]s[.f…]]]. Only behind seconds can more follow."""
    nothing, nowhere = np.int64(0), np.int64(-1)
    hour, end = _digits(text, at, stop, 2)
    if end == at or hour > 23:
        return nothing, nothing, nowhere
    if end == stop:
        return hour * 3600, nothing, end
    minute, at = _digits(text, end + 1, stop, 2)
    if code_at(text, end) != 58 or at == end + 1 or minute > 59:
        return nothing, nothing, nowhere
    end = at
    if end == stop:
        return hour * 3600 + minute * 60, nothing, end
    second, at = _digits(text, end + 1, stop, 2)
    if code_at(text, end) != 58 or at == end + 1 or second > 59:
        return nothing, nothing, nowhere
    end = at
    micros = nothing
    if end < stop and code_at(text, end) == 46:
        micros, at = _digits(text, end + 1, stop, 6)
        for _ in range(6 - (at - end - 1)):
            micros *= 10
        while at < stop and 48 <= code_at(text, at) <= 57:
            at += 1
        end = at
    elif end < stop and 48 <= code_at(text, end) <= 57:
        return nothing, nothing, nowhere
    return hour * 3600 + minute * 60 + second, micros, end


@njit(cache=True, nogil=True)
def _zone(text, at, stop):
    """(seconds east of Greenwich, result) of Z, ±[h]h, ±hhmm, ±[h]h:mm; ZONED for another name of a zone."""
    if at == stop:
        return np.int64(0), LOCAL
    sign = code_at(text, at)
    if sign == 90 and at + 1 == stop:
        return np.int64(0), GOOD
    if sign != 43 and sign != 45:
        return np.int64(0), ZONED
    hours, end = _digits(text, at + 1, stop, 2)
    minutes = np.int64(0)
    if end == at + 1:
        return np.int64(0), ZONED
    if end < stop:
        is_parted = code_at(text, end) == 58
        start = end + 1 if is_parted else end
        minutes, behind = _digits(text, start, stop, 2)
        if behind != stop or behind - start != 2 or minutes > 59 or (end - at == 2 and not is_parted):
            return np.int64(0), ZONED
    offset = (hours * 60 + minutes) * 60
    if offset > 18 * 3600:
        return np.int64(0), ZONED
    return -offset if sign == 45 else offset, GOOD


@njit(cache=True, nogil=True)
def _timestamp(text, at, stop):
    """(microseconds, result, where the zone begins)"""
    nothing = np.int64(0)
    days, end = _date(text, at, stop, 6)
    if end < 0:
        return nothing, BAD, end
    seconds, micros, result, offset = nothing, nothing, np.uint8(LOCAL), nothing
    if end < stop:
        if code_at(text, end) != 84 and code_at(text, end) != 32:
            return nothing, BAD, end
        seconds, micros, end = _time_of_day(text, end + 1, stop)
        if end < 0:
            return nothing, BAD, end
        while end < stop and code_at(text, end) == 32:
            end += 1
        offset, result = _zone(text, end, stop)
    seconds += days * _DAY_S - offset
    room = nothing if result == GOOD else _DAY_S
    if seconds <= _FIRST_SECOND + room and (seconds < _FIRST_SECOND + room or micros < _FIRST_MICROS):
        return nothing, BAD, end
    if seconds >= _LAST_SECOND - room and (seconds > _LAST_SECOND - room or micros > _LAST_MICROS):
        return nothing, BAD, end
    return seconds * _SECOND_MICROS + micros, result, end


@njit([void(BYTES, PLACES_IN, PLACES_IN, KINDS_IN, int64[::1], KINDS, PLACES)], cache=True, nogil=True)
def to_timestamps(data, starts, stops, kinds, out, results, zone_starts):
    """Microseconds since 1970. LOCAL without a zone, and ZONED with a name of one, from `zone_starts`: as if it were UTC.

    A whole number is seconds; too many of them wrap around, as in Spark. UNDECIDED as in `to_dates`.
    """
    text = np.int64(data.ctypes.data)
    for row in range(len(kinds)):
        out[row] = 0
        kind = kinds[row]
        if kind <= NULL:
            results[row] = NOTHING
            continue
        results[row] = BAD
        at, stop = np.int64(starts[row]), np.int64(stops[row])
        if kind == WHOLE:
            seconds, is_good = long_at(text, at, stop)
            if is_good:
                out[row] = seconds * _SECOND_MICROS
                results[row] = GOOD
        if kind != TEXT:
            continue
        at, stop = _trimmed(text, at, stop)
        if at >= stop:
            continue
        out[row], results[row], zone_starts[row] = _timestamp(text, at, stop)
        if results[row] == BAD and _has_gmt(text, at, stop):
            results[row] = UNDECIDED


@njit([void(int64[::1], int64[::1], int64[::1], int64[::1], int64, int64)], cache=True, nogil=True)
def to_instants(micros, rows, ends, offsets, repeats_from, cycle):
    """`micros[rows]` from local times to microseconds since 1970, by the rules of time_zones.py."""
    place = 0
    for row in rows:
        local = micros[row]
        asked = local
        if asked >= repeats_from:
            asked = repeats_from + (asked - repeats_from) % cycle
        # Times that come one after the other mostly have the same offset.
        if (place > 0 and asked < ends[place - 1]) or (place < len(ends) and asked >= ends[place]):
            place = np.searchsorted(ends, asked, side="right")
        micros[row] = local - offsets[place]
