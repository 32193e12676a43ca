"""A walk over JSON texts, compiled: it checks a text and says where the wanted parts of it are, and copies nothing.

A part is a *span*: where its text starts and stops in the buffer (a string's without its quotes), and its kind. Objects
give the spans of their fields, arrays those of their elements; whoever wants what is in those walks again over them.
Every array here has one entry per span; `starts`, `stops` and `kinds` belong together.

The grammar is that of Spark's `from_json`: JSON, and besides strings in single quotes, NaN and Infinity. Parts that
are not wanted are checked as well. Nesting is followed to MAX_DEPTH.
"""

import numpy as np
from numba import boolean, int32, int64, njit, types, uint8, void

from penstock.records.columnar.byte_kernels import word_at
from penstock.records.columnar.json_escapes import after_escape, code_at, means

MADE_FROM = "7b5270526fd26ca8"
"""Of byte_kernels.py and json_escapes.py, as in kernels.py."""

# Kinds
ABSENT, NULL, WHOLE, FRACTION, SPECIAL, TEXT, ESCAPED, TRUE, FALSE, OBJECT, ARRAY, MALFORMED, EMPTY = range(
    13
)
"""WHOLE and FRACTION are numbers, SPECIAL is NaN or an infinity, ESCAPED a string with backslashes. Of whole texts:
MALFORMED is no object, or one that is not well-formed; EMPTY has only blanks."""
MAX_DEPTH = 64

BYTES = types.Array(uint8, 1, "C", readonly=True)
PLACES_IN = types.Array(int32, 1, "C", readonly=True)
KINDS_IN = types.Array(uint8, 1, "C", readonly=True)
PLACES = int32[::1]
KINDS = uint8[::1]
PLACE_TABLE = int32[:, ::1]
KIND_TABLE = uint8[:, ::1]

_QUOTE, _APOSTROPHE, _BACKSLASH, _COMMA, _COLON = 34, 39, 92, 44, 58
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = 123, 125, 91, 93
_ONES = np.uint64(0x0101010101010101)
_HIGH_BITS = np.uint64(0x8080808080808080)
_BLANKS = np.uint64(0x2020202020202020)
_BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
_EIGHT_LETTERS = np.uint64(0x7974696E69666E49)  # "Infinity", as a little-endian processor loads it


@njit(cache=True, nogil=True)
def _after_blanks(text, at, stop):
    while at < stop:
        byte = code_at(text, at)
        if byte > 32 or (byte != 32 and byte != 10 and byte != 13 and byte != 9):
            break
        at += 1
    return at


@njit(cache=True, nogil=True)
def _is_digit(text, at, stop):
    return at < stop and 48 <= code_at(text, at) <= 57


@njit(cache=True, nogil=True)
def _string_end(text, at, stop, quote):
    """Where the closing quote is, or -1; and whether there are escapes. From behind the opening quote."""
    quotes = np.uint64(quote) * _ONES
    escaped = False
    while at < stop:
        while at + 8 <= stop:  # eight bytes at a time that are neither quote nor backslash nor control
            word = word_at(text, at)
            quoted, slashed = word ^ quotes, word ^ _BACKSLASHES
            found = ((quoted - _ONES) & ~quoted) | ((slashed - _ONES) & ~slashed) | ((word - _BLANKS) & ~word)
            if found & _HIGH_BITS:
                break
            at += 8
        if at >= stop:
            break
        byte = code_at(text, at)
        if byte == quote:
            return at, escaped
        if byte < 32:
            break
        at += 1
        if byte == _BACKSLASH:
            escaped = True
            at = after_escape(text, at, stop)
            if at < 0:
                break
    return np.int64(-1), escaped


@njit(cache=True, nogil=True)
def _number_end(text, at, stop):
    """(behind the number or -1, kind)"""
    nowhere = np.int64(-1)
    first = code_at(text, at)
    if first == 45 or first == 43:
        at += 1
        if at < stop and code_at(text, at) == 73:  # I
            if at + 8 <= stop and word_at(text, at) == _EIGHT_LETTERS:
                return at + 8, SPECIAL
            if at + 3 <= stop and code_at(text, at + 1) == 78 and code_at(text, at + 2) == 70:
                return at + 3, SPECIAL
            return nowhere, MALFORMED
        if first == 43:
            return nowhere, MALFORMED
    if not _is_digit(text, at, stop):
        return nowhere, MALFORMED
    if code_at(text, at) == 48:
        at += 1
    else:
        while _is_digit(text, at, stop):
            at += 1
    kind = WHOLE
    if at < stop and code_at(text, at) == 46:
        kind = FRACTION
        at += 1
        if not _is_digit(text, at, stop):
            return nowhere, MALFORMED
        while _is_digit(text, at, stop):
            at += 1
    if at < stop and (code_at(text, at) | 32) == 101:  # e, E
        kind = FRACTION
        at += 1
        if at < stop and code_at(text, at) in (43, 45):
            at += 1
        if not _is_digit(text, at, stop):
            return nowhere, MALFORMED
        while _is_digit(text, at, stop):
            at += 1
    return at, kind


