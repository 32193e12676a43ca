"""Arrow columns → Avro's bytes, compiled: one interpreter for the programs of avro_encode.py, row by row.

Sources are the columns that a program reads, by the addresses of their buffers. A list is walked by its offsets, so the
place in a source is the row's, or that of an item. The call stops where `out` is too small and does that row again.
"""

import numpy as np
from numba import int32, int64, njit, types, uint8

from penstock.records.columnar.byte_kernels import copy_bytes
from penstock.records.columnar.memory import (
    load_byte,
    load_int,
    load_long,
    store_byte,
    store_int,
    store_long,
)

MADE_FROM = "22ccae2dc5ed2553"
"""Of memory.py and byte_kernels.py, as in kernels.py."""

# The words of a source
VALIDITY, OFFSET, VALUES, DATA = range(4)
SOURCE_WORDS = 4

# Operations, with what stands behind them
RETURN = 0
WHEN = 1  # source, branch that is written or -1, where to go on when it is null
JUMP = 2  # where
FAIL = 3  # reason
CONSTANT = 4  # start and size in `constants`
BOOLEAN = 5  # source
INT = 6  # source: four bytes
LONG = 7  # source, divisor
FOUR = 8  # source: bytes as they are
EIGHT = 9  # source
BYTES = 10  # source
FIXED = 11  # source, size: bytes of any size, which must be this one
SIXTEEN = 12  # source, size or -1: a decimal
SYMBOL = 13  # source: four bytes, -1 is none
LIST_OPEN = 14  # source, where to go on when it is empty
LIST_NEXT = 15  # where an item begins
OPERATION_WORDS = 4

DONE, ROOM, FAILED = 0, 1, 2
NEXT_ROW, NEEDED, REASON = 0, 1, 2
STATE_WORDS = 3

# Reasons
MISSING_VALUE, WRONG_SIZE, NO_SYMBOL, TOO_LARGE = 1, 2, 3, 4

STACK_WORDS = 3 * 256
_LARGEST = 0x7FFFFFFF
_VARINT = 10
_OPERATION_BYTES = 8 * OPERATION_WORDS
_SOURCE_BYTES = 8 * SOURCE_WORDS

BYTES_IN = types.Array(uint8, 1, "C", readonly=True)
LONGS_IN = types.Array(int64, 1, "C", readonly=True)


@njit(cache=True, nogil=True)
def _write_varint(out, at, number):
    raw = np.uint64(number << 1) ^ np.uint64(number >> 63)
    while raw > np.uint64(0x7F):
        store_byte(out + at, np.int64((raw & np.uint64(0x7F)) | np.uint64(0x80)))
        at += 1
        raw >>= np.uint64(7)
    store_byte(out + at, np.int64(raw))
    return at + 1


@njit(cache=True, nogil=True)
def _is_there(source, place):
    validity = load_long(source)
    if validity == 0:
        return True
    bit = place + load_long(source + 8 * OFFSET)
    return (load_byte(validity + (bit >> 3)) >> (bit & 7)) & 1 != 0


@njit(cache=True, nogil=True)
def _write_decimal(out, at, low, high, size):
    """(next place or -1): in as few bytes as there must be, behind their number; or in `size` bytes."""
    sign = high >> 63
    least = np.int64(16)
    while least > 1:
        word = high if least > 8 else low
        top = (word >> (8 * ((least - 1) & 7))) & 0xFF
        under = high if least - 1 > 8 else low
        next_top = (under >> (8 * ((least - 2) & 7))) & 0xFF
        if top != (sign & 0xFF) or (next_top >> 7) != (sign & 1):
            break
        least -= 1
    if size < 0:
        at = _write_varint(out, at, least)
        size = least
    elif size < least:
        return np.int64(-1)
    for number in range(size - 1, -1, -1):
        if number >= 16:
            store_byte(out + at, sign & 0xFF)
        else:
            word = high if number >= 8 else low
            store_byte(out + at, (word >> (8 * (number & 7))) & 0xFF)
        at += 1
    return at


