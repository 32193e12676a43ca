"""The walk over fetched batches, compiled: checks every byte it relies on and copies what is wanted to the columns.

It stops where something else is needed: more bytes, Python for a compressed batch, more room, or a place to put what is
full. Nothing of a batch counts before all of it was read: `state` moves only at its end, so that after more room was
made the same call does the batch again.
"""

import numpy as np
from numba import int32, int64, njit, types, uint8

from penstock.records.columnar.byte_kernels import (
    byte_at,
    copy_bytes,
    int32_at,
    int64_at,
    is_utf8,
    read_varint,
)
from penstock.records.columnar.crc_kernel import crc_kernel

MADE_FROM = "a8e47655ff193cb7"
"""Of byte_kernels.py and crc_kernel.py: numba compiles this file's functions anew only when this file changes."""

# Why the walk stopped
DONE = 0  # what is left is not a whole batch, or lies behind the last wanted offset
COMPRESSED = 1  # the batch at state[POSITION] is sound and wanted: Python opens it, for decode_payload
ROOM = 2  # state[LACKING] says which columns are too small
FULL = 3  # the columns hold as much as they should: take them and go on
INVALID = 4  # state[REASON] and state[BAD_OFFSET]

# The words of `state`
POSITION, NEXT_OFFSET, ROWS, KEY_BYTES, VALUE_BYTES = range(5)
HEADERS, HEADER_KEY_BYTES, HEADER_VALUE_BYTES = 5, 6, 7
LACKING, REASON, BAD_OFFSET = 8, 9, 10
NEXT_ABORTED, OPEN_ABORTED = 11, 12
STATE_WORDS = 13

# The words of `options`
PARTITION, START_OFFSET, END_OFFSET, WANTED, MAX_ROWS, MAX_BYTES, SKIP_ABORTED = range(7)
OPTION_WORDS = 7

# The bits of options[WANTED], and of state[LACKING] for the columns that may run out of room
WANT_KEY, WANT_VALUE, WANT_HEADERS = 1, 2, 4
LACKS_KEYS, LACKS_VALUES, LACKS_HEADERS, LACKS_HEADER_KEYS, LACKS_HEADER_VALUES, LACKS_ROWS = (
    1,
    2,
    4,
    8,
    16,
    32,
)

# The rows of the numbers: `longs`, `ints`, `flags` have one column per record, `header_ints` one per record header
OFFSETS, TIMESTAMPS = 0, 1
PARTITIONS, TIMESTAMP_TYPES, KEY_ENDS, VALUE_ENDS, HEADER_ENDS = range(5)
HAS_KEY, HAS_VALUE, HAS_HEADERS = range(3)
HEADER_KEY_ENDS, HEADER_VALUE_ENDS = 0, 1

# What can be wrong
NOT_FORMAT_2, WRONG_CRC, WRONG_COUNT, WRONG_LENGTH, FIELD_PASSES_END = 1, 2, 3, 4, 5
HEADER_WITHOUT_KEY, HEADER_KEY_NOT_UTF8, OFFSET_OUTSIDE, BYTES_LEFT, WRONG_MARKER = 6, 7, 8, 9, 10

_HEADER = 61
_CODEC = 0x07
_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_SMALLEST_RECORD = 7
_LARGEST_COLUMN = 0x7FFFFFFF  # bytes: Arrow's 32-bit offsets

BYTES_IN = types.Array(uint8, 1, "C", readonly=True)
BYTES_OUT = uint8[::1]
LONGS = int64[::1]
LONG_TABLE = int64[:, ::1]
INT_TABLE = int32[:, ::1]
FLAG_TABLE = uint8[:, ::1]


@njit(cache=True, nogil=True)
def _wrong(state, reason, offset):
    state[REASON] = reason
    state[BAD_OFFSET] = offset
    return np.int64(INVALID)


@njit(cache=True, nogil=True)
def _lacks(state, column):
    state[LACKING] = column
    return np.int64(ROOM)


