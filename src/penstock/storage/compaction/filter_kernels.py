"""Choosing what stays of each batch, and writing it, compiled. As in map_kernels.py, a walk stops where something else is
needed."""

import numpy as np
from numba import int64, njit, types

from penstock.records.columnar.crc_kernel import crc_kernel
from penstock.storage.compaction import layout as k
from penstock.storage.compaction.byte_kernels import (
    copy_bytes,
    int32_at,
    int64_at,
    put_int32,
    put_int64,
    put_varint,
    varint_size,
)
from penstock.storage.compaction.key_kernels import WORDS, slot_of
from penstock.storage.compaction.map_kernels import check_header, parse

MADE_FROM = "129d5cdc039890c7"
"""Of layout.py, byte_kernels.py, key_kernels.py, map_kernels.py and the CRC of records.columnar: numba compiles this file's
functions anew only when this file changes."""

_LOG_APPEND_TIME = 0x08
_HORIZON = 0x40
_LARGEST_GROWTH = 11  # bytes that a record may gain when its timestamp is written anew


@njit(cache=True)
def _choose(scratch, count, table, latest_offset, horizon, now, state):
    """Marks the records to keep and returns how many: the last of its key, unless a tombstone past its horizon (-1:
    the batch has none yet). What the map has not seen stays."""
    kept = 0
    state[k.KEPT_TOMBSTONES] = 0
    state[k.KEPT_MAX_TIMESTAMP] = -1
    for number in range(count):
        flags = scratch[k.FLAGS, number]
        keep = True
        if scratch[k.OFFSET, number] <= latest_offset:
            if flags & k.HAS_KEY:
                at = slot_of(
                    table, np.uint64(scratch[k.HASH_LOW, number]), np.uint64(scratch[k.HASH_HIGH, number])
                )
                keep = scratch[k.OFFSET, number] + 1 >= np.int64(table[at + 2])
                if not flags & k.HAS_VALUE and horizon >= 0 and now >= horizon:
                    keep = False
            else:
                keep = False
                state[k.NULL_KEYS] += 1
        if keep:
            kept += 1
            scratch[k.FLAGS, number] = flags | k.KEEP
            if not flags & k.HAS_VALUE:
                state[k.KEPT_TOMBSTONES] += 1
            if scratch[k.TIMESTAMP, number] > state[k.KEPT_MAX_TIMESTAMP]:
                state[k.KEPT_MAX_TIMESTAMP] = scratch[k.TIMESTAMP, number]
    state[k.RECORDS_READ] += count
    state[k.RECORDS_KEPT] += kept
    return kept


@njit(cache=True)
def _copy_kept(source, scratch, count, out, at):
    """Neighbours that both stay are copied together."""
    number = 0
    while number < count:
        if not scratch[k.FLAGS, number] & k.KEEP:
            number += 1
            continue
        start = scratch[k.START, number]
        while number < count and scratch[k.FLAGS, number] & k.KEEP:
            number += 1
        at = copy_bytes(source, start, scratch[k.END, number - 1], out, at)
    return at


@njit(cache=True)
def _rewrite_kept(source, scratch, count, base_timestamp, out, at):
    """As _copy_kept, with timestamps counted from another base."""
    for number in range(count):
        if not scratch[k.FLAGS, number] & k.KEEP:
            continue
        delta = scratch[k.TIMESTAMP, number] - base_timestamp
        rest = scratch[k.END, number] - scratch[k.TIMESTAMP_END, number]
        at = put_varint(out, at, 1 + varint_size(delta) + rest)
        out[at] = source[scratch[k.TIMESTAMP_START, number] - 1]
        at = put_varint(out, at + 1, delta)
        at = copy_bytes(source, scratch[k.TIMESTAMP_END, number], scratch[k.END, number], out, at)
    return at


@njit(int64(k.TABLE, int64, WORDS, int64, int64, int64, k.STATE), cache=True)
def choose_parsed(scratch, count, table, latest_offset, horizon, now, state):
    return _choose(scratch, count, table, latest_offset, horizon, now, state)


@njit(int64(k.BYTES_IN, k.TABLE, int64, types.boolean, int64, k.BYTES_OUT), cache=True)
def write_kept(source, scratch, count, rewrite, base_timestamp, out):
    """The kept records of a batch that Python has opened, from the start of `out`; returns their size."""
    if rewrite:
        return _rewrite_kept(source, scratch, count, base_timestamp, out, 0)
    return _copy_kept(source, scratch, count, out, 0)


