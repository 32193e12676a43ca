"""The walks over batches and records, compiled. Each works on a buffer that starts with a whole batch and stops where
something else is needed: more bytes, more room, or Python for a batch that is compressed or transactional.

What a walk finds of a record is put in a column of `scratch` (one row per field).
"""

import numpy as np
from numba import int64, njit, types, uint8

from penstock.records.columnar.crc_kernel import crc_kernel
from penstock.storage.compaction.byte_kernels import (
    copy_bytes,
    int32_at,
    int64_at,
    put_int32,
    put_int64,
    put_varint,
    read_varint,
    varint_size,
)
from penstock.storage.compaction.key_kernels import WORDS, key_hash, slot_of

MADE_FROM = "679252dfbea3002d"
"""Of byte_kernels.py, key_kernels.py and the CRC of records.columnar: numba compiles this file's functions anew only when
this file changes."""

Words = np.ndarray[tuple[int], np.dtype[np.int64]]
Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]

BYTES_IN = types.Array(uint8, 1, "C", readonly=True)
BYTES_OUT = uint8[::1]
STATE = int64[::1]
TABLE = int64[:, ::1]

# Why a walk stopped
DONE = 0  # fewer bytes are left than the next batch needs: state[NEEDED], 0 when that is not known
SPECIAL = 1  # compressed, transactional or control
CORRUPT = 2
MAP_FULL = 3
SCRATCH_SMALL = 4  # state[NEEDED] records are in the batch
OUT_FULL = 5  # state[NEEDED] bytes must be free

# The words of `state`
POSITION, NEEDED, ENTRIES, LATEST_OFFSET = 0, 1, 2, 3
OUT_POSITION, FILE_POSITION, SINCE_ENTRY, MAX_TIMESTAMP, MAX_TIMESTAMP_OFFSET, LAST_TIME_ENTRY = (
    4,
    5,
    6,
    7,
    8,
    9,
)
OFFSET_ENTRIES, TIME_ENTRIES = 10, 11
RECORDS_READ, RECORDS_KEPT, NULL_KEYS, LAST_OFFSET = 12, 13, 14, 15
KEPT_TOMBSTONES, KEPT_MAX_TIMESTAMP = 16, 17
STATE_WORDS = 18

# The rows of `scratch`
START, TIMESTAMP_END, END, OFFSET, TIMESTAMP, HASH_LOW, HASH_HIGH, FLAGS, TIMESTAMP_START = range(9)
SCRATCH_ROWS = 9
HAS_KEY, HAS_VALUE, KEEP = 1, 2, 4

# The options of a filter
NOW, DELETE_HORIZON, UPPER_BOUND, BASE_OFFSET, INDEX_INTERVAL = range(5)
OPTION_WORDS = 5

_HEADER = 61
_CONTROL_TRANSACTIONAL_OR_CODEC = 0x37
_LOG_APPEND_TIME = 0x08
_HORIZON = 0x40
_LARGEST_GROWTH = 11  # bytes that a record may gain when its timestamp is written anew


@njit(cache=True)
def _map_parsed(scratch, count, start_offset, table, max_entries, state):
    for number in range(count):
        offset = scratch[OFFSET, number]
        if not scratch[FLAGS, number] & HAS_KEY or offset < start_offset:
            continue
        low = np.uint64(scratch[HASH_LOW, number])
        high = np.uint64(scratch[HASH_HIGH, number])
        at = slot_of(table, low, high)
        if table[at + 2] == np.uint64(0):
            if state[ENTRIES] >= max_entries:
                return MAP_FULL
            state[ENTRIES] += 1
            table[at] = low
            table[at + 1] = high
        table[at + 2] = np.uint64(offset + 1)
    return DONE


# --- reading


