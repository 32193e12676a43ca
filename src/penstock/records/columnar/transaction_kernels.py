"""Transactions in a walk over batches, compiled: whose batches are skipped, and what a marker says."""

import numpy as np
from numba import njit

from penstock.records.columnar import layout as k
from penstock.records.columnar.byte_kernels import byte_at, read_varint

MADE_FROM = "fcb239c2a3e54cf2"
"""Of layout.py and byte_kernels.py: numba compiles this file's functions anew only when this file changes."""


@njit(cache=True, nogil=True)
def open_aborted(last_offset, aborted, open_producers, state):
    """From their first offset on, the batches of these producers are skipped, until their marker comes."""
    while state[k.NEXT_ABORTED] < aborted.shape[1] and aborted[1, state[k.NEXT_ABORTED]] <= last_offset:
        open_producers[state[k.OPEN_ABORTED]] = aborted[0, state[k.NEXT_ABORTED]]
        state[k.NEXT_ABORTED] += 1
        state[k.OPEN_ABORTED] += 1


@njit(cache=True, nogil=True)
def find_open(producer_id, open_producers, state):
    for number in range(state[k.OPEN_ABORTED]):
        if open_producers[number] == producer_id:
            return number
    return -1


@njit(cache=True, nogil=True)
def close_aborted(producer_id, open_producers, state):
    kept = 0
    for number in range(state[k.OPEN_ABORTED]):
        if open_producers[number] != producer_id:
            open_producers[kept] = open_producers[number]
            kept += 1
    state[k.OPEN_ABORTED] = kept


@njit(cache=True, nogil=True)
def marker_type(buffer, at, end):
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
