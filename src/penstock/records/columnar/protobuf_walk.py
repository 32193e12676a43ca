"""A walk over Protobuf messages, compiled: it finds where the values of wanted fields are, and copies nothing.

A *span* is where a part begins and ends in the buffer: a message, a text, a number. Messages give the spans of their fields,
repeated fields those of their entries; whoever wants what is in a message walks again over its span. Fields that are not
wanted are skipped, groups with what is in them. Of a field that comes twice the last one counts, and of the fields of
a oneof the last one.
"""

import numpy as np
from numba import int32, int64, njit, types, uint8, void

from penstock.records.columnar.byte_kernels import byte_at, copy_bytes, is_utf8, word_at
from penstock.records.columnar.memory import load_int, load_long
from penstock.records.columnar.protobuf_shapes import (
    EIGHT,
    END_GROUP,
    FLAG,
    FOUR,
    GROUP,
    SHORT,
    SIZED,
    UNSIGNED_SHORT,
    VARINT,
    ZIGZAG,
)

MADE_FROM = "e901f94a86246a70"
"""Of memory.py, byte_kernels.py and protobuf_shapes.py, as in kernels.py."""

MAX_DEPTH = 100

BYTES = types.Array(uint8, 1, "C", readonly=True)
PLACES_IN = types.Array(int32, 1, "C", readonly=True)
KINDS_IN = types.Array(uint8, 1, "C", readonly=True)
_HIGH_BITS = np.uint64(0x8080808080808080)


@njit(cache=True, nogil=True)
def _varint(buffer, at, end):
    """(value, next place or -1): of up to 64 bits, as libraries read them: higher ones are lost."""
    if at < end:
        first = byte_at(buffer, at)
        if first < np.uint64(0x80):
            return np.int64(first), at + 1
    raw = np.uint64(0)
    shift = np.uint64(0)
    while at < end and shift < np.uint64(70):
        byte = byte_at(buffer, at)
        at += 1
        if shift < np.uint64(64):
            raw |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return np.int64(raw), at
        shift += np.uint64(7)
    return np.int64(0), np.int64(-1)


@njit(cache=True, nogil=True)
def _tag(buffer, at, end):
    """(number or 0, wire type, next place or -1)"""
    tag, at = _varint(buffer, at, end)
    if at < 0 or tag < 8 or tag > 0xFFFFFFFF:
        return np.int64(0), np.int64(0), np.int64(-1)
    return tag >> 3, tag & 7, at


@njit(cache=True, nogil=True)
def _value_span(buffer, at, end, wire):
    """(start, stop or -1) of a value that is no group."""
    if wire == VARINT:
        _, stop = _varint(buffer, at, end)
        return at, stop
    if wire == SIZED:
        size, at = _varint(buffer, at, end)
        if at < 0 or size < 0 or size > end - at:
            return at, np.int64(-1)
        return at, at + size
    size = np.int64(8) if wire == EIGHT else np.int64(4)
    if (wire != EIGHT and wire != FOUR) or end - at < size:
        return at, np.int64(-1)
    return at, at + size


@njit(cache=True, nogil=True)
def _after_group(buffer, at, end, number):
    """Behind its end, or -1."""
    opened = np.empty(MAX_DEPTH, dtype=np.int64)
    opened[0] = number
    depth = 1
    while depth:
        number, wire, at = _tag(buffer, at, end)
        if at < 0:
            return np.int64(-1)
        if wire == GROUP:
            if depth >= MAX_DEPTH:
                return np.int64(-1)
            opened[depth] = number
            depth += 1
        elif wire == END_GROUP:
            depth -= 1
            if opened[depth] != number:
                return np.int64(-1)
        else:
            _, at = _value_span(buffer, at, end, wire)
            if at < 0:
                return np.int64(-1)
    return at


@njit(cache=True, nogil=True)
def _packed_count(buffer, at, end, wire):
    """How many values there are, or -1."""
    size = end - at
    if wire == EIGHT:
        return size >> 3 if size & 7 == 0 else np.int64(-1)
    if wire == FOUR:
        return size >> 2 if size & 3 == 0 else np.int64(-1)
    if size and byte_at(buffer, end - 1) >= np.uint64(0x80):
        return np.int64(-1)
    count = np.int64(0)
    while at < end:
        _, at = _varint(buffer, at, end)
        if at < 0:
            return np.int64(-1)
        count += 1
    return count


@njit(cache=True, nogil=True)
def _field(number, numbers):
    """Where it is among the sorted ones, or -1."""
    if number <= len(numbers) and numbers[number - 1] == number:
        return number - 1  # most messages number their fields 1, 2, 3 …
    low, high = 0, len(numbers)
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low if low < len(numbers) and numbers[low] == number else -1