@njit(cache=True, nogil=True)
def _decode_headers(
    buffer, at, end, stored, offset, header, key_at, value_at, header_ints, header_flags, keys, values, state
):  # fmt: skip
    """(status, header, key_at, value_at): reads up to `end` exactly; what is not `stored` is only checked."""
    count, at = read_varint(buffer, at, end)
    # The smallest header takes two bytes, so a count that cannot fit is refused before any loop.
    if at < 0 or count < 0 or count > (end - at) // 2:
        return _wrong(state, WRONG_COUNT, offset), header, key_at, value_at
    for _ in range(count):
        length, at = read_varint(buffer, at, end)
        if at < 0 or length > end - at or length < -1:
            return _wrong(state, FIELD_PASSES_END, offset), header, key_at, value_at
        if length < 0:
            return _wrong(state, HEADER_WITHOUT_KEY, offset), header, key_at, value_at
        if not is_utf8(buffer, at, at + length):
            return _wrong(state, HEADER_KEY_NOT_UTF8, offset), header, key_at, value_at
        key_start = at
        at += length
        key_end = at
        length, at = read_varint(buffer, at, end)
        if at < 0 or length > end - at or length < -1:
            return _wrong(state, FIELD_PASSES_END, offset), header, key_at, value_at
        if stored:
            if header + 1 >= header_ints.shape[1]:
                return _lacks(state, LACKS_HEADERS), header, key_at, value_at
            if key_end - key_start > len(keys) - key_at:
                return _lacks(state, LACKS_HEADER_KEYS), header, key_at, value_at
            copy_bytes(np.int64(keys.ctypes.data) + key_at, buffer + key_start, key_end - key_start)
            key_at += key_end - key_start
            header_flags[0, header] = length >= 0
            if length > 0:
                if length > len(values) - value_at:
                    return _lacks(state, LACKS_HEADER_VALUES), header, key_at, value_at
                copy_bytes(np.int64(values.ctypes.data) + value_at, buffer + at, length)
                value_at += length
            header += 1
            header_ints[HEADER_KEY_ENDS, header] = key_at
            header_ints[HEADER_VALUE_ENDS, header] = value_at
        if length > 0:
            at += length
    if at != end:
        return _wrong(state, WRONG_LENGTH, offset), header, key_at, value_at
    return np.int64(DONE), header, key_at, value_at


@njit(cache=True, nogil=True)
def _decode_records(
    buffer, at, end, source, head, options, state, longs, ints, flags, keys, values, header_ints, header_flags,
    header_keys, header_values,
):  # fmt: skip
    """The records of the batch whose header is in `source` at `head`, from `at` to `end` of `buffer`."""
    base_offset = int64_at(source, head)
    last_delta = int32_at(source, head + 23)
    base_timestamp = int64_at(source, head + 27)
    append_time = int64_at(source, head + 35)
    count = int32_at(source, head + 57)
    is_append_time = (np.int64(byte_at(source, head + 22)) & _LOG_APPEND_TIME) != 0
    offset = base_offset
    if count < 0 or count > (end - at) // _SMALLEST_RECORD:
        return _wrong(state, WRONG_COUNT, offset)
    partition = options[PARTITION]
    start_offset = options[START_OFFSET]
    end_offset = options[END_OFFSET]
    want_key = (options[WANTED] & WANT_KEY) != 0
    want_value = (options[WANTED] & WANT_VALUE) != 0
    want_headers = (options[WANTED] & WANT_HEADERS) != 0
    row = state[ROWS]
    key_at = state[KEY_BYTES]
    value_at = state[VALUE_BYTES]
    header = state[HEADERS]
    header_key_at = state[HEADER_KEY_BYTES]
    header_value_at = state[HEADER_VALUE_BYTES]
    capacity = longs.shape[1]
    keys_data = np.int64(keys.ctypes.data)
    values_data = np.int64(values.ctypes.data)
    for _ in range(count):
        length, at = read_varint(buffer, at, end)
        if at < 0 or length < 1 or length > end - at:
            return _wrong(state, WRONG_LENGTH, offset)
        record_end = at + length
        timestamp_delta, at = read_varint(buffer, at + 1, record_end)  # 1: attributes, none are defined
        if at < 0:
            return _wrong(state, FIELD_PASSES_END, offset)
        offset_delta, at = read_varint(buffer, at, record_end)
        if at < 0:
            return _wrong(state, FIELD_PASSES_END, offset)
        if offset_delta < 0 or offset_delta > last_delta:
            return _wrong(state, OFFSET_OUTSIDE, offset)
        offset = base_offset + offset_delta
        key_length, at = read_varint(buffer, at, record_end)
        if at < 0 or key_length > record_end - at or key_length < -1:
            return _wrong(state, FIELD_PASSES_END, offset)
        key_start = at
        at += max(key_length, 0)
        value_length, at = read_varint(buffer, at, record_end)
        if at < 0 or value_length > record_end - at or value_length < -1:
            return _wrong(state, FIELD_PASSES_END, offset)
        value_start = at
        at += max(value_length, 0)
        stored = start_offset <= offset < end_offset
        headers_before = header
        # Most records have no headers: one zero byte.
        if record_end - at != 1 or byte_at(buffer, at) != np.uint64(0):
            status, header, header_key_at, header_value_at = _decode_headers(
                buffer, at, record_end, stored and want_headers, offset, header, header_key_at, header_value_at,
                header_ints, header_flags, header_keys, header_values, state,
            )  # fmt: skip
            if status != DONE:
                return status
        at = record_end
        if not stored:
            continue
        if row >= capacity:
            return _lacks(state, LACKS_ROWS)
        longs[OFFSETS, row] = offset
        longs[TIMESTAMPS, row] = append_time if is_append_time else base_timestamp + timestamp_delta
        ints[PARTITIONS, row] = partition
        ints[TIMESTAMP_TYPES, row] = is_append_time
        if want_key:
            flags[HAS_KEY, row] = key_length >= 0
            if key_length > 0:
                if key_length > len(keys) - key_at:
                    return _lacks(state, LACKS_KEYS)
                copy_bytes(keys_data + key_at, buffer + key_start, key_length)
                key_at += key_length
            ints[KEY_ENDS, row + 1] = key_at
        if want_value:
            flags[HAS_VALUE, row] = value_length >= 0
            if value_length > 0:
                if value_length > len(values) - value_at:
                    return _lacks(state, LACKS_VALUES)
                copy_bytes(values_data + value_at, buffer + value_start, value_length)
                value_at += value_length
            ints[VALUE_ENDS, row + 1] = value_at
        if want_headers:
            flags[HAS_HEADERS, row] = header > headers_before
            ints[HEADER_ENDS, row + 1] = header
        row += 1
    if at != end:
        return _wrong(state, BYTES_LEFT, offset)
    state[ROWS] = row
    state[KEY_BYTES] = key_at
    state[VALUE_BYTES] = value_at
    state[HEADERS] = header
    state[HEADER_KEY_BYTES] = header_key_at
    state[HEADER_VALUE_BYTES] = header_value_at
    return np.int64(DONE)