@njit(cache=True)
def _note(size, last_offset, max_timestamp, options, offset_entries, time_entries, state):
    """The same sparse entries that an append makes."""
    if max_timestamp > state[k.MAX_TIMESTAMP]:
        state[k.MAX_TIMESTAMP] = max_timestamp
        state[k.MAX_TIMESTAMP_OFFSET] = last_offset
    if state[k.SINCE_ENTRY] > options[k.INDEX_INTERVAL]:
        at = state[k.OFFSET_ENTRIES]
        offset_entries[at, 0] = last_offset - options[k.BASE_OFFSET]
        offset_entries[at, 1] = state[k.FILE_POSITION]
        state[k.OFFSET_ENTRIES] = at + 1
        if state[k.MAX_TIMESTAMP] > state[k.LAST_TIME_ENTRY]:
            at = state[k.TIME_ENTRIES]
            time_entries[at, 0] = state[k.MAX_TIMESTAMP]
            time_entries[at, 1] = state[k.MAX_TIMESTAMP_OFFSET] - options[k.BASE_OFFSET]
            state[k.TIME_ENTRIES] = at + 1
            state[k.LAST_TIME_ENTRY] = state[k.MAX_TIMESTAMP]
        state[k.SINCE_ENTRY] = size
    else:
        state[k.SINCE_ENTRY] += size
    state[k.FILE_POSITION] += size
    state[k.LAST_OFFSET] = last_offset


@njit(types.void(int64, int64, int64, k.STATE, k.TABLE, k.TABLE, k.STATE), cache=True)
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
    copy_bytes(source, position, position + k.HEADER, out, at)
    put_int32(out, at + 8, k.HEADER - 12)
    out[at + 22] = out[at + 22] & 0x38
    put_int64(out, at + 27, -1)
    put_int32(out, at + 57, 0)
    _sign(out, at, at + k.HEADER)
    return at + k.HEADER


@njit(cache=True)
def _write_some(source, position, scratch, count, kept, set_horizon, new_horizon, out, at, state):
    start = at
    at = copy_bytes(source, position, position + k.HEADER, out, at)
    if set_horizon:
        at = _rewrite_kept(source, scratch, count, new_horizon, out, at)
        out[start + 22] |= _HORIZON
        put_int64(out, start + 27, new_horizon)
    else:
        at = _copy_kept(source, scratch, count, out, at)
    put_int32(out, start + 8, at - start - 12)
    if not out[start + 22] & _LOG_APPEND_TIME:
        put_int64(out, start + 35, state[k.KEPT_MAX_TIMESTAMP])
    put_int32(out, start + 57, kept)
    _sign(out, start, at)
    return at


@njit(
    int64(
        k.BYTES_IN,
        WORDS,
        int64,
        k.STATE,
        k.STATE,
        k.STATE,
        WORDS,
        k.TABLE,
        k.BYTES_OUT,
        k.TABLE,
        k.TABLE,
        k.STATE,
    ),
    cache=True,
)
def filter_batches(
    buffer, table, latest_offset, options, producer_ids, last_offsets, secret, scratch, out, offset_entries,
    time_entries, state,
):  # fmt: skip
    """Copies what stays of each batch, from state[POSITION] on, to `out` at state[OUT_POSITION]."""
    end = len(buffer)
    while True:
        position = state[k.POSITION]
        status, size = check_header(buffer, position, end, state)
        if status == -1:
            return k.DONE
        if status != k.DONE:
            return status
        attributes = buffer[position + 22]
        if attributes & k.SPECIAL_BITS:
            return k.SPECIAL
        count = int32_at(buffer, position + 57)
        if count < 0 or count > size:
            return k.CORRUPT
        if count > scratch.shape[1]:
            state[k.NEEDED] = count
            return k.SCRATCH_SMALL
        needed = size + count * _LARGEST_GROWTH
        if state[k.OUT_POSITION] + needed > len(out) or state[k.OFFSET_ENTRIES] >= offset_entries.shape[0]:
            state[k.NEEDED] = needed
            return k.OUT_FULL
        base_offset = int64_at(buffer, position)
        last_offset = base_offset + int32_at(buffer, position + 23)
        base_timestamp = int64_at(buffer, position + 27)
        if not parse(
            buffer, position + k.HEADER, position + size, count, base_offset, base_timestamp, secret, scratch
        ):
            return k.CORRUPT
        horizon = base_timestamp if attributes & _HORIZON else np.int64(-1)
        kept = _choose(scratch, count, table, latest_offset, horizon, options[k.NOW], state)
        at = state[k.OUT_POSITION]
        start = at
        if kept == 0:
            if last_offset + 1 == options[k.UPPER_BOUND] or _is_last_of_producer(
                producer_ids, last_offsets, int64_at(buffer, position + 43), last_offset
            ):
                at = _write_empty(buffer, position, out, at)
        else:
            set_horizon = state[k.KEPT_TOMBSTONES] > 0 and horizon < 0
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
                    options[k.DELETE_HORIZON],
                    out,
                    at,
                    state,
                )
        if at > start:
            max_timestamp = int64_at(out, start + 35)
            _note(at - start, last_offset, max_timestamp, options, offset_entries, time_entries, state)
            state[k.OUT_POSITION] = at
        state[k.POSITION] = position + size
