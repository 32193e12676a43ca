"""Avro's bytes → columns, compiled: one interpreter for the programs of avro_program.py.

Each row has an entry: where in the program its schema begins, or why it is not read. A row that is broken is null at the
root and has a reason and a place; nothing is read behind its end. The call stops where a column has no room and does that
row again when there is more.
"""

import numpy as np
from numba import int32, int64, njit, types, uint8

from penstock.records.columnar import tree_layout as k
from penstock.records.columnar.byte_kernels import byte_at, read_varint
from penstock.records.columnar.memory import (
    float_to_double,
    load_int,
    load_long,
    long_to_double,
    long_to_float,
)
from penstock.records.columnar.tree_kernels import (
    back_to,
    is_text,
    put_byte,
    put_bytes,
    put_int,
    put_list,
    put_long,
    put_nulls,
    put_there,
    put_wide,
    word,
)

MADE_FROM = "5606cac910e939f5"
"""Of tree_layout.py, tree_kernels.py, memory.py and byte_kernels.py, as in kernels.py."""

BYTES_IN = types.Array(uint8, 1, "C", readonly=True)
PLACES_IN = types.Array(int32, 1, "C", readonly=True)
LONGS_IN = types.Array(int64, 1, "C", readonly=True)
_OPERATION_BYTES = 8 * k.OPERATION_WORDS
_FRAME_WORDS = 4
_LAST_MILLIS = 9223372036854775  # what fits when it is made microseconds
_SIGN = np.uint64(0x8000000000000000)


@njit(cache=True, nogil=True)
def _decimal(buffer, at, size, top_high, top_low):
    """(fits, low word, high word) of a big-endian number in two's complement, below the given one without its sign."""
    low, high = np.uint64(0), np.uint64(0)
    if size > 0 and byte_at(buffer, at) >= np.uint64(0x80):
        low, high = ~low, ~high
    is_negative = high != np.uint64(0)
    filler = np.uint64(0xFF) if is_negative else np.uint64(0)
    while size > 16:
        if byte_at(buffer, at) != filler:
            return False, np.int64(0), np.int64(0)
        at += 1
        size -= 1
    for number in range(size):
        high = (high << np.uint64(8)) | (low >> np.uint64(56))
        low = (low << np.uint64(8)) | byte_at(buffer, at + number)
    if (high & _SIGN != np.uint64(0)) != is_negative:
        return False, np.int64(0), np.int64(0)
    above, below = high, low
    if is_negative:
        below = ~low + np.uint64(1)
        above = ~high + (np.uint64(1) if below == np.uint64(0) else np.uint64(0))
    fits = above < np.uint64(top_high) or (above == np.uint64(top_high) and below < np.uint64(top_low))
    return fits, np.int64(low), np.int64(high)


@njit(cache=True, nogil=True)
def _block(buffer, at, end, smallest, free):
    """(items, next place, how many items without bytes may still come); items are -1 … for a reason, below."""
    count, at = read_varint(buffer, at, end)
    if at < 0:
        return np.int64(-k.ENDS_EARLY), at, free
    if count < 0:
        size, at = read_varint(buffer, at, end)
        if at < 0:
            return np.int64(-k.ENDS_EARLY), at, free
        count = -count
        if count < 0 or size < 0:
            return np.int64(-k.BAD_LENGTH), at, free
    if smallest > 0:
        if count > (end - at) // smallest:
            return np.int64(-k.TOO_MANY_ITEMS), at, free
    else:
        if count > free:
            return np.int64(-k.TOO_MANY_ITEMS), at, free
        free -= count
    return count, at, free


_ARGUMENTS = (
    BYTES_IN, PLACES_IN, int64, LONGS_IN, LONGS_IN, LONGS_IN, BYTES_IN, int64[:, ::1], int64, int64, int64[::1],
    int64[::1], uint8[::1], int32[::1],
)  # fmt: skip