@njit(
    void(
        BYTES, PLACES_IN, PLACES_IN, KINDS_IN, int64[::1], int64[::1], uint8[::1], int64[::1], int64[::1],
        int32[:, ::1], int32[:, ::1], int32[:, ::1], uint8[::1],
    ),
    cache=True,
    nogil=True,
)  # fmt: skip
def walk_messages(
    data, starts, stops, there, numbers, wires, repeated, oneofs, current, out_starts, out_stops, counts, bad
):  # fmt: skip
    """The last span of each wanted field, by `numbers` in their order; and how often it is there, or how many entries a
    repeated one has. `current` has room for one number of each oneof."""
    buffer = np.int64(data.ctypes.data)
    for row in range(len(starts)):
        if not there[row] or bad[row]:
            continue
        at, end = np.int64(starts[row]), np.int64(stops[row])
        current[:] = -1
        while at < end:
            number, wire, at = _tag(buffer, at, end)
            if at < 0:
                bad[row] = 1
                break
            if wire == GROUP:
                at = _after_group(buffer, at, end, number)
                if at < 0:
                    bad[row] = 1
                    break
                continue
            start, stop = _value_span(buffer, at, end, wire)
            if stop < 0:
                bad[row] = 1
                break
            at = stop
            field = _field(number, numbers)
            if field < 0:
                continue
            if wire == wires[field]:
                counts[field, row] += 1
            elif repeated[field] and wire == SIZED and wires[field] != SIZED:
                count = _packed_count(buffer, start, stop, wires[field])
                if count < 0:
                    bad[row] = 1
                    break
                counts[field, row] += count
            else:
                continue  # of another type than the reader's: as good as not known
            out_starts[field, row], out_stops[field, row] = start, stop
            oneof = oneofs[field]
            if oneof >= 0:
                if current[oneof] >= 0 and current[oneof] != field:
                    counts[current[oneof], row] = 0
                current[oneof] = field


@njit(
    void(BYTES, PLACES_IN, PLACES_IN, PLACES_IN, int64, int64, int32[::1], int32[::1]),
    cache=True,
    nogil=True,
)
def find_entries(data, starts, stops, counts, number, wire, out_starts, out_stops):
    """The spans of one repeated field's entries, row by row. The messages were walked before, and are sound."""
    buffer = np.int64(data.ctypes.data)
    entry = 0
    for row in range(len(starts)):
        left = counts[row]
        at, end = np.int64(starts[row]), np.int64(stops[row])
        while left:
            found, found_wire, at = _tag(buffer, at, end)
            if found_wire == GROUP:
                at = _after_group(buffer, at, end, found)
                continue
            start, stop = _value_span(buffer, at, end, found_wire)
            at = stop
            if found != number:
                continue
            if found_wire == wire:
                out_starts[entry], out_stops[entry] = start, stop
                entry += 1
                left -= 1
            elif found_wire == SIZED and wire != SIZED:
                while start < stop:
                    _, after = _value_span(buffer, start, stop, wire)
                    out_starts[entry], out_stops[entry] = start, after
                    entry += 1
                    left -= 1
                    start = after


@njit(void(BYTES, PLACES_IN, PLACES_IN, KINDS_IN, int64, int64, int64[::1]), cache=True, nogil=True)
def to_numbers(data, starts, stops, there, wire, meaning, out):
    """Of floats and doubles the bits; 0 where there is none."""
    buffer = np.int64(data.ctypes.data)
    for row in range(len(starts)):
        if not there[row]:
            out[row] = 0
            continue
        at = np.int64(starts[row])
        if wire == EIGHT:
            number = load_long(buffer + at)
        elif wire == FOUR:
            number = load_int(buffer + at)
        else:
            number, _ = _varint(buffer, at, np.int64(stops[row]))
        if meaning == ZIGZAG:
            number = np.int64(np.uint64(number) >> np.uint64(1)) ^ -(number & 1)
        elif meaning == SHORT:
            number = np.int64(np.int32(number & 0xFFFFFFFF))
        elif meaning == UNSIGNED_SHORT:
            number &= 0xFFFFFFFF
        elif meaning == FLAG:
            number = np.int64(number != 0)
        out[row] = number


@njit(
    int64(BYTES, PLACES_IN, PLACES_IN, KINDS_IN, int64, uint8[::1], int32[::1], uint8[::1]),
    cache=True,
    nogil=True,
)
def copy_spans(data, starts, stops, there, is_text, out, ends, bad):
    """How many bytes were copied; texts that are no UTF-8 are marked."""
    buffer = np.int64(data.ctypes.data)
    target = np.int64(out.ctypes.data)
    used = np.int64(0)
    ends[0] = 0
    for row in range(len(starts)):
        if there[row]:
            at, end = np.int64(starts[row]), np.int64(stops[row])
            copy_bytes(target + used, buffer + at, end - at)
            used += end - at
            if is_text:
                while at + 8 <= end and not word_at(buffer, at) & _HIGH_BITS:
                    at += 8
                while at < end and byte_at(buffer, at) < np.uint64(0x80):
                    at += 1
                if at < end and not is_utf8(buffer, at, end):
                    bad[row] = 1
        ends[row + 1] = used
    return used


@njit(void(BYTES, PLACES_IN, KINDS_IN, int64[::1], int64[:, ::1], int32[::1]), cache=True, nogil=True)
def read_indexes(data, ends, framed, ids, paths, starts):
    """Which message of its file each value is: how many numbers, and they; -1 where there are none. And where it begins."""
    buffer = np.int64(data.ctypes.data)
    most = paths.shape[1] - 1
    for row in range(len(ids)):
        paths[row, :] = 0
        starts[row] = ends[row]
        if not framed[row]:
            continue
        at, end = np.int64(ends[row]) + 5, np.int64(ends[row + 1])
        count, at = _varint(buffer, at, end)
        count = np.int64(np.uint64(count) >> np.uint64(1)) ^ -(count & 1)
        if at < 0 or count < 0 or count > most:
            paths[row, 0] = -1
            continue
        paths[row, 0] = max(count, 1)
        for number in range(count):
            index, at = _varint(buffer, at, end)
            if at < 0:
                break
            paths[row, number + 1] = np.int64(np.uint64(index) >> np.uint64(1)) ^ -(index & 1)
        if at < 0:
            paths[row, 0] = -1
        else:
            starts[row] = at