@njit(cache=True)
def _parse(buffer, at, end, count, base_offset, base_timestamp, secret, scratch):
    """Fills scratch; False when the bytes are not exactly `count` records."""
    for number in range(count):
        scratch[START, number] = at
        length, at = read_varint(buffer, at, end)
        if at < 0 or length < 0 or length > end - at or length == 0:
            return False
        record_end = at + length
        at += 1  # attributes: none are defined
        scratch[TIMESTAMP_START, number] = at
        timestamp_delta, at = read_varint(buffer, at, record_end)
        if at < 0:
            return False
        scratch[TIMESTAMP_END, number] = at
        offset_delta, at = read_varint(buffer, at, record_end)
        if at < 0:
            return False
        key_length, at = read_varint(buffer, at, record_end)
        if at < 0 or key_length > record_end - at:
            return False
        flags = 0
        if key_length >= 0:
            flags = HAS_KEY
            low, high = key_hash(buffer, at, at + key_length, secret[0], secret[1])
            scratch[HASH_LOW, number] = np.int64(low)
            scratch[HASH_HIGH, number] = np.int64(high)
            at += key_length
        value_length, at = read_varint(buffer, at, record_end)
        if at < 0 or value_length > record_end - at:
            return False
        if value_length >= 0:
            flags |= HAS_VALUE
        scratch[FLAGS, number] = flags
        scratch[OFFSET, number] = base_offset + offset_delta
        scratch[TIMESTAMP, number] = base_timestamp + timestamp_delta
        scratch[END, number] = record_end
        at = record_end
    return at == end


@njit(cache=True)
def _check_header(buffer, position, end, state):
    """(status, size): DONE here means that a whole batch with a right CRC is at the position."""
    state[NEEDED] = 0
    if end - position < _HEADER:
        return np.int64(-1), np.int64(0)
    size = int32_at(buffer, position + 8) + 12
    if size < _HEADER or buffer[position + 16] != 2:
        return np.int64(CORRUPT), np.int64(0)
    if end - position < size:
        state[NEEDED] = size
        return np.int64(-1), np.int64(0)
    if (crc_kernel(buffer.ctypes.data, position + 21, position + size) & 0xFFFFFFFF) != (
        int32_at(buffer, position + 17) & 0xFFFFFFFF
    ):
        return np.int64(CORRUPT), size
    return np.int64(DONE), size


@njit(types.boolean(BYTES_IN, int64, int64, int64, int64, WORDS, TABLE), cache=True)
def parse_records(buffer, at, count, base_offset, base_timestamp, secret, scratch):
    """The records of a batch that Python has opened."""
    return _parse(buffer, at, len(buffer), count, base_offset, base_timestamp, secret, scratch)


@njit(int64(TABLE, int64, int64, WORDS, int64, STATE), cache=True)
def map_parsed(scratch, count, start_offset, table, max_entries, state):
    return _map_parsed(scratch, count, start_offset, table, max_entries, state)


@njit(int64(BYTES_IN, int64, WORDS, int64, WORDS, TABLE, STATE), cache=True)
def map_batches(buffer, start_offset, table, max_entries, secret, scratch, state):
    """Puts the last offset of each key into the map, batch by batch from state[POSITION] on."""
    end = len(buffer)
    while True:
        position = state[POSITION]
        status, size = _check_header(buffer, position, end, state)
        if status == -1:
            return DONE
        if status != DONE:
            return status
        if buffer[position + 22] & _CONTROL_TRANSACTIONAL_OR_CODEC:
            return SPECIAL
        base_offset = int64_at(buffer, position)
        last_offset = base_offset + int32_at(buffer, position + 23)
        if last_offset >= start_offset:
            count = int32_at(buffer, position + 57)
            if count < 0 or count > size:
                return CORRUPT
            if count > scratch.shape[1]:
                state[NEEDED] = count
                return SCRATCH_SMALL
            base_timestamp = int64_at(buffer, position + 27)
            if not _parse(
                buffer,
                position + _HEADER,
                position + size,
                count,
                base_offset,
                base_timestamp,
                secret,
                scratch,
            ):
                return CORRUPT
            if _map_parsed(scratch, count, start_offset, table, max_entries, state) != DONE:
                return MAP_FULL
            state[LATEST_OFFSET] = last_offset
        state[POSITION] = position + size


# --- choosing and writing


