"""Numbers and bytes in memory, compiled: what the walks are made of.

They take the address of a buffer, not the array: numba counts references to an array with two atomic operations each
time it is given to a function, which takes longer than to read a varint. So nothing here knows where a buffer ends, and
whoever calls checks that first.

numba keeps compiled code for as long as the file of the outermost function is the same: kernels.MADE_FROM must change
with an edit here (a test says to what).
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic


def _load(builder, address, at, bits):
    pointer = builder.inttoptr(builder.add(address, at), ir.IntType(bits).as_pointer())
    word = builder.load(pointer)
    word.align = 1
    return word


@intrinsic
def byte_at(typing_context, address, at):
    def generate(context, builder, signature, arguments):
        return builder.zext(_load(builder, *arguments, 8), ir.IntType(64))

    return types.uint64(types.int64, types.int64), generate


@intrinsic
def int32_at(typing_context, address, at):
    """Big-endian, as everything in a batch."""

    def generate(context, builder, signature, arguments):
        return builder.sext(builder.bswap(_load(builder, *arguments, 32)), ir.IntType(64))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def int64_at(typing_context, address, at):
    def generate(context, builder, signature, arguments):
        return builder.bswap(_load(builder, *arguments, 64))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def word_at(typing_context, address, at):
    """Eight bytes as the processor has them."""

    def generate(context, builder, signature, arguments):
        return _load(builder, *arguments, 64)

    return types.uint64(types.int64, types.int64), generate


@intrinsic
def copy_bytes(typing_context, target, source, size):
    """From address to address."""

    def generate(context, builder, signature, arguments):
        target, source, size = arguments
        byte = ir.IntType(8).as_pointer()
        cgutils.raw_memcpy(
            builder, builder.inttoptr(target, byte), builder.inttoptr(source, byte), size, itemsize=1
        )
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@njit(cache=True, nogil=True)
def read_varint(buffer, at, end):
    """(value, next position) of a zigzag varint; the position is -1 when it passes the end or 64 bits."""
    if at >= end:
        return np.int64(0), np.int64(-1)
    first = byte_at(buffer, at)
    if first < np.uint64(0x80):
        return np.int64(first >> np.uint64(1)) ^ -np.int64(first & np.uint64(1)), at + 1
    raw = first & np.uint64(0x7F)
    shift = np.uint64(7)
    at += 1
    while at < end and shift < np.uint64(64):
        byte = byte_at(buffer, at)
        at += 1
        if shift == np.uint64(63) and byte > np.uint64(1):
            break
        raw |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return np.int64(raw >> np.uint64(1)) ^ -np.int64(raw & np.uint64(1)), at
        shift += np.uint64(7)
    return np.int64(0), np.int64(-1)


@njit(cache=True, nogil=True)
def is_utf8(buffer, at, end):
    """What Python's strict decoder takes: no surrogates, no longer forms than needed, nothing above U+10FFFF."""
    while at < end:
        lead = np.int64(byte_at(buffer, at))
        at += 1
        if lead < 0x80:
            continue
        low, high = 0x80, 0xBF  # the bounds of the second byte
        if 0xC2 <= lead <= 0xDF:
            more = 1
        elif 0xE0 <= lead <= 0xEF:
            more = 2
            if lead == 0xE0:
                low = 0xA0
            elif lead == 0xED:
                high = 0x9F
        elif 0xF0 <= lead <= 0xF4:
            more = 3
            if lead == 0xF0:
                low = 0x90
            elif lead == 0xF4:
                high = 0x8F
        else:
            return False
        if more > end - at:
            return False
        second = np.int64(byte_at(buffer, at))
        if second < low or second > high:
            return False
        for number in range(1, more):
            if byte_at(buffer, at + number) & np.uint64(0xC0) != np.uint64(0x80):
                return False
        at += more
    return True
