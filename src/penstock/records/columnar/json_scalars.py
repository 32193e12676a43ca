"""From the spans that json_walk.py finds to numbers, times, text and bytes, compiled.

Each conversion fills `out` and says in `results` what became of each span: GOOD, BAD (it cannot be this type), NOTHING
(null or absent), or that Python has to look: UNDECIDED, and for times ZONED and LOCAL.
"""

import numpy as np
from numba import float64, int64, njit, void

from penstock.records.columnar.byte_kernels import byte_at
from penstock.records.columnar.json_escapes import code_at
from penstock.records.columnar.json_walk import (
    BYTES,
    ESCAPED,
    FRACTION,
    KINDS,
    KINDS_IN,
    NULL,
    OBJECT,
    PLACES_IN,
    TEXT,
    WHOLE,
)

MADE_FROM = "b86a46d4ff1c59af"
"""Of byte_kernels.py, json_escapes.py and json_walk.py, as in kernels.py."""

NOTHING, GOOD, BAD, UNDECIDED, ZONED, LOCAL = range(6)
MAX_DIGITS = 18  # that surely fit in 64 bits

_POWERS = 10.0 ** np.arange(23)
_WHOLE_POWERS = np.array([10**power for power in range(19)], dtype=np.int64)


@njit(cache=True, nogil=True)
def long_at(text, at, stop):
    """(number, whether it fits) of a WHOLE."""
    negative = code_at(text, at) == 45
    if negative:
        at += 1
    if stop - at > 19:
        return np.int64(0), False
    number = np.uint64(0)
    for place in range(at, stop):
        number = number * np.uint64(10) + (byte_at(text, place) - np.uint64(48))
    if number > np.uint64(0x7FFFFFFFFFFFFFFF) + np.uint64(negative):
        return np.int64(0), False
    value = np.int64(number)
    return (-value if negative else value), True


@njit([void(BYTES, PLACES_IN, PLACES_IN, KINDS_IN, int64, int64, int64[::1], KINDS)], cache=True, nogil=True)
def to_longs(data, starts, stops, kinds, smallest, largest, out, results):
    text = np.int64(data.ctypes.data)
    for row in range(len(kinds)):
        out[row] = 0
        kind = kinds[row]
        if kind <= NULL:
            results[row] = NOTHING
            continue
        results[row] = BAD
        if kind != WHOLE:
            continue
        value, is_good = long_at(text, np.int64(starts[row]), np.int64(stops[row]))
        if is_good and smallest <= value <= largest:
            out[row] = value
            results[row] = GOOD


@njit(cache=True, nogil=True)
def _numeral(text, at, stop):
    """(mantissa, power of ten, is negative, result) of digits with a point and an exponent, up to MAX_DIGITS of them."""
    mantissa, power, digits, seen = np.int64(0), np.int64(0), 0, 0
    negative = False
    if at < stop and (code_at(text, at) == 45 or code_at(text, at) == 43):
        negative = code_at(text, at) == 45
        at += 1
    after_point = False
    while at < stop:
        byte = code_at(text, at)
        if 48 <= byte <= 57:
            seen += 1
            if digits < MAX_DIGITS:
                mantissa = mantissa * 10 + (byte - 48)
                if mantissa:
                    digits += 1
                if after_point:
                    power -= 1
            else:
                return mantissa, power, negative, UNDECIDED
        elif byte == 46 and not after_point:
            after_point = True
        else:
            break
        at += 1
    if not seen:
        return mantissa, power, negative, BAD
    if at < stop:
        if (code_at(text, at) | 32) != 101:
            return mantissa, power, negative, BAD
        at += 1
        downwards = at < stop and code_at(text, at) == 45
        if at < stop and (code_at(text, at) == 45 or code_at(text, at) == 43):
            at += 1
        if at >= stop:
            return mantissa, power, negative, BAD
        if stop - at > 4:
            return mantissa, power, negative, UNDECIDED
        exponent = 0
        for place in range(at, stop):
            byte = code_at(text, place)
            if not 48 <= byte <= 57:
                return mantissa, power, negative, BAD
            exponent = exponent * 10 + byte - 48
        power += -exponent if downwards else exponent
    return mantissa, power, negative, GOOD


@njit([void(BYTES, PLACES_IN, PLACES_IN, KINDS_IN, float64[::1], KINDS)], cache=True, nogil=True)
def to_doubles(data, starts, stops, kinds, out, results):
    """UNDECIDED where one multiplication of exact numbers does not give the nearest double, and for names of numbers."""
    text = np.int64(data.ctypes.data)
    for row in range(len(kinds)):
        out[row] = 0.0
        kind = kinds[row]
        if kind <= NULL:
            results[row] = NOTHING
        elif kind in (WHOLE, FRACTION):
            mantissa, power, negative, result = _numeral(text, np.int64(starts[row]), np.int64(stops[row]))
            if result == GOOD and mantissa <= 1 << 53 and -22 <= power <= 22:
                number = np.float64(mantissa)
                number = number / _POWERS[-power] if power < 0 else number * _POWERS[power]
                # -0 is a whole number, which has one zero; -0.0 is not.
                out[row] = -number if negative and (mantissa != 0 or kind != WHOLE) else number
                results[row] = GOOD
            else:
                results[row] = UNDECIDED
        elif kind < OBJECT and kind != ESCAPED and stops[row] - starts[row] <= 9:
            results[row] = UNDECIDED
        else:
            results[row] = BAD


@njit(
    [void(BYTES, PLACES_IN, PLACES_IN, KINDS_IN, int64, int64, int64[:, ::1], KINDS)], cache=True, nogil=True
)
def to_decimals(data, starts, stops, kinds, precision, scale, out, results):
    """128-bit numbers in units of 10^-scale, rounded half away from zero; from numbers and from strings."""
    text = np.int64(data.ctypes.data)
    for row in range(len(kinds)):
        out[row, 0] = out[row, 1] = 0
        kind = kinds[row]
        if kind <= NULL:
            results[row] = NOTHING
            continue
        if kind != WHOLE and kind != FRACTION and kind != TEXT:
            results[row] = BAD
            continue
        mantissa, power, negative, result = _numeral(text, np.int64(starts[row]), np.int64(stops[row]))
        if result == GOOD and precision > MAX_DIGITS:
            result = UNDECIDED
        if result == GOOD:
            shift = power + scale
            if shift < -MAX_DIGITS or mantissa == 0:
                mantissa = np.int64(0)
            elif shift < 0:
                divisor = _WHOLE_POWERS[-shift]
                rest = mantissa % divisor
                mantissa //= divisor
                if rest >= divisor - rest:
                    mantissa += 1
            elif shift > MAX_DIGITS or mantissa >= _WHOLE_POWERS[MAX_DIGITS] // _WHOLE_POWERS[shift]:
                result = BAD
            else:
                mantissa *= _WHOLE_POWERS[shift]
            if mantissa >= _WHOLE_POWERS[precision]:
                result = BAD
        if result == GOOD:
            value = -mantissa if negative else mantissa
            out[row, 0] = value
            out[row, 1] = value >> 63
        results[row] = result