@njit(
    int64(LONGS_IN, BYTES_IN, LONGS_IN, BYTES_IN, int64[::1], int64[::1], uint8[::1], int32[::1], int64),
    cache=True,
    nogil=True,
)
def encode_rows(operations, constants, sources, frame, stack, state, data, ends, start):
    """Rows from state[NEXT_ROW] on, from operation `start`; `ends` has where each begins and, behind it, ends."""
    out = np.int64(data.ctypes.data)
    room = np.int64(len(data))
    rows = len(ends) - 1
    program = np.int64(operations.ctypes.data)
    columns = np.int64(sources.ctypes.data)
    constant = np.int64(constants.ctypes.data)
    framing = np.int64(frame.ctypes.data)
    frame_size = np.int64(len(frame))
    for row in range(state[NEXT_ROW], rows):
        at = np.int64(ends[row])
        place = np.int64(row)
        needed = np.int64(0)
        top = np.int64(0)
        reason = np.int64(0)
        pc = program + start * _OPERATION_BYTES
        if at + frame_size > room:
            needed = frame_size
        else:
            copy_bytes(out + at, framing, frame_size)
            at += frame_size
        while needed == 0:
            operation = load_long(pc)
            a = load_long(pc + 8)
            b = load_long(pc + 16)
            source = columns + a * _SOURCE_BYTES
            pc += _OPERATION_BYTES
            if operation == RETURN:
                break
            # What is neither a text nor of a fixed size takes this much at most.
            if room - at < 2 * _VARINT:
                needed = np.int64(2 * _VARINT)
                break
            if operation == WHEN:
                if _is_there(source, place):
                    if b >= 0:
                        at = _write_varint(out, at, b)
                else:
                    pc = program + load_long(pc - _OPERATION_BYTES + 24) * _OPERATION_BYTES
            elif operation == LONG:
                index = place + load_long(source + 8 * OFFSET)
                number = load_long(load_long(source + 8 * VALUES) + 8 * index)
                at = _write_varint(out, at, number if b == 1 else number // b)
            elif operation in (BYTES, FIXED):
                index = place + load_long(source + 8 * OFFSET)
                offsets = load_long(source + 8 * VALUES) + 4 * index
                first = load_int(offsets)
                size = load_int(offsets + 4) - first
                if room - at < size + _VARINT:
                    needed = size + _VARINT
                    break
                if operation == BYTES:
                    at = _write_varint(out, at, size)
                elif size != b:
                    reason = np.int64(WRONG_SIZE)
                    break
                copy_bytes(out + at, load_long(source + 8 * DATA) + first, size)
                at += size
            elif operation in (INT, SYMBOL):
                index = place + load_long(source + 8 * OFFSET)
                number = load_int(load_long(source + 8 * VALUES) + 4 * index)
                if operation == SYMBOL and number < 0:
                    reason = np.int64(NO_SYMBOL)
                    break
                at = _write_varint(out, at, number)
            elif operation == EIGHT:
                index = place + load_long(source + 8 * OFFSET)
                store_long(out + at, load_long(load_long(source + 8 * VALUES) + 8 * index))
                at += 8
            elif operation == FOUR:
                index = place + load_long(source + 8 * OFFSET)
                store_int(out + at, load_int(load_long(source + 8 * VALUES) + 4 * index))
                at += 4
            elif operation == BOOLEAN:
                index = place + load_long(source + 8 * OFFSET)
                bits = load_byte(load_long(source + 8 * VALUES) + (index >> 3))
                store_byte(out + at, (bits >> (index & 7)) & 1)
                at += 1
            elif operation == JUMP:
                pc = program + a * _OPERATION_BYTES
            elif operation == CONSTANT:
                if room - at < b:
                    needed = b
                    break
                copy_bytes(out + at, constant + a, b)
                at += b
            elif operation == SIXTEEN:
                if room - at < b + 2 * _VARINT:
                    needed = b + 2 * _VARINT
                    break
                index = load_long(source + 8 * VALUES) + 16 * (place + load_long(source + 8 * OFFSET))
                after = _write_decimal(out, at, load_long(index), load_long(index + 8), b)
                if after < 0:
                    reason = np.int64(WRONG_SIZE)
                    break
                at = after
            elif operation == LIST_OPEN:
                offsets = load_long(source + 8 * VALUES) + 4 * (place + load_long(source + 8 * OFFSET))
                first, last = load_int(offsets), load_int(offsets + 4)
                if first == last:
                    store_byte(out + at, np.int64(0))
                    at += 1
                    pc = program + b * _OPERATION_BYTES
                else:
                    at = _write_varint(out, at, last - first)
                    stack[top], stack[top + 1] = place, last
                    top += 2
                    place = first
            elif operation == LIST_NEXT:
                place += 1
                if place < stack[top - 1]:
                    pc = program + a * _OPERATION_BYTES
                else:
                    store_byte(out + at, np.int64(0))
                    at += 1
                    top -= 2
                    place = stack[top]
            else:
                reason = a
                break
        if needed and at + needed > _LARGEST:
            reason, needed = np.int64(TOO_LARGE), np.int64(0)
        if needed or reason:
            state[NEXT_ROW], state[NEEDED], state[REASON] = row, at - ends[row] + needed, reason
            return np.int64(FAILED if reason else ROOM)
        ends[row + 1] = at
    state[NEXT_ROW] = rows
    return np.int64(DONE)