@njit(int64(*_ARGUMENTS), cache=True, nogil=True)
def decode_rows(
    data, ends, skipped, entries, operations, lists, constants, table, nulls_first, nulls_count, stack, state,
    reasons, places,
):  # fmt: skip
    """Rows from state[NEXT_ROW] on; the value of a row begins `skipped` bytes behind its start."""
    rows = len(entries)
    column_count = table.shape[0]
    columns = np.int64(table.ctypes.data)
    values = np.int64(data.ctypes.data)
    program = np.int64(operations.ctypes.data)
    listed = np.int64(lists.ctypes.data)
    constant = np.int64(constants.ctypes.data)
    for row in range(state[k.NEXT_ROW], rows):
        entry = entries[row]
        reason = np.int64(k.READ)
        lacking = np.int64(-1)
        needed = np.int64(0)
        buffer = values
        at = np.int64(ends[row]) + skipped
        end = np.int64(ends[row + 1])
        last = at
        if entry >= 0:
            pc = program + entry * _OPERATION_BYTES
            top = np.int64(0)
            free = np.int64(k.ITEMS_WITHOUT_BYTES)
            while True:
                operation = load_long(pc)
                a = load_long(pc + 8)
                pc += _OPERATION_BYTES
                last = at
                # The most frequent ones come first.
                if operation == k.LONG:
                    number, at = read_varint(buffer, at, end)
                    if at < 0:
                        reason = np.int64(k.ENDS_EARLY)
                        break
                    factor = load_long(pc - _OPERATION_BYTES + 16)
                    if factor != 1:
                        if number > _LAST_MILLIS or number < -_LAST_MILLIS:
                            reason = np.int64(k.OUT_OF_RANGE)
                            break
                        number *= factor
                    if not put_long(columns, a, number):
                        lacking = a
                        break
                elif operation == k.BYTES:
                    size, at = read_varint(buffer, at, end)
                    if at < 0:
                        reason = np.int64(k.ENDS_EARLY)
                        break
                    if size < 0:
                        reason = np.int64(k.BAD_LENGTH)
                        break
                    if size > end - at:
                        reason = np.int64(k.ENDS_EARLY)
                        break
                    if load_long(pc - _OPERATION_BYTES + 16) and not is_text(buffer, at, at + size):
                        reason = np.int64(k.NOT_UTF8)
                        break
                    if not put_bytes(columns, a, buffer + at, size):
                        lacking, needed = a, word(columns, a, k.USED) + size
                        break
                    at += size
                elif operation == k.INT:
                    number, at = read_varint(buffer, at, end)
                    if at < 0:
                        reason = np.int64(k.ENDS_EARLY)
                        break
                    if number > 0x7FFFFFFF or number < -0x80000000:
                        reason = np.int64(k.OUT_OF_RANGE)
                        break
                    if not put_int(columns, a, number):
                        lacking = a
                        break
                elif operation == k.THERE:
                    if not put_there(columns, a):
                        lacking = a
                        break
                elif operation == k.OPTIONAL:
                    branch, at = read_varint(buffer, at, end)
                    if at < 0:
                        reason = np.int64(k.ENDS_EARLY)
                        break
                    if branch < 0 or branch > 1:
                        reason = np.int64(k.BAD_BRANCH)
                        break
                    if branch == a:
                        here = pc - _OPERATION_BYTES
                        lacking = put_nulls(columns, listed + 8 * load_long(here + 16), load_long(here + 24))
                        if lacking >= 0:
                            break
                        pc = program + load_long(here + 32) * _OPERATION_BYTES
                elif operation == k.DOUBLE:
                    if end - at < 8:
                        reason = np.int64(k.ENDS_EARLY)
                        break
                    if not put_long(columns, a, load_long(buffer + at)):
                        lacking = a
                        break
                    at += 8
                elif operation == k.BOOLEAN:
                    if at >= end:
                        reason = np.int64(k.ENDS_EARLY)
                        break
                    if not put_byte(columns, a, np.int64(byte_at(buffer, at) != np.uint64(0))):
                        lacking = a
                        break
                    at += 1
                elif operation == k.RETURN:
                    if top == 0:
                        break
                    top -= _FRAME_WORDS
                    pc = stack[top]
                    if stack[top + 1] != 0:
                        buffer, at, end = stack[top + 1], stack[top + 2], stack[top + 3]
                elif operation == k.NULLS:
                    here = pc - _OPERATION_BYTES
                    lacking = put_nulls(columns, listed + 8 * a, load_long(here + 16))
                    if lacking >= 0:
                        break
                elif operation == k.ENUM:
                    here = pc - _OPERATION_BYTES
                    number, at = read_varint(buffer, at, end)
                    if at < 0:
                        reason = np.int64(k.ENDS_EARLY)
                        break
                    if number < 0 or number >= load_long(here + 24):
                        reason = np.int64(k.BAD_SYMBOL)
                        break
                    pair = listed + 8 * (load_long(here + 16) + 2 * number)
                    if load_long(pair) < 0:
                        reason = np.int64(k.BAD_SYMBOL)
                        break
                    size = load_long(pair + 8)
                    if not put_bytes(columns, a, constant + load_long(pair), size):
                        lacking, needed = a, word(columns, a, k.USED) + size
                        break
                elif operation == k.FLOAT or operation == k.FLOAT_AS_DOUBLE:
                    if end - at < 4:
                        reason = np.int64(k.ENDS_EARLY)
                        break
                    number = load_int(buffer + at)
                    if operation == k.FLOAT:
                        has_room = put_int(columns, a, number)
                    else:
                        has_room = put_long(columns, a, float_to_double(number))
                    if not has_room:
                        lacking = a
                        break
                    at += 4
                elif operation == k.LONG_AS_DOUBLE or operation == k.LONG_AS_FLOAT:
                    number, at = read_varint(buffer, at, end)
                    if at < 0:
                        reason = np.int64(k.ENDS_EARLY)
                        break
                    if operation == k.LONG_AS_DOUBLE:
                        has_room = put_long(columns, a, long_to_double(number))
                    else:
                        has_room = put_int(columns, a, long_to_float(number))
                    if not has_room:
                        lacking = a
                        break
                elif operation == k.FIXED:
                    size = load_long(pc - _OPERATION_BYTES + 16)
                    if size > end - at:
                        reason = np.int64(k.ENDS_EARLY)
                        break
                    if not put_bytes(columns, a, buffer + at, size):
                        lacking, needed = a, word(columns, a, k.USED) + size
                        break
                    at += size
                elif operation == k.DECIMAL:
                    here = pc - _OPERATION_BYTES
                    size = load_long(here + 16)
                    if size < 0:
                        size, at = read_varint(buffer, at, end)
                        if at < 0:
                            reason = np.int64(k.ENDS_EARLY)
                            break
                        if size < 0:
                            reason = np.int64(k.BAD_LENGTH)
                            break
                    if size > end - at:
                        reason = np.int64(k.ENDS_EARLY)
                        break
                    fits, low, high = _decimal(buffer, at, size, load_long(here + 24), load_long(here + 32))
                    if not fits:
                        reason = np.int64(k.OUT_OF_RANGE)
                        break
                    if not put_wide(columns, a, low, high):
                        lacking = a
                        break
                    at += size
                elif operation == k.UNION:
                    branch, at = read_varint(buffer, at, end)
                    if at < 0:
                        reason = np.int64(k.ENDS_EARLY)
                        break
                    if branch < 0 or branch >= load_long(pc - _OPERATION_BYTES + 16):
                        reason = np.int64(k.BAD_BRANCH)
                        break
                    pc = program + load_long(listed + 8 * (a + branch)) * _OPERATION_BYTES
                elif operation == k.JUMP:
                    pc = program + a * _OPERATION_BYTES
                elif operation == k.LIST_OPEN:
                    smallest = load_long(pc - _OPERATION_BYTES + 16)
                    count, at, free = _block(buffer, at, end, smallest, free)
                    if count < 0:
                        reason = -count
                        break
                    if count == 0:
                        pc = program + a * _OPERATION_BYTES
                    else:
                        if top >= len(stack) - _FRAME_WORDS:
                            reason = np.int64(k.TOO_DEEP)
                            break
                        stack[top] = count
                        top += _FRAME_WORDS
                elif operation == k.LIST_NEXT:
                    smallest = load_long(pc - _OPERATION_BYTES + 16)
                    left = stack[top - _FRAME_WORDS] - 1
                    if left == 0:
                        left, at, free = _block(buffer, at, end, smallest, free)
                        if left < 0:
                            reason = -left
                            break
                    if left == 0:
                        top -= _FRAME_WORDS
                    else:
                        stack[top - _FRAME_WORDS] = left
                        pc = program + a * _OPERATION_BYTES
                elif operation == k.LIST_CLOSE:
                    if not put_list(columns, a, load_long(pc - _OPERATION_BYTES + 16)):
                        lacking = a
                        break
                elif operation == k.SKIP_VARINT:
                    number, at = read_varint(buffer, at, end)
                    if at < 0:
                        reason = np.int64(k.ENDS_EARLY)
                        break
                elif operation == k.SKIP:
                    if a > end - at:
                        reason = np.int64(k.ENDS_EARLY)
                        break
                    at += a
                elif operation == k.SKIP_BYTES:
                    size, at = read_varint(buffer, at, end)
                    if at < 0:
                        reason = np.int64(k.ENDS_EARLY)
                        break
                    if size < 0:
                        reason = np.int64(k.BAD_LENGTH)
                        break
                    if size > end - at:
                        reason = np.int64(k.ENDS_EARLY)
                        break
                    at += size
                elif operation == k.CALL or operation == k.CONSTANT:
                    if top >= len(stack) - _FRAME_WORDS:
                        reason = np.int64(k.TOO_DEEP)
                        break
                    here = pc - _OPERATION_BYTES
                    stack[top] = pc
                    stack[top + 1] = 0
                    if operation == k.CALL:
                        pc = program + a * _OPERATION_BYTES
                    else:
                        stack[top + 1], stack[top + 2], stack[top + 3] = buffer, at, end
                        buffer, at = constant, a
                        end = a + load_long(here + 16)
                        pc = program + load_long(here + 24) * _OPERATION_BYTES
                    top += _FRAME_WORDS
                else:
                    reason = a
                    break
            if lacking >= 0:
                back_to(columns, column_count, row)
                state[k.NEXT_ROW], state[k.LACKING], state[k.NEEDED] = row, lacking, needed
                return np.int64(k.ROOM)
        elif entry == k.IS_NOT_FRAMED:
            reason = np.int64(k.NOT_FRAMED)
        elif entry == k.HAS_UNKNOWN_SCHEMA:
            reason = np.int64(k.UNKNOWN_SCHEMA)
        reasons[row] = reason
        if reason != k.READ:
            places[row] = last - ends[row]
            back_to(columns, column_count, row)
        if entry < 0 or reason != k.READ:
            lacking = put_nulls(columns, listed + 8 * nulls_first, nulls_count)
            if lacking >= 0:
                back_to(columns, column_count, row)
                state[k.NEXT_ROW], state[k.LACKING], state[k.NEEDED] = row, lacking, 0
                return np.int64(k.ROOM)
    state[k.NEXT_ROW] = rows
    return np.int64(k.DONE)


@njit((BYTES_IN, PLACES_IN, int64[::1]), cache=True, nogil=True)
def frame_ids(data, ends, ids):
    """The schema's id of each row whose entry is 0; IS_NOT_FRAMED where none is."""
    values = np.int64(data.ctypes.data)
    for row in range(len(ids)):
        start, end = np.int64(ends[row]), np.int64(ends[row + 1])
        if ids[row] < 0:
            continue
        if end - start < 5 or byte_at(values, start) != np.uint64(0):
            ids[row] = k.IS_NOT_FRAMED
            continue
        id_ = np.int64(0)
        for number in range(1, 5):
            id_ = (id_ << 8) | np.int64(byte_at(values, start + number))
        ids[row] = id_
