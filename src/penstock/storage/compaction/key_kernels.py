"""The hash of a key, and its place in the map, compiled. As with byte_kernels.py, an edit changes MADE_FROM of
map_kernels and of filter_kernels.

The map is one array of words, three to a slot: both halves of the key's hash and its last offset plus one; zero there is an
empty slot. The hash is SipHash-1-3 with a secret of 128 bits and a result of 128, so that nobody can choose keys that
are taken for one another.
"""

import numpy as np
from numba import njit, types, uint64

WORDS = uint64[::1]


@njit(cache=True)
def _rotate(word, bits):
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@njit(cache=True)
def _sip_round(v0, v1, v2, v3):
    v0 += v1
    v1 = _rotate(v1, 13) ^ v0
    v0 = _rotate(v0, 32)
    v2 += v3
    v3 = _rotate(v3, 16) ^ v2
    v0 += v3
    v3 = _rotate(v3, 21) ^ v0
    v2 += v1
    v1 = _rotate(v1, 17) ^ v2
    v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


@njit(cache=True)
def key_hash(buffer, start, end, secret_low, secret_high):
    v0 = secret_low ^ np.uint64(0x736F6D6570736575)
    v1 = secret_high ^ np.uint64(0x646F72616E646F6D) ^ np.uint64(0xEE)
    v2 = secret_low ^ np.uint64(0x6C7967656E657261)
    v3 = secret_high ^ np.uint64(0x7465646279746573)
    at = start
    while end - at >= 8:
        word = np.uint64(0)
        for number in range(8):
            word |= np.uint64(buffer[at + number]) << np.uint64(8 * number)
        v3 ^= word
        v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
        v0 ^= word
        at += 8
    word = np.uint64((end - start) & 0xFF) << np.uint64(56)
    shift = np.uint64(0)
    while at < end:
        word |= np.uint64(buffer[at]) << shift
        shift += np.uint64(8)
        at += 1
    v3 ^= word
    v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    v0 ^= word
    v2 ^= np.uint64(0xEE)
    for _ in range(3):
        v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    low = v0 ^ v1 ^ v2 ^ v3
    v1 ^= np.uint64(0xDD)
    for _ in range(3):
        v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    return low, v0 ^ v1 ^ v2 ^ v3


@njit(cache=True)
def slot_of(table, low, high):
    """Where a key is, or where it would go: the index of its first word."""
    slots = np.uint64(len(table) // 3)
    at = np.int64(((low >> np.uint64(32)) * slots) >> np.uint64(32)) * 3
    while table[at + 2] != np.uint64(0) and (table[at] != low or table[at + 1] != high):
        at += 3
        if at == len(table):
            at = 0
    return at


@njit(types.void(WORDS, WORDS), cache=True)
def move_entries(table, larger):
    for at in range(0, len(table), 3):
        if table[at + 2] != np.uint64(0):
            to = slot_of(larger, table[at], table[at + 1])
            larger[to] = table[at]
            larger[to + 1] = table[at + 1]
            larger[to + 2] = table[at + 2]
