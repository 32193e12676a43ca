"""From spans to text and bytes, compiled; as json_scalars.py. A conversion never needs more room than its spans have."""

import numpy as np
from numba import int64, njit, uint8

from penstock.records.columnar.byte_kernels import copy_bytes
from penstock.records.columnar.json_escapes import code_at, paired, unit_at
from penstock.records.columnar.json_scalars import BAD, GOOD, NOTHING
from penstock.records.columnar.json_walk import (
    ARRAY,
    BYTES,
    ESCAPED,
    KINDS,
    KINDS_IN,
    NULL,
    OBJECT,
    PLACES,
    PLACES_IN,
    TEXT,
)

MADE_FROM = "8e3ba11655bf5773"
"""Of byte_kernels.py, json_escapes.py, json_walk.py and json_scalars.py, as in kernels.py."""

_BASE64 = np.full(256, -1, dtype=np.int64)
_BASE64[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")] = np.arange(64)


@njit(cache=True, nogil=True)
def _put_utf8(out, at, point):
    if point < 0x80:
        out[at] = point
        return at + 1
    if point < 0x800:
        out[at] = 0xC0 | point >> 6
    else:
        if point < 0x10000:
            out[at] = 0xE0 | point >> 12
        else:
            out[at] = 0xF0 | point >> 18
            at += 1
            out[at] = 0x80 | (point >> 12 & 0x3F)
        at += 1
        out[at] = 0x80 | (point >> 6 & 0x3F)
    out[at + 1] = 0x80 | (point & 0x3F)
    return at + 2


@njit(cache=True, nogil=True)
def _unescape(text, at, stop, out, to):
    while at < stop:
        byte = code_at(text, at)
        at += 1
        if byte == 92:
            byte = code_at(text, at)
            at += 1
            if byte == 117:
                point, at = paired(text, at + 4, stop, unit_at(text, at))
                to = _put_utf8(out, to, point)
                continue
            if byte == 98:
                byte = np.int64(8)
            elif byte == 102:
                byte = np.int64(12)
            elif byte == 110:
                byte = np.int64(10)
            elif byte == 114:
                byte = np.int64(13)
            elif byte == 116:
                byte = np.int64(9)
        out[to] = byte
        to += 1
    return to


@njit(cache=True, nogil=True)
def _compact(text, at, stop, out, to):
    """An object or array without the blanks between its parts."""
    quote = np.int64(0)
    while at < stop:
        byte = code_at(text, at)
        at += 1
        if quote:
            if byte == 92:
                out[to] = byte
                to += 1
                byte = code_at(text, at)
                at += 1
            elif byte == quote:
                quote = np.int64(0)
        elif byte <= 32:
            continue
        elif byte == 34 or byte == 39:
            quote = byte
        out[to] = byte
        to += 1
    return to


@njit([int64(BYTES, PLACES_IN, PLACES_IN, KINDS_IN, uint8[::1], PLACES, KINDS)], cache=True, nogil=True)
def to_texts(data, starts, stops, kinds, out, ends, results):
    """What is no string is its own text. `out` has room for all spans: nothing grows. How much of it was used."""
    text, target = np.int64(data.ctypes.data), np.int64(out.ctypes.data)
    to = np.int64(0)
    ends[0] = 0
    for row in range(len(kinds)):
        kind = kinds[row]
        at, stop = np.int64(starts[row]), np.int64(stops[row])
        results[row] = GOOD
        if kind <= NULL:
            results[row] = NOTHING
        elif kind == ESCAPED:
            to = _unescape(text, at, stop, out, to)
        elif kind in (OBJECT, ARRAY):
            to = _compact(text, at, stop, out, to)
        else:
            copy_bytes(target + to, text + at, stop - at)
            to += stop - at
        ends[row + 1] = to
    return to


@njit([int64(BYTES, PLACES_IN, PLACES_IN, KINDS_IN, uint8[::1], PLACES, KINDS)], cache=True, nogil=True)
def from_base64(data, starts, stops, kinds, out, ends, results):
    text = np.int64(data.ctypes.data)
    to = np.int64(0)
    ends[0] = 0
    for row in range(len(kinds)):
        kind = kinds[row]
        at, stop = np.int64(starts[row]), np.int64(stops[row])
        results[row] = NOTHING
        if kind > NULL:
            results[row] = BAD
            if kind == TEXT and (stop - at) % 4 == 0:
                padding = 0
                while padding < 2 and stop > at and code_at(text, stop - 1) == 61:
                    stop -= 1
                    padding += 1
                begun, bits, is_good = to, np.int64(0), True
                for place in range(stop - at):
                    six = _BASE64[code_at(text, at + place)]
                    if six < 0:
                        is_good = False
                        break
                    bits = bits << 6 | six
                    if place % 4:
                        out[to] = bits >> (6 - 2 * (place % 4)) & 0xFF
                        to += 1
                if is_good:
                    results[row] = GOOD
                else:
                    to = begun
        ends[row + 1] = to
    return to
