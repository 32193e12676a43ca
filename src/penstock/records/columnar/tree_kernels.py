"""Columns that grow while values are decoded, as compiled code sees them: by the address of their table (tree_layout.py).

Each `put_…` appends one entry and says whether there was room. What was appended for a row that turns out to be broken is
taken back by `back_to`.
"""

import numpy as np
from numba import njit

from penstock.records.columnar import tree_layout as k
from penstock.records.columnar.byte_kernels import byte_at, copy_bytes, is_utf8, word_at
from penstock.records.columnar.memory import load_int, load_long, store_byte, store_int, store_long

_ROW_BYTES = 8 * k.COLUMN_WORDS
_HIGH_BITS = np.uint64(0x8080808080808080)
ZERO, ONE = np.int64(0), np.int64(1)


@njit(cache=True, nogil=True)
def word(columns, column, which):
    return load_long(columns + column * _ROW_BYTES + 8 * which)


@njit(cache=True, nogil=True)
def set_word(columns, column, which, value):
    store_long(columns + column * _ROW_BYTES + 8 * which, np.int64(value))


@njit(cache=True, nogil=True)
def _append(columns, column, is_there):
    """The place of the new entry, or -1 where there is no room."""
    count = word(columns, column, k.COUNT)
    if count >= word(columns, column, k.CAPACITY):
        return np.int64(-1)
    store_byte(word(columns, column, k.VALIDITY) + count, is_there)
    set_word(columns, column, k.COUNT, count + 1)
    return count


@njit(cache=True, nogil=True)
def put_there(columns, column):
    return _append(columns, column, ONE) >= 0


@njit(cache=True, nogil=True)
def put_null(columns, column):
    count = _append(columns, column, ZERO)
    if count < 0:
        return False
    storage = word(columns, column, k.SHAPE) & 255
    values = word(columns, column, k.VALUES)
    if storage == k.EIGHT:
        store_long(values + 8 * count, ZERO)
    elif storage == k.FOUR:
        store_int(values + 4 * count, ZERO)
    elif storage == k.VARIABLE or storage == k.LIST:
        store_int(values + 4 * (count + 1), load_int(values + 4 * count))
    elif storage == k.BYTE:
        store_byte(values + count, ZERO)
    elif storage == k.SIXTEEN:
        store_long(values + 16 * count, ZERO)
        store_long(values + 16 * count + 8, ZERO)
    return True


@njit(cache=True, nogil=True)
def put_byte(columns, column, value):
    count = _append(columns, column, ONE)
    if count < 0:
        return False
    store_byte(word(columns, column, k.VALUES) + count, value)
    return True


@njit(cache=True, nogil=True)
def put_int(columns, column, value):
    count = _append(columns, column, ONE)
    if count < 0:
        return False
    store_int(word(columns, column, k.VALUES) + 4 * count, value)
    return True


@njit(cache=True, nogil=True)
def put_long(columns, column, value):
    count = _append(columns, column, ONE)
    if count < 0:
        return False
    store_long(word(columns, column, k.VALUES) + 8 * count, value)
    return True


@njit(cache=True, nogil=True)
def put_wide(columns, column, low, high):
    count = _append(columns, column, ONE)
    if count < 0:
        return False
    at = word(columns, column, k.VALUES) + 16 * count
    store_long(at, low)
    store_long(at + 8, high)
    return True


@njit(cache=True, nogil=True)
def put_bytes(columns, column, source, size):
    used = word(columns, column, k.USED)
    if size > word(columns, column, k.DATA_CAPACITY) - used:
        return False
    count = _append(columns, column, ONE)
    if count < 0:
        return False
    copy_bytes(word(columns, column, k.DATA) + used, source, size)
    set_word(columns, column, k.USED, used + size)
    store_int(word(columns, column, k.VALUES) + 4 * (count + 1), used + size)
    return True


@njit(cache=True, nogil=True)
def put_list(columns, column, items):
    """Up to where the items are by now."""
    count = _append(columns, column, ONE)
    if count < 0:
        return False
    end = word(columns, items, k.COUNT)
    store_int(word(columns, column, k.VALUES) + 4 * (count + 1), end)
    return True


@njit(cache=True, nogil=True)
def put_nulls(columns, listed, count):
    """-1, or the column without room. `listed`: the address of their numbers."""
    for number in range(count):
        column = load_long(listed + 8 * number)
        if not put_null(columns, column):
            return column
    return np.int64(-1)


@njit(cache=True, nogil=True)
def back_to(columns, column_count, row):
    """Every column to what it had when the root had `row` entries. A column comes after the one that it is in."""
    for column in range(column_count):
        shape = word(columns, column, k.SHAPE)
        storage, parent = shape & 255, shape >> 8
        if parent < 0:
            count = np.int64(row)
        elif word(columns, parent, k.SHAPE) & 255 == k.LIST:
            count = load_int(word(columns, parent, k.VALUES) + 4 * word(columns, parent, k.COUNT))
        else:
            count = word(columns, parent, k.COUNT)
        set_word(columns, column, k.COUNT, count)
        if storage == k.VARIABLE:
            set_word(columns, column, k.USED, load_int(word(columns, column, k.VALUES) + 4 * count))


@njit(cache=True, nogil=True)
def is_text(buffer, at, end):
    """Whether it is UTF-8; eight bytes at a time as long as it is ASCII."""
    while at + 8 <= end and not word_at(buffer, at) & _HIGH_BITS:
        at += 8
    while at < end and byte_at(buffer, at) < np.uint64(0x80):
        at += 1
    return at >= end or is_utf8(buffer, at, end)
