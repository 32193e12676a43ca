"""CRC-32C inside the compiled walks, so that a batch of one record costs no call from Python.

The processor's own instruction where there is one, eight bytes at a time; elsewhere a table, a byte at a time.
Takes the address of a buffer, as byte_kernels.py does.
"""

import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.extending import intrinsic

from penstock.records.columnar.byte_kernels import byte_at, word_at

_POLYNOMIAL = 0x82F63B78


def _make_table() -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    table = np.zeros(256, dtype=np.uint32)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
        table[byte] = crc
    return table


_TABLE = _make_table()


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
        crc = np.uint64(_TABLE[(crc ^ byte_at(buffer, position)) & np.uint64(0xFF)]) ^ (crc >> np.uint64(8))
    return crc


@njit(cache=True, nogil=True)
def _crc_by_table(buffer, start, end):
    crc = _rest_by_table(np.uint64(0xFFFFFFFF), buffer, start, end)
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
