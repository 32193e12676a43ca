"""Numbers in bytes, compiled: what the walks are made of.

numba keeps compiled code for as long as the file of the outermost function is the same: MADE_FROM of map_kernels and of
filter_kernels must change with this file, which a test holds.
"""

import numpy as np
from numba import njit


@njit(cache=True)
def int32_at(buffer, at):
    raw = (
        (np.uint32(buffer[at]) << np.uint32(24))
        | (np.uint32(buffer[at + 1]) << np.uint32(16))
        | (np.uint32(buffer[at + 2]) << np.uint32(8))
        | np.uint32(buffer[at + 3])
    )
    return np.int64(np.int32(raw))


@njit(cache=True)
def int64_at(buffer, at):
    return (int32_at(buffer, at) << 32) | (int32_at(buffer, at + 4) & 0xFFFFFFFF)


@njit(cache=True)
def put_int32(buffer, at, value):
    for number in range(4):
        buffer[at + number] = (value >> (24 - 8 * number)) & 0xFF


@njit(cache=True)
def put_int64(buffer, at, value):
    for number in range(8):
        buffer[at + number] = (value >> (56 - 8 * number)) & 0xFF


@njit(cache=True)
def read_varint(buffer, at, end):
    """(value, next position), the position -1 when it passes the end."""
    raw = np.uint64(0)
    shift = np.uint64(0)
    while at < end and shift < np.uint64(70):
        byte = buffer[at]
        at += 1
        raw |= np.uint64(byte & 0x7F) << shift
        if byte < 0x80:
            return np.int64(raw >> np.uint64(1)) ^ -np.int64(raw & np.uint64(1)), at
        shift += np.uint64(7)
    return np.int64(0), np.int64(-1)


@njit(cache=True)
def put_varint(buffer, at, value):
    raw = np.uint64(value << 1) ^ np.uint64(value >> 63)
    while raw > np.uint64(0x7F):
        buffer[at] = np.uint8((raw & np.uint64(0x7F)) | np.uint64(0x80))
        raw >>= np.uint64(7)
        at += 1
    buffer[at] = np.uint8(raw)
    return at + 1


@njit(cache=True)
def varint_size(value):
    raw = np.uint64(value << 1) ^ np.uint64(value >> 63)
    size = 1
    while raw > np.uint64(0x7F):
        raw >>= np.uint64(7)
        size += 1
    return size


@njit(cache=True)
def copy_bytes(source, start, end, out, at):
    out[at : at + end - start] = source[start:end]
    return at + end - start