@njit(cache=True)
def _choose(scratch, count, table, latest_offset, horizon, now, state):
    """Marks the records to keep and returns how many: the last of its key, unless a tombstone past its horizon (-1:
    the batch has none yet). What the map has not seen stays."""
    kept = 0
    state[KEPT_TOMBSTONES] = 0
    state[KEPT_MAX_TIMESTAMP] = -1
    for number in range(count):
        flags = scratch[FLAGS, number]
        keep = True
        if scratch[OFFSET, number] <= latest_offset:
            if flags & HAS_KEY:
                at = slot_of(
                    table, np.uint64(scratch[HASH_LOW, number]), np.uint64(scratch[HASH_HIGH, number])
                )
                keep = scratch[OFFSET, number] + 1 >= np.int64(table[at + 2])
                if not flags & HAS_VALUE and horizon >= 0 and now >= horizon:
                    keep = False
            else:
                keep = False
                state[NULL_KEYS] += 1
        if keep:
            kept += 1
            scratch[FLAGS, number] = flags | KEEP
            if not flags & HAS_VALUE:
                state[KEPT_TOMBSTONES] += 1
            if scratch[TIMESTAMP, number] > state[KEPT_MAX_TIMESTAMP]:
                state[KEPT_MAX_TIMESTAMP] = scratch[TIMESTAMP, number]
    state[RECORDS_READ] += count
    state[RECORDS_KEPT] += kept
    return kept


@njit(cache=True)
def _copy_kept(source, scratch, count, out, at):
    """Neighbours that both stay are copied together."""
    number = 0
    while number < count:
        if not scratch[FLAGS, number] & KEEP:
            number += 1
            continue
        start = scratch[START, number]
        while number < count and scratch[FLAGS, number] & KEEP:
            number += 1
        at = copy_bytes(source, start, scratch[END, number - 1], out, at)
    return at


@njit(cache=True)
def _rewrite_kept(source, scratch, count, base_timestamp, out, at):
    """As _copy_kept, with timestamps counted from another base."""
    for number in range(count):
        if not scratch[FLAGS, number] & KEEP:
            continue
        delta = scratch[TIMESTAMP, number] - base_timestamp
        rest = scratch[END, number] - scratch[TIMESTAMP_END, number]
        at = put_varint(out, at, 1 + varint_size(delta) + rest)
        out[at] = source[scratch[TIMESTAMP_START, number] - 1]
        at = put_varint(out, at + 1, delta)
        at = copy_bytes(source, scratch[TIMESTAMP_END, number], scratch[END, number], out, at)
    return at


@njit(int64(TABLE, int64, WORDS, int64, int64, int64, STATE), cache=True)
def choose_parsed(scratch, count, table, latest_offset, horizon, now, state):
    return _choose(scratch, count, table, latest_offset, horizon, now, state)


@njit(int64(BYTES_IN, TABLE, int64, types.boolean, int64, BYTES_OUT), cache=True)
def write_kept(source, scratch, count, rewrite, base_timestamp, out):
    """The kept records of a batch that Python has opened, from the start of `out`; returns their size."""
    if rewrite:
        return _rewrite_kept(source, scratch, count, base_timestamp, out, 0)
    return _copy_kept(source, scratch, count, out, 0)


@njit(cache=True)
def _note(size, last_offset, max_timestamp, options, offset_entries, time_entries, state):
    """The same sparse entries that an append makes."""
    if max_timestamp > state[MAX_TIMESTAMP]:
        state[MAX_TIMESTAMP] = max_timestamp
        state[MAX_TIMESTAMP_OFFSET] = last_offset
    if state[SINCE_ENTRY] > options[INDEX_INTERVAL]:
        at = state[OFFSET_ENTRIES]
        offset_entries[at, 0] = last_offset - options[BASE_OFFSET]
        offset_entries[at, 1] = state[FILE_POSITION]
        state[OFFSET_ENTRIES] = at + 1
        if state[MAX_TIMESTAMP] > state[LAST_TIME_ENTRY]:
            at = state[TIME_ENTRIES]
            time_entries[at, 0] = state[MAX_TIMESTAMP]
            time_entries[at, 1] = state[MAX_TIMESTAMP_OFFSET] - options[BASE_OFFSET]
            state[TIME_ENTRIES] = at + 1
            state[LAST_TIME_ENTRY] = state[MAX_TIMESTAMP]
        state[SINCE_ENTRY] = size
    else:
        state[SINCE_ENTRY] += size
    state[FILE_POSITION] += size
    state[LAST_OFFSET] = last_offset


@njit(types.void(int64, int64, int64, STATE, TABLE, TABLE, STATE), cache=True)
def note_batch(size, last_offset, max_timestamp, options, offset_entries, time_entries, state):
    _note(size, last_offset, max_timestamp, options, offset_entries, time_entries, state)


@njit(cache=True)
def _sign(out, start, end):
    put_int32(out, start + 17, crc_kernel(out.ctypes.data, start + 21, end))