@njit(cache=True, nogil=True)
def _is_word(text, at, stop, size, first, second, third, last):
    return (
        at + size <= stop
        and code_at(text, at) == first
        and code_at(text, at + 1) == second
        and code_at(text, at + 2) == third
        and code_at(text, at + size - 1) == last
    )


@njit(cache=True, nogil=True)
def _scalar(text, at, stop):
    """(behind it or -1, start, stop, kind)"""
    byte = code_at(text, at)
    if byte in (_QUOTE, _APOSTROPHE):
        end, escaped = _string_end(text, at + 1, stop, byte)
        return end + 1 if end >= 0 else end, at + 1, end, ESCAPED if escaped else TEXT
    if byte == 45 or byte == 43 or 48 <= byte <= 57:
        end, kind = _number_end(text, at, stop)
        return end, at, end, kind
    if _is_word(text, at, stop, 4, 116, 114, 117, 101):
        return at + 4, at, at + 4, TRUE
    if _is_word(text, at, stop, 5, 102, 97, 108, 101) and code_at(text, at + 3) == 115:
        return at + 5, at, at + 5, FALSE
    if _is_word(text, at, stop, 4, 110, 117, 108, 108):
        return at + 4, at, at + 4, NULL
    if _is_word(text, at, stop, 3, 78, 97, 78, 78):
        return at + 3, at, at + 3, SPECIAL
    if at + 8 <= stop and word_at(text, at) == _EIGHT_LETTERS:
        return at + 8, at, at + 8, SPECIAL
    return np.int64(-1), at, at, MALFORMED


@njit(cache=True, nogil=True)
def _key(text, at, stop):
    """(the value's first byte or -1, start, stop, kind) of a key and its colon"""
    byte = code_at(text, at)
    if byte != _QUOTE and byte != _APOSTROPHE:
        return np.int64(-1), at, at, MALFORMED
    end, escaped = _string_end(text, at + 1, stop, byte)
    if end < 0:
        return end, at, at, MALFORMED
    colon = _after_blanks(text, end + 1, stop)
    if colon >= stop or code_at(text, colon) != _COLON:
        return np.int64(-1), at, at, MALFORMED
    value = _after_blanks(text, colon + 1, stop)
    return value if value < stop else np.int64(-1), at + 1, end, ESCAPED if escaped else TEXT


@njit(cache=True, nogil=True)
def _container_end(text, at, stop):
    """Behind the object or array that opens at `at`; -1 if it is not well-formed."""
    nowhere = np.int64(-1)
    depth = 0
    in_object = np.uint64(0)  # one bit for each level
    just_opened = False
    while True:
        byte = code_at(text, at)
        if byte in (_OPEN_OBJECT, _OPEN_ARRAY):
            if depth == MAX_DEPTH:
                return nowhere
            in_object = (in_object << np.uint64(1)) | np.uint64(byte == _OPEN_OBJECT)
            depth += 1
            just_opened = True
            at += 1
        else:
            at, _, _, _ = _scalar(text, at, stop)
            if at < 0:
                return nowhere
            just_opened = False
        while True:  # closes what is to close, up to where the next value is
            at = _after_blanks(text, at, stop)
            if at >= stop:
                return nowhere
            byte = code_at(text, at)
            if byte == (_CLOSE_OBJECT if in_object & np.uint64(1) else _CLOSE_ARRAY):
                at += 1
                depth -= 1
                in_object >>= np.uint64(1)
                if depth == 0:
                    return at
                just_opened = False
                continue
            if not just_opened:
                if byte != _COMMA:
                    return nowhere
                at = _after_blanks(text, at + 1, stop)
                if at >= stop:
                    return nowhere
            break
        if in_object & np.uint64(1):
            at, _, _, _ = _key(text, at, stop)
            if at < 0:
                return nowhere


@njit(cache=True, nogil=True)
def _value(text, at, stop):
    """(behind it or -1, start, stop, kind)"""
    byte = code_at(text, at)
    if byte in (_OPEN_OBJECT, _OPEN_ARRAY):
        end = _container_end(text, at, stop)
        return end, at, end, OBJECT if byte == _OPEN_OBJECT else ARRAY
    return _scalar(text, at, stop)


@njit(cache=True, nogil=True)
def _after_comma(text, at, stop, closing, is_first):
    """(the next entry's first byte, or -1; behind the closing bracket, or -1)"""
    nowhere = np.int64(-1)
    at = _after_blanks(text, at, stop)
    if at >= stop:
        return nowhere, nowhere
    byte = code_at(text, at)
    if byte == closing:
        return nowhere, at + 1
    if not is_first:
        if byte != _COMMA:
            return nowhere, nowhere
        at = _after_blanks(text, at + 1, stop)
        if at >= stop:
            return nowhere, nowhere
    return at, nowhere


@njit(cache=True, nogil=True)
def _same(text, start, size, other, other_start):
    place = 0
    while place < size and code_at(text, start + place) == code_at(other, other_start + place):
        place += 1
    return place == size


