"""The walk over fetched batches, compiled: checks every byte it relies on and copies what is wanted to the columns.

It stops where something else is needed: more bytes, Python for a compressed batch, more room, or a place to put what is
full. Nothing of a batch counts before all of it was read: `state` moves only at its end, so that after more room was
made the same call does the batch again.
"""

import numpy as np
from numba import int32, int64, njit, types, uint8

from penstock.records.columnar import layout as k
from penstock.records.columnar.byte_kernels import (
    byte_at,
    copy_bytes,
    int32_at,
    int64_at,
    is_utf8,
    read_varint,
)
from penstock.records.columnar.crc_kernel import crc_kernel
from penstock.records.columnar.transaction_kernels import close_aborted, find_open, marker_type, open_aborted

MADE_FROM = "9ffe9f56f5cf76e1"
"""Of layout.py, byte_kernels.py, crc_kernel.py and transaction_kernels.py: numba compiles this file's functions anew only when
this file changes."""

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
    state[k.REASON] = reason
    state[k.BAD_OFFSET] = offset
    return np.int64(k.INVALID)


@njit(cache=True, nogil=True)
def _lacks(state, column):
    state[k.LACKING] = column
    return np.int64(k.ROOM)


@njit(cache=True, nogil=True)
def _decode_headers(
    buffer, at, end, stored, offset, header, key_at, value_at, header_ints, header_flags, keys, values, state
):  # fmt: skip
    """(status, header, key_at, value_at): reads up to `end` exactly; what is not `stored` is only checked."""
    count, at = read_varint(buffer, at, end)
    # The smallest header takes two bytes, so a count that cannot fit is refused before any loop.
    if at < 0 or count < 0 or count > (end - at) // 2:
        return _wrong(state, k.WRONG_COUNT, offset), header, key_at, value_at
    for _ in range(count):
        length, at = read_varint(buffer, at, end)
        if at < 0 or length > end - at or length < -1:
            return _wrong(state, k.FIELD_PASSES_END, offset), header, key_at, value_at
        if length < 0:
            return _wrong(state, k.HEADER_WITHOUT_KEY, offset), header, key_at, value_at
        if not is_utf8(buffer, at, at + length):
            return _wrong(state, k.HEADER_KEY_NOT_UTF8, offset), header, key_at, value_at
        key_start = at
        at += length
        key_end = at
        length, at = read_varint(buffer, at, end)
        if at < 0 or length > end - at or length < -1:
            return _wrong(state, k.FIELD_PASSES_END, offset), header, key_at, value_at
        if stored:
            if header + 1 >= header_ints.shape[1]:
                return _lacks(state, k.LACKS_HEADERS), header, key_at, value_at
            if key_end - key_start > len(keys) - key_at:
                return _lacks(state, k.LACKS_HEADER_KEYS), header, key_at, value_at
            copy_bytes(np.int64(keys.ctypes.data) + key_at, buffer + key_start, key_end - key_start)
            key_at += key_end - key_start
            header_flags[0, header] = length >= 0
            if length > 0:
                if length > len(values) - value_at:
                    return _lacks(state, k.LACKS_HEADER_VALUES), header, key_at, value_at
                copy_bytes(np.int64(values.ctypes.data) + value_at, buffer + at, length)
                value_at += length
            header += 1
            header_ints[k.HEADER_KEY_ENDS, header] = key_at
            header_ints[k.HEADER_VALUE_ENDS, header] = value_at
        if length > 0:
            at += length
    if at != end:
        return _wrong(state, k.WRONG_LENGTH, offset), header, key_at, value_at
    return np.int64(k.DONE), header, key_at, value_at


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
        return _wrong(state, k.WRONG_COUNT, offset)
    partition = options[k.PARTITION]
    start_offset = options[k.START_OFFSET]
    end_offset = options[k.END_OFFSET]
    want_key = (options[k.WANTED] & k.WANT_KEY) != 0
    want_value = (options[k.WANTED] & k.WANT_VALUE) != 0
    want_headers = (options[k.WANTED] & k.WANT_HEADERS) != 0
    row = state[k.ROWS]
    key_at = state[k.KEY_BYTES]
    value_at = state[k.VALUE_BYTES]
    header = state[k.HEADERS]
    header_key_at = state[k.HEADER_KEY_BYTES]
    header_value_at = state[k.HEADER_VALUE_BYTES]
    capacity = longs.shape[1]
    keys_data = np.int64(keys.ctypes.data)
    values_data = np.int64(values.ctypes.data)
    for _ in range(count):
        length, at = read_varint(buffer, at, end)
        if at < 0 or length < 1 or length > end - at:
            return _wrong(state, k.WRONG_LENGTH, offset)
        record_end = at + length
        timestamp_delta, at = read_varint(buffer, at + 1, record_end)  # 1: attributes, none are defined
        if at < 0:
            return _wrong(state, k.FIELD_PASSES_END, offset)
        offset_delta, at = read_varint(buffer, at, record_end)
        if at < 0:
            return _wrong(state, k.FIELD_PASSES_END, offset)
        if offset_delta < 0 or offset_delta > last_delta:
            return _wrong(state, k.OFFSET_OUTSIDE, offset)
        offset = base_offset + offset_delta
        key_length, at = read_varint(buffer, at, record_end)
        if at < 0 or key_length > record_end - at or key_length < -1:
            return _wrong(state, k.FIELD_PASSES_END, offset)
        key_start = at
        at += max(key_length, 0)
        value_length, at = read_varint(buffer, at, record_end)
        if at < 0 or value_length > record_end - at or value_length < -1:
            return _wrong(state, k.FIELD_PASSES_END, offset)
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
            if status != k.DONE:
                return status
        at = record_end
        if not stored:
            continue
        if row >= capacity:
            return _lacks(state, k.LACKS_ROWS)
        longs[k.OFFSETS, row] = offset
        longs[k.TIMESTAMPS, row] = append_time if is_append_time else base_timestamp + timestamp_delta
        ints[k.PARTITIONS, row] = partition
        ints[k.TIMESTAMP_TYPES, row] = is_append_time
        if want_key:
            flags[k.HAS_KEY, row] = key_length >= 0
            if key_length > 0:
                if key_length > len(keys) - key_at:
                    return _lacks(state, k.LACKS_KEYS)
                copy_bytes(keys_data + key_at, buffer + key_start, key_length)
                key_at += key_length
            ints[k.KEY_ENDS, row + 1] = key_at
        if want_value:
            flags[k.HAS_VALUE, row] = value_length >= 0
            if value_length > 0:
                if value_length > len(values) - value_at:
                    return _lacks(state, k.LACKS_VALUES)
                copy_bytes(values_data + value_at, buffer + value_start, value_length)
                value_at += value_length
            ints[k.VALUE_ENDS, row + 1] = value_at
        if want_headers:
            flags[k.HAS_HEADERS, row] = header > headers_before
            ints[k.HEADER_ENDS, row + 1] = header
        row += 1
    if at != end:
        return _wrong(state, k.BYTES_LEFT, offset)
    state[k.ROWS] = row
    state[k.KEY_BYTES] = key_at
    state[k.VALUE_BYTES] = value_at
    state[k.HEADERS] = header
    state[k.HEADER_KEY_BYTES] = header_key_at
    state[k.HEADER_VALUE_BYTES] = header_value_at
    return np.int64(k.DONE)