# --- transactions


@njit(cache=True, nogil=True)
def _open_aborted(last_offset, aborted, open_producers, state):
    """From their first offset on, the batches of these producers are skipped, until their marker comes."""
    while state[NEXT_ABORTED] < aborted.shape[1] and aborted[1, state[NEXT_ABORTED]] <= last_offset:
        open_producers[state[OPEN_ABORTED]] = aborted[0, state[NEXT_ABORTED]]
        state[NEXT_ABORTED] += 1
        state[OPEN_ABORTED] += 1


@njit(cache=True, nogil=True)
def _find_open(producer_id, open_producers, state):
    for number in range(state[OPEN_ABORTED]):
        if open_producers[number] == producer_id:
            return number
    return -1


@njit(cache=True, nogil=True)
def _close(producer_id, open_producers, state):
    kept = 0
    for number in range(state[OPEN_ABORTED]):
        if open_producers[number] != producer_id:
            open_producers[kept] = open_producers[number]
            kept += 1
    state[OPEN_ABORTED] = kept


@njit(cache=True, nogil=True)
def _marker_type(buffer, at, end):
    """The type of the one record of a control batch (0: abort), -1 where it cannot be read.

    length, attributes, timestamp delta, offset delta, key length, then the key: version int16, type int16.
    """
    length, at = read_varint(buffer, at, end)
    if at < 0 or length < 1 or length > end - at:
        return np.int64(-1)
    end = at + length
    _, at = read_varint(buffer, at + 1, end)
    if at < 0:
        return np.int64(-1)
    _, at = read_varint(buffer, at, end)
    if at < 0:
        return np.int64(-1)
    length, at = read_varint(buffer, at, end)
    if at < 0 or length < 4 or length > end - at:
        return np.int64(-1)
    return (np.int64(byte_at(buffer, at + 2)) << 8) | np.int64(byte_at(buffer, at + 3))


@njit(cache=True, nogil=True)
def _is_full(options, state):
    used = max(state[KEY_BYTES], state[VALUE_BYTES], state[HEADER_KEY_BYTES], state[HEADER_VALUE_BYTES])
    return state[ROWS] >= options[MAX_ROWS] or used >= options[MAX_BYTES]


@njit(cache=True, nogil=True)
def _could_overflow(payload_bytes, state):
    used = max(state[KEY_BYTES], state[VALUE_BYTES], state[HEADER_KEY_BYTES], state[HEADER_VALUE_BYTES])
    return state[ROWS] > 0 and payload_bytes > _LARGEST_COLUMN - used