@njit(cache=True)
def _is_last_of_producer(producer_ids, last_offsets, producer_id, last_offset):
    if producer_id < 0 or len(producer_ids) == 0:
        return False
    at = np.searchsorted(producer_ids, producer_id)
    return at < len(producer_ids) and producer_ids[at] == producer_id and last_offsets[at] == last_offset


@njit(cache=True)
def _write_empty(source, position, out, at):
    """A batch without records: it still holds the offsets, the producer's sequence and the largest timestamp."""
    copy_bytes(source, position, position + _HEADER, out, at)
    put_int32(out, at + 8, _HEADER - 12)
    out[at + 22] = out[at + 22] & 0x38
    put_int64(out, at + 27, -1)
    put_int32(out, at + 57, 0)
    _sign(out, at, at + _HEADER)
    return at + _HEADER


@njit(cache=True)
def _write_some(source, position, scratch, count, kept, set_horizon, new_horizon, out, at, state):
    start = at
    at = copy_bytes(source, position, position + _HEADER, out, at)
    if set_horizon:
        at = _rewrite_kept(source, scratch, count, new_horizon, out, at)
        out[start + 22] |= _HORIZON
        put_int64(out, start + 27, new_horizon)
    else:
        at = _copy_kept(source, scratch, count, out, at)
    put_int32(out, start + 8, at - start - 12)
    if not out[start + 22] & _LOG_APPEND_TIME:
        put_int64(out, start + 35, state[KEPT_MAX_TIMESTAMP])
    put_int32(out, start + 57, kept)
    _sign(out, start, at)
    return at


@njit(
    int64(BYTES_IN, WORDS, int64, STATE, STATE, STATE, WORDS, TABLE, BYTES_OUT, TABLE, TABLE, STATE),
    cache=True,
)
def filter_batches(
    buffer, table, latest_offset, options, producer_ids, last_offsets, secret, scratch, out, offset_entries,
    time_entries, state,
):  # fmt: skip
    """Copies what stays of each batch, from state[POSITION] on, to `out` at state[OUT_POSITION]."""
    end = len(buffer)
    while True:
        position = state[POSITION]
        status, size = _check_header(buffer, position, end, state)
        if status == -1:
            return DONE
        if status != DONE:
            return status
        attributes = buffer[position + 22]
        if attributes & _CONTROL_TRANSACTIONAL_OR_CODEC:
            return SPECIAL
        count = int32_at(buffer, position + 57)
        if count < 0 or count > size:
            return CORRUPT
        if count > scratch.shape[1]:
            state[NEEDED] = count
            return SCRATCH_SMALL
        needed = size + count * _LARGEST_GROWTH
        if state[OUT_POSITION] + needed > len(out) or state[OFFSET_ENTRIES] >= offset_entries.shape[0]:
            state[NEEDED] = needed
            return OUT_FULL
        base_offset = int64_at(buffer, position)
        last_offset = base_offset + int32_at(buffer, position + 23)
        base_timestamp = int64_at(buffer, position + 27)
        if not _parse(
            buffer, position + _HEADER, position + size, count, base_offset, base_timestamp, secret, scratch
        ):
            return CORRUPT
        horizon = base_timestamp if attributes & _HORIZON else np.int64(-1)
        kept = _choose(scratch, count, table, latest_offset, horizon, options[NOW], state)
        at = state[OUT_POSITION]
        start = at
        if kept == 0:
            if last_offset + 1 == options[UPPER_BOUND] or _is_last_of_producer(
                producer_ids, last_offsets, int64_at(buffer, position + 43), last_offset
            ):
                at = _write_empty(buffer, position, out, at)
        else:
            set_horizon = state[KEPT_TOMBSTONES] > 0 and horizon < 0
            if kept == count and not set_horizon:
                at = copy_bytes(buffer, position, position + size, out, at)
            else:
                at = _write_some(
                    buffer,
                    position,
                    scratch,
                    count,
                    kept,
                    set_horizon,
                    options[DELETE_HORIZON],
                    out,
                    at,
                    state,
                )
        if at > start:
            max_timestamp = int64_at(out, start + 35)
            _note(at - start, last_offset, max_timestamp, options, offset_entries, time_entries, state)
            state[OUT_POSITION] = at
        state[POSITION] = position + size