@njit(cache=True, nogil=True)
def _is_full(options, state):
    used = max(
        state[k.KEY_BYTES], state[k.VALUE_BYTES], state[k.HEADER_KEY_BYTES], state[k.HEADER_VALUE_BYTES]
    )
    return state[k.ROWS] >= options[k.MAX_ROWS] or used >= options[k.MAX_BYTES]


@njit(cache=True, nogil=True)
def _could_overflow(payload_bytes, state):
    used = max(
        state[k.KEY_BYTES], state[k.VALUE_BYTES], state[k.HEADER_KEY_BYTES], state[k.HEADER_VALUE_BYTES]
    )
    return state[k.ROWS] > 0 and payload_bytes > _LARGEST_COLUMN - used


@njit(cache=True, nogil=True)
def _is_skipped(buffer, position, size, options, aborted, open_producers, state):
    """(status, whether the batch leaves no row): before the wanted offsets, a marker, or part of an aborted transaction."""
    base_offset = int64_at(buffer, position)
    last_offset = base_offset + int32_at(buffer, position + 23)
    attributes = np.int64(byte_at(buffer, position + 22))
    if options[k.SKIP_ABORTED]:
        open_aborted(last_offset, aborted, open_producers, state)
    if attributes & _CONTROL:
        # A compaction may have left a control batch without its record: then it says nothing.
        if options[k.SKIP_ABORTED] and int32_at(buffer, position + 57) > 0:
            kind = marker_type(buffer, position + _HEADER, position + size)
            if kind < 0:
                return _wrong(state, k.WRONG_MARKER, base_offset), True
            if kind == 0:
                close_aborted(int64_at(buffer, position + 43), open_producers, state)
        return np.int64(k.DONE), True
    if attributes & _TRANSACTIONAL and find_open(int64_at(buffer, position + 43), open_producers, state) >= 0:
        return np.int64(k.DONE), True
    return np.int64(k.DONE), last_offset < options[k.START_OFFSET]


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
        position = state[k.POSITION]
        if end - position < _HEADER:
            return k.DONE
        base_offset = int64_at(buffer, position)
        if base_offset >= options[k.END_OFFSET]:
            state[k.NEXT_OFFSET] = max(state[k.NEXT_OFFSET], options[k.END_OFFSET])
            return k.DONE
        size = int32_at(buffer, position + 8) + 12
        if byte_at(buffer, position + 16) != np.uint64(2) or size < _HEADER:
            return _wrong(state, k.NOT_FORMAT_2, base_offset)
        if end - position < size:
            return k.DONE
        if base_offset < 0:
            return _wrong(state, k.NOT_FORMAT_2, base_offset)
        if crc_kernel(buffer, position + 21, position + size) != (
            int32_at(buffer, position + 17) & 0xFFFFFFFF
        ):
            return _wrong(state, k.WRONG_CRC, base_offset)
        last_delta = int32_at(buffer, position + 23)
        if last_delta < 0:
            return _wrong(state, k.NOT_FORMAT_2, base_offset)
        status, is_skipped = _is_skipped(buffer, position, size, options, aborted, open_producers, state)
        if status != k.DONE:
            return status
        if not is_skipped:
            if np.int64(byte_at(buffer, position + 22)) & _CODEC:
                return k.COMPRESSED
            if _could_overflow(size, state):
                return k.FULL
            status = _decode_records(
                buffer, position + _HEADER, position + size, buffer, position, options, state, longs, ints, flags,
                keys, values, header_ints, header_flags, header_keys, header_values,
            )  # fmt: skip
            if status != k.DONE:
                return status
        state[k.POSITION] = position + size
        state[k.NEXT_OFFSET] = base_offset + last_delta + 1
        if _is_full(options, state):
            return k.FULL


@njit(int64(BYTES_IN, BYTES_IN, LONGS, LONGS, *_OUT), cache=True, nogil=True)
def decode_payload(
    payload, records, options, state, longs, ints, flags, keys, values, header_ints, header_flags, header_keys,
    header_values,
):  # fmt: skip
    """The opened records of the compressed batch at state[POSITION], where decode_batches stopped; steps over it."""
    position = state[k.POSITION]
    buffer = np.int64(records.ctypes.data)
    if _could_overflow(len(payload), state):
        return k.FULL
    status = _decode_records(
        np.int64(payload.ctypes.data), np.int64(0), len(payload), buffer, position, options, state, longs, ints,
        flags, keys, values, header_ints, header_flags, header_keys, header_values,
    )  # fmt: skip
    if status == k.DONE:
        state[k.NEXT_OFFSET] = int64_at(buffer, position) + int32_at(buffer, position + 23) + 1
        state[k.POSITION] = position + int32_at(buffer, position + 8) + 12
        if _is_full(options, state):
            return k.FULL
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