@njit(cache=True, nogil=True)
def _is_skipped(buffer, position, size, options, aborted, open_producers, state):
    """(status, whether the batch leaves no row): before the wanted offsets, a marker, or part of an aborted transaction."""
    base_offset = int64_at(buffer, position)
    last_offset = base_offset + int32_at(buffer, position + 23)
    attributes = np.int64(byte_at(buffer, position + 22))
    if options[SKIP_ABORTED]:
        _open_aborted(last_offset, aborted, open_producers, state)
    if attributes & _CONTROL:
        # A compaction may have left a control batch without its record: then it says nothing.
        if options[SKIP_ABORTED] and int32_at(buffer, position + 57) > 0:
            kind = _marker_type(buffer, position + _HEADER, position + size)
            if kind < 0:
                return _wrong(state, WRONG_MARKER, base_offset), True
            if kind == 0:
                _close(int64_at(buffer, position + 43), open_producers, state)
        return np.int64(DONE), True
    if (
        attributes & _TRANSACTIONAL
        and _find_open(int64_at(buffer, position + 43), open_producers, state) >= 0
    ):
        return np.int64(DONE), True
    return np.int64(DONE), last_offset < options[START_OFFSET]


_OUT = (LONG_TABLE, INT_TABLE, FLAG_TABLE, BYTES_OUT, BYTES_OUT, INT_TABLE, FLAG_TABLE, BYTES_OUT, BYTES_OUT)


@njit(int64(BYTES_IN, LONGS, LONG_TABLE, LONGS, LONGS, *_OUT), cache=True, nogil=True)
def decode_batches(
    records, options, aborted, open_producers, state, longs, ints, flags, keys, values, header_ints, header_flags,
    header_keys, header_values,
):  # fmt: skip
    """Batch by batch from state[POSITION] on; `aborted` holds producer ids and first offsets, in their order."""
    end = len(records)
    buffer = np.int64(records.ctypes.data)
    while True:
        position = state[POSITION]
        if end - position < _HEADER:
            return DONE
        base_offset = int64_at(buffer, position)
        if base_offset >= options[END_OFFSET]:
            state[NEXT_OFFSET] = max(state[NEXT_OFFSET], options[END_OFFSET])
            return DONE
        size = int32_at(buffer, position + 8) + 12
        if byte_at(buffer, position + 16) != np.uint64(2) or size < _HEADER:
            return _wrong(state, NOT_FORMAT_2, base_offset)
        if end - position < size:
            return DONE
        last_delta = int32_at(buffer, position + 23)
        if base_offset < 0 or last_delta < 0:
            return _wrong(state, NOT_FORMAT_2, base_offset)
        if crc_kernel(buffer, position + 21, position + size) != (
            int32_at(buffer, position + 17) & 0xFFFFFFFF
        ):
            return _wrong(state, WRONG_CRC, base_offset)
        status, is_skipped = _is_skipped(buffer, position, size, options, aborted, open_producers, state)
        if status != DONE:
            return status
        if not is_skipped:
            if np.int64(byte_at(buffer, position + 22)) & _CODEC:
                return COMPRESSED
            if _could_overflow(size, state):
                return FULL
            status = _decode_records(
                buffer, position + _HEADER, position + size, buffer, position, options, state, longs, ints, flags,
                keys, values, header_ints, header_flags, header_keys, header_values,
            )  # fmt: skip
            if status != DONE:
                return status
        state[POSITION] = position + size
        state[NEXT_OFFSET] = base_offset + last_delta + 1
        if _is_full(options, state):
            return FULL


@njit(int64(BYTES_IN, BYTES_IN, LONGS, LONGS, *_OUT), cache=True, nogil=True)
def decode_payload(
    payload, records, options, state, longs, ints, flags, keys, values, header_ints, header_flags, header_keys,
    header_values,
):  # fmt: skip
    """The opened records of the compressed batch at state[POSITION], where decode_batches stopped; steps over it."""
    position = state[POSITION]
    buffer = np.int64(records.ctypes.data)
    if _could_overflow(len(payload), state):
        return FULL
    status = _decode_records(
        np.int64(payload.ctypes.data), np.int64(0), len(payload), buffer, position, options, state, longs, ints,
        flags, keys, values, header_ints, header_flags, header_keys, header_values,
    )  # fmt: skip
    if status == DONE:
        state[NEXT_OFFSET] = int64_at(buffer, position) + int32_at(buffer, position + 23) + 1
        state[POSITION] = position + int32_at(buffer, position + 8) + 12
        if _is_full(options, state):
            return FULL
    return status


@njit(int64(BYTES_IN, int64), cache=True, nogil=True)
def next_offset_of(records, offset):
    """The offset after the last whole batch, by the headers alone; `offset` where there is no whole one."""
    position = np.int64(0)
    end = len(records)
    buffer = np.int64(records.ctypes.data)
    while end - position >= _HEADER:
        size = int32_at(buffer, position + 8) + 12
        if size < _HEADER or end - position < size:
            break
        offset = max(offset, int64_at(buffer, position) + int32_at(buffer, position + 23) + 1)
        position += size
    return offset
