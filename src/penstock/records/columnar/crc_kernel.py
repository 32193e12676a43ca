"""CRC-32C inside the compiled walks, of the decoder and of compaction: a batch of one record costs no call from Python.

Eight bytes at a time: by the processor's own instruction where there is one, by tables elsewhere. Takes the address of a
buffer, as byte_kernels.py does.
"""

import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.extending import intrinsic

from penstock.records.columnar.byte_kernels import byte_at, word_at

_POLYNOMIAL = 0x82F63B78


def _make_tables() -> np.ndarray[tuple[int, int], np.dtype[np.uint32]]:
    tables = np.zeros((8, 256), dtype=np.uint32)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
        tables[0, byte] = crc
    for byte in range(256):
        for level in range(1, 8):
            previous = int(tables[level - 1, byte])
            tables[level, byte] = int(tables[0, previous & 0xFF]) ^ (previous >> 8)
    return tables


_TABLES = _make_tables()


def _has_instruction() -> bool:
    if not binding.get_default_triple().startswith("x86_64"):
        return False
    return bool(binding.get_host_cpu_features().get("sse4.2", False))


HARDWARE = _has_instruction()


@intrinsic
def _crc_of_eight(typing_context, crc, word):
    def generate(context, builder, signature, arguments):
        word_type = ir.IntType(64)
        function = builder.module.declare_intrinsic(
            "llvm.x86.sse42.crc32.64.64", fnty=ir.FunctionType(word_type, [word_type, word_type])
        )
        return builder.call(function, arguments)

    return types.uint64(types.uint64, types.uint64), generate


@njit(cache=True, nogil=True)
def _rest_by_table(crc, buffer, start, end):
    for position in range(start, end):
        byte = (crc ^ byte_at(buffer, position)) & np.uint64(0xFF)
        crc = np.uint64(_TABLES[0, byte]) ^ (crc >> np.uint64(8))
    return crc


@njit(cache=True, nogil=True)
def _crc_by_table(buffer, start, end):
    crc = np.uint64(0xFFFFFFFF)
    position = start
    while end - position >= 8:
        # The first four bytes meet the CRC so far, the others stand for themselves.
        word = crc
        crc = np.uint64(0)
        for at in range(8):
            byte = (word ^ byte_at(buffer, position + at)) & np.uint64(0xFF)
            crc ^= np.uint64(_TABLES[7 - at, byte])
            word >>= np.uint64(8)
        position += 8
    crc = _rest_by_table(crc, buffer, position, end)
    return np.int64(crc ^ np.uint64(0xFFFFFFFF))


@njit(cache=True, nogil=True)
def _crc_by_instruction(buffer, start, end):
    crc = np.uint64(0xFFFFFFFF)
    position = start
    while end - position >= 8:
        crc = _crc_of_eight(crc, word_at(buffer, position))
        position += 8
    crc = _rest_by_table(crc, buffer, position, end)
    return np.int64(crc ^ np.uint64(0xFFFFFFFF))


crc_kernel = _crc_by_instruction if HARDWARE else _crc_by_table
