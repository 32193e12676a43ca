"""From spans to dates and timestamps, compiled; as json_scalars.py.

ISO 8601 as Spark casts it: yyyy[-[m]m[-[d]d]] and after a T or a blank [h]h[:[m]m[:[s]s[.f…]]] and a zone.
"""

import numpy as np
from numba import int32, int64, njit, void

from penstock.records.columnar.json_escapes import code_at
from penstock.records.columnar.json_scalars import BAD, GOOD, LOCAL, MAX_DIGITS, NOTHING, ZONED
from penstock.records.columnar.json_walk import BYTES, KINDS, KINDS_IN, NULL, PLACES, PLACES_IN, TEXT, WHOLE

MADE_FROM = "b3357a6b68b49de4"
"""Of byte_kernels.py, json_escapes.py, json_walk.py and json_scalars.py, as in kernels.py."""

_DAY_MICROS = np.int64(86_400_000_000)
_DAYS_BEFORE = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334], dtype=np.int64)
_MONTH_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], dtype=np.int64)
_LAST_YEAR = 294_246  # whose microseconds fit in 64 bits
_FIRST_DAY = np.int64(-106_751_990)  # as well, in whatever zone


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
def _date(text, at, stop):
    """(days, behind it or -1) of yyyy[-[m]m[-[d]d]]"""
    nowhere = np.int64(-1)
    negative = code_at(text, at) == 45
    if negative or code_at(text, at) == 43:
        at += 1
    year, end = _digits(text, at, stop, 7)
    if end - at < 4 or end - at > 6 or year > _LAST_YEAR:
        return np.int64(0), nowhere
    if negative:
        year = -year
    month, day = np.int64(1), np.int64(1)
    if end < stop and code_at(text, end) == 45:
        month, at = _digits(text, end + 1, stop, 2)
        if at == end + 1 or not 1 <= month <= 12:
            return np.int64(0), nowhere
        end = at
        if end < stop and code_at(text, end) == 45:
            day, at = _digits(text, end + 1, stop, 2)
            last = _MONTH_DAYS[month - 1]
            if month == 2 and _is_leap(year):
                last += 1
            if at == end + 1 or not 1 <= day <= last:
                return np.int64(0), nowhere
            end = at
    return _days(year, month, day), end


@njit(cache=True, nogil=True)
def _trimmed(text, at, stop):
    while at < stop and code_at(text, at) <= 32:
        at += 1
    while stop > at and code_at(text, stop - 1) <= 32:
        stop -= 1
    return at, stop


@njit([void(BYTES, PLACES_IN, PLACES_IN, KINDS_IN, int32[::1], KINDS)], cache=True, nogil=True)
def to_dates(data, starts, stops, kinds, out, results):
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
        days, end = _date(text, at, stop)
        if end == stop or (end > 0 and (code_at(text, end) == 84 or code_at(text, end) == 32)):  # T, blank
            out[row] = days
            results[row] = GOOD


@njit(cache=True, nogil=True)
def _time_of_day(text, at, stop):
    """(microseconds, behind it or -1) of [h]h[:[m]m[:[s]s[.f…]]]"""
    nowhere = np.int64(-1)
    hour, end = _digits(text, at, stop, 2)
    if end == at or hour > 23:
        return np.int64(0), nowhere
    minute, second, micros = np.int64(0), np.int64(0), np.int64(0)
    if end < stop and code_at(text, end) == 58:
        minute, at = _digits(text, end + 1, stop, 2)
        if at == end + 1 or minute > 59:
            return np.int64(0), nowhere
        end = at
        if end < stop and code_at(text, end) == 58:
            second, at = _digits(text, end + 1, stop, 2)
            if at == end + 1 or second > 59:
                return np.int64(0), nowhere
            end = at
            if end < stop and code_at(text, end) == 46:
                micros, at = _digits(text, end + 1, stop, 6)
                for _ in range(6 - (at - end - 1)):
                    micros *= 10
                while at < stop and 48 <= code_at(text, at) <= 57:
                    at += 1
                end = at
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros, end


@njit(cache=True, nogil=True)
def _zone(text, at, stop):
    """(microseconds east of Greenwich, result) of Z, ±[h]h, ±hhmm, ±[h]h:mm; ZONED for another name of a zone."""
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
        return np.int64(0), BAD
    if end < stop:
        start = end + 1 if code_at(text, end) == 58 else end
        minutes, end = _digits(text, start, stop, 2)
        if end != stop or end - start != 2 or minutes > 59:
            return np.int64(0), BAD
    offset = (hours * 60 + minutes) * np.int64(60_000_000)
    if offset > 18 * np.int64(3_600_000_000):
        return np.int64(0), BAD
    return -offset if sign == 45 else offset, GOOD


@njit([void(BYTES, PLACES_IN, PLACES_IN, KINDS_IN, int64[::1], KINDS, PLACES)], cache=True, nogil=True)
def to_timestamps(data, starts, stops, kinds, out, results, zone_starts):
    """Microseconds since 1970. LOCAL without a zone, and ZONED with a name of one, from `zone_starts`: as if it were UTC.

    A whole number is seconds.
    """
    text = np.int64(data.ctypes.data)
    for row in range(len(kinds)):
        out[row] = 0
        kind = kinds[row]
        if kind <= NULL:
            results[row] = NOTHING
            continue
        results[row] = BAD
        at, stop = _trimmed(text, np.int64(starts[row]), np.int64(stops[row]))
        if kind == WHOLE and stop - at <= MAX_DIGITS:
            seconds, _ = _digits(text, at + (code_at(text, at) == 45), stop, 20)
            out[row] = (-seconds if code_at(text, at) == 45 else seconds) * 1_000_000
            results[row] = GOOD
        if kind != TEXT or at >= stop:
            continue
        days, end = _date(text, at, stop)
        if end < 0 or days < _FIRST_DAY:
            continue
        micros, result, offset = np.int64(0), np.uint8(LOCAL), np.int64(0)
        if end < stop:
            if code_at(text, end) != 84 and code_at(text, end) != 32:
                continue
            micros, end = _time_of_day(text, end + 1, stop)
            if end < 0:
                continue
            while end < stop and code_at(text, end) == 32:
                end += 1
            offset, result = _zone(text, end, stop)
        out[row] = days * _DAY_MICROS + micros - offset
        results[row] = result
        zone_starts[row] = end
