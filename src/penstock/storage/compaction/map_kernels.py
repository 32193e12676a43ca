"""Reading batches, and the map of the last offset of each key, compiled.

A walk works on a buffer that starts with a whole batch and stops where something else is needed: more bytes, more room, or
Python for a batch that is compressed or transactional. What it finds of a record is put in a column of `scratch` (one row per
field).
"""

import numpy as np
from numba import int64, njit, types

from penstock.records.columnar.crc_kernel import crc_kernel
from penstock.storage.compaction import layout as k
from penstock.storage.compaction.byte_kernels import int32_at, int64_at, read_varint
from penstock.storage.compaction.key_kernels import WORDS, key_hash, slot_of

MADE_FROM = "5587e38fa9a1d1b4"
"""Of layout.py, byte_kernels.py, key_kernels.py and the CRC of records.columnar: numba compiles this file's functions anew only
when this file changes."""


@njit(cache=True)
def parse(buffer, at, end, count, base_offset, base_timestamp, secret, scratch):
    """Fills scratch; False when the bytes are not exactly `count` records."""
    for number in range(count):
        scratch[k.START, number] = at
        length, at = read_varint(buffer, at, end)
        if at < 0 or length < 0 or length > end - at or length == 0:
            return False
        record_end = at + length
        at += 1  # attributes: none are defined
        scratch[k.TIMESTAMP_START, number] = at
        timestamp_delta, at = read_varint(buffer, at, record_end)
        if at < 0:
            return False
        scratch[k.TIMESTAMP_END, number] = at
        offset_delta, at = read_varint(buffer, at, record_end)
        if at < 0:
            return False
        key_length, at = read_varint(buffer, at, record_end)
        if at < 0 or key_length > record_end - at:
            return False
        flags = 0
        if key_length >= 0:
            flags = k.HAS_KEY
            low, high = key_hash(buffer, at, at + key_length, secret[0], secret[1])
            scratch[k.HASH_LOW, number] = np.int64(low)
            scratch[k.HASH_HIGH, number] = np.int64(high)
            at += key_length
        value_length, at = read_varint(buffer, at, record_end)
        if at < 0 or value_length > record_end - at:
            return False
        if value_length >= 0:
            flags |= k.HAS_VALUE
        scratch[k.FLAGS, number] = flags
        scratch[k.OFFSET, number] = base_offset + offset_delta
        scratch[k.TIMESTAMP, number] = base_timestamp + timestamp_delta
        scratch[k.END, number] = record_end
        at = record_end
    return at == end


@njit(cache=True)
def check_header(buffer, position, end, state):
    """(status, size): DONE here means that a whole batch with a right CRC is at the position."""
    state[k.NEEDED] = 0
    if end - position < k.HEADER:
        return np.int64(-1), np.int64(0)
    size = int32_at(buffer, position + 8) + 12
    if size < k.HEADER or buffer[position + 16] != 2:
        return np.int64(k.CORRUPT), np.int64(0)
    if end - position < size:
        state[k.NEEDED] = size
        return np.int64(-1), np.int64(0)
    if (crc_kernel(buffer.ctypes.data, position + 21, position + size) & 0xFFFFFFFF) != (
        int32_at(buffer, position + 17) & 0xFFFFFFFF
    ):
        return np.int64(k.CORRUPT), size
    return np.int64(k.DONE), size


@njit(types.boolean(k.BYTES_IN, int64, int64, int64, int64, WORDS, k.TABLE), cache=True)
def parse_records(buffer, at, count, base_offset, base_timestamp, secret, scratch):
    """The records of a batch that Python has opened."""
    return parse(buffer, at, len(buffer), count, base_offset, base_timestamp, secret, scratch)


@njit(cache=True)
def _map_parsed(scratch, count, start_offset, table, max_entries, state):
    for number in range(count):
        offset = scratch[k.OFFSET, number]
        if not scratch[k.FLAGS, number] & k.HAS_KEY or offset < start_offset:
            continue
        low = np.uint64(scratch[k.HASH_LOW, number])
        high = np.uint64(scratch[k.HASH_HIGH, number])
        at = slot_of(table, low, high)
        if table[at + 2] == np.uint64(0):
            if state[k.ENTRIES] >= max_entries:
                return k.MAP_FULL
            state[k.ENTRIES] += 1
            table[at] = low
            table[at + 1] = high
        table[at + 2] = np.uint64(offset + 1)
    return k.DONE


@njit(int64(k.TABLE, int64, int64, WORDS, int64, k.STATE), cache=True)
def map_parsed(scratch, count, start_offset, table, max_entries, state):
    return _map_parsed(scratch, count, start_offset, table, max_entries, state)


@njit(int64(k.BYTES_IN, int64, WORDS, int64, WORDS, k.TABLE, k.STATE), cache=True)
def map_batches(buffer, start_offset, table, max_entries, secret, scratch, state):
    """Puts the last offset of each key into the map, batch by batch from state[POSITION] on."""
    end = len(buffer)
    while True:
        position = state[k.POSITION]
        status, size = check_header(buffer, position, end, state)
        if status == -1:
            return k.DONE
        if status != k.DONE:
            return status
        if buffer[position + 22] & k.SPECIAL_BITS:
            return k.SPECIAL
        base_offset = int64_at(buffer, position)
        last_offset = base_offset + int32_at(buffer, position + 23)
        if last_offset >= start_offset:
            count = int32_at(buffer, position + 57)
            if count < 0 or count > size:
                return k.CORRUPT
            if count > scratch.shape[1]:
                state[k.NEEDED] = count
                return k.SCRATCH_SMALL
            base_timestamp = int64_at(buffer, position + 27)
            if not parse(
                buffer,
                position + k.HEADER,
                position + size,
                count,
                base_offset,
                base_timestamp,
                secret,
                scratch,
            ):
                return k.CORRUPT
            if _map_parsed(scratch, count, start_offset, table, max_entries, state) != k.DONE:
                return k.MAP_FULL
            state[k.LATEST_OFFSET] = last_offset
        state[k.POSITION] = position + size