@njit([void(BYTES, PLACES_IN, PLACES_IN, KINDS)], cache=True, nogil=True)
def find_objects(data, starts, stops, kinds):
    """Whole texts: those that are not ABSENT become OBJECT, EMPTY or MALFORMED by their first byte."""
    text = np.int64(data.ctypes.data)
    for row in range(len(kinds)):
        if kinds[row] == ABSENT:
            continue
        at = _after_blanks(text, np.int64(starts[row]), np.int64(stops[row]))
        if at >= stops[row]:
            kinds[row] = EMPTY
        else:
            kinds[row] = OBJECT if code_at(text, at) == _OPEN_OBJECT else MALFORMED


@njit(
    [void(BYTES, PLACES_IN, PLACES_IN, KINDS, BYTES, PLACES_IN, PLACE_TABLE, PLACE_TABLE, KIND_TABLE)],
    cache=True,
    nogil=True,
)
def walk_objects(
    data, starts, stops, kinds, names, name_ends, field_starts, field_stops, field_kinds
):  # fmt: skip
    """The fields with these names; `field_kinds` comes as ABSENT everywhere. What follows an object is not looked at.

    An object that is not well-formed becomes MALFORMED and has no fields. Of fields with the same name the last counts.
    """
    text, name = np.int64(data.ctypes.data), np.int64(names.ctypes.data)
    fields = len(name_ends) - 1
    for row in range(len(kinds)):
        if kinds[row] != OBJECT:
            continue
        stop = np.int64(stops[row])
        at = _after_blanks(text, np.int64(starts[row]), stop) + 1
        likely = 0  # most objects have their fields in the same order
        is_first = True
        while True:
            at, end = _after_comma(text, at, stop, _CLOSE_OBJECT, is_first)
            if at < 0:
                break
            is_first = False
            at, key_start, key_stop, key_kind = _key(text, at, stop)
            if at < 0:
                break
            at, value_start, value_stop, kind = _value(text, at, stop)
            if at < 0:
                break
            for number in range(fields):
                field = likely + number
                if field >= fields:
                    field -= fields
                name_start = np.int64(name_ends[field])
                size = np.int64(name_ends[field + 1]) - name_start
                if key_kind == ESCAPED:
                    is_it = means(text, key_start, key_stop, name, name_start, name_start + size)
                else:
                    is_it = key_stop - key_start == size and _same(text, key_start, size, name, name_start)
                if is_it:
                    field_starts[field, row] = value_start
                    field_stops[field, row] = value_stop
                    field_kinds[field, row] = kind
                    likely = field + 1
                    break
        if end < 0:
            kinds[row] = MALFORMED
            for field in range(fields):
                field_kinds[field, row] = ABSENT


@njit([int64(BYTES, PLACES_IN, PLACES_IN, KINDS_IN, boolean, PLACES)], cache=True, nogil=True)
def count_entries(data, starts, stops, kinds, of_objects, ends):
    """How many entries the arrays (or objects) have, all together; `ends[row + 1]` is the sum up to a row."""
    text = np.int64(data.ctypes.data)
    wanted = OBJECT if of_objects else ARRAY
    count = np.int64(0)
    for row in range(len(kinds)):
        if kinds[row] == wanted:
            at, stop = np.int64(starts[row]) + 1, np.int64(stops[row])
            is_first = True
            while True:
                at, _ = _after_comma(text, at, stop, _CLOSE_OBJECT if of_objects else _CLOSE_ARRAY, is_first)
                if at < 0:
                    break
                is_first = False
                if of_objects:
                    at, _, _, _ = _key(text, at, stop)
                at, _, _, _ = _value(text, at, stop)
                count += 1
        ends[row + 1] = count
    return count


@njit(
    [void(BYTES, PLACES_IN, PLACES_IN, KINDS_IN, boolean, PLACE_TABLE, PLACE_TABLE, KIND_TABLE)],
    cache=True,
    nogil=True,
)
def find_entries(data, starts, stops, kinds, of_objects, entry_starts, entry_stops, entry_kinds):
    """The spans of the values in row 0, and those of the keys in row 1. Only for what a walk has found well-formed."""
    text = np.int64(data.ctypes.data)
    wanted = OBJECT if of_objects else ARRAY
    entry = 0
    for row in range(len(kinds)):
        if kinds[row] != wanted:
            continue
        at, stop = np.int64(starts[row]) + 1, np.int64(stops[row])
        is_first = True
        while True:
            at, _ = _after_comma(text, at, stop, _CLOSE_OBJECT if of_objects else _CLOSE_ARRAY, is_first)
            if at < 0:
                break
            is_first = False
            if of_objects:
                at, key_start, key_stop, key_kind = _key(text, at, stop)
                entry_starts[1, entry] = key_start
                entry_stops[1, entry] = key_stop
                entry_kinds[1, entry] = key_kind
            at, value_start, value_stop, kind = _value(text, at, stop)
            entry_starts[0, entry] = value_start
            entry_stops[0, entry] = value_stop
            entry_kinds[0, entry] = kind
            entry += 1
