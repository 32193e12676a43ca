"""The escapes in JSON's strings, compiled: whether they are some, and what they mean.

As in byte_kernels.py nobody here knows where the buffer ends: but for `after_escape`, only for what that has found good.
"""

import numpy as np
from numba import njit

from penstock.records.columnar.byte_kernels import byte_at

MADE_FROM = "df561b99a92fce08"
"""Of byte_kernels.py, as in kernels.py."""

_QUOTE, _BACKSLASH = 34, 92


@njit(cache=True, nogil=True)
def code_at(text, at):
    """The byte there as a signed number, which compares and adds with the constants of these files."""
    return np.int64(byte_at(text, at))


@njit(cache=True, nogil=True)
def after_escape(text, at, stop):
    """From behind the backslash; -1 for what JSON does not know."""
    if at >= stop:
        return np.int64(-1)
    byte = code_at(text, at)
    if byte == 117:  # u
        if at + 5 > stop:
            return np.int64(-1)
        for place in range(at + 1, at + 5):
            digit = code_at(text, place)
            if not (48 <= digit <= 57 or 65 <= digit <= 70 or 97 <= digit <= 102):
                return np.int64(-1)
        return at + 5
    if byte in (_QUOTE, _BACKSLASH, 47, 98, 102, 110, 114, 116):
        return at + 1
    return np.int64(-1)


@njit(cache=True, nogil=True)
def unit_at(text, at):
    """The four hexadecimal digits of an escape."""
    unit = np.int64(0)
    for place in range(at, at + 4):
        digit = code_at(text, place)
        unit = unit * 16 + (digit - 48 if digit <= 57 else (digit | 32) - 87)
    return unit


@njit(cache=True, nogil=True)
def paired(text, at, stop, unit):
    """(code point, behind it) of a unit of UTF-16 and, where it is the first half of a pair, the escape that follows.

    Half of a pair alone is a question mark, as Java has it.
    """
    if unit < 0xD800 or unit >= 0xE000:
        return unit, at
    if unit < 0xDC00 and at + 6 <= stop and code_at(text, at) == _BACKSLASH and code_at(text, at + 1) == 117:
        second = unit_at(text, at + 2)
        if 0xDC00 <= second < 0xE000:
            return 0x10000 + ((unit - 0xD800) << 10) + second - 0xDC00, at + 6
    return np.int64(63), at


@njit(cache=True, nogil=True)
def _after_point(name, at, stop, point):
    """Behind a character in UTF-8 if it stands there, or -1."""
    more = 1 if point < 0x800 else 2 if point < 0x10000 else 3
    if at + more >= stop or code_at(name, at) != (0xF0 << (3 - more) & 0xFF | point >> 6 * more):
        return np.int64(-1)
    for number in range(1, more + 1):
        if code_at(name, at + number) != (0x80 | point >> 6 * (more - number) & 0x3F):
            return np.int64(-1)
    return at + more + 1


@njit(cache=True, nogil=True)
def means(text, at, stop, name, name_at, name_stop):
    """Whether an escaped key is this name."""
    while at < stop and name_at < name_stop:
        byte = code_at(text, at)
        at += 1
        if byte == _BACKSLASH:
            byte = code_at(text, at)
            at += 1
            if byte == 117:
                byte, at = paired(text, at + 4, stop, unit_at(text, at))
                if byte > 127:
                    name_at = _after_point(name, name_at, name_stop, byte)
                    if name_at < 0:
                        return False
                    continue
            elif byte == 98:
                byte = 8
            elif byte == 102:
                byte = 12
            elif byte == 110:
                byte = 10
            elif byte == 114:
                byte = 13
            elif byte == 116:
                byte = 9
        if byte != code_at(name, name_at):
            return False
        name_at += 1
    return at == stop and name_at == name_stop
