"""CRC-32C inside compiled walks: by the processor's own instruction where it has one, by tables elsewhere.

A batch may be as small as one record; a call from Python for each would cost more than the rest of its cleaning.
"""

import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.extending import intrinsic

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


@njit(cache=True)
def _crc_by_table(buffer, start, end):
    crc = np.uint32(0xFFFFFFFF)
    position = start
    while end - position >= 8:
        low = crc ^ (
            np.uint32(buffer[position])
            | (np.uint32(buffer[position + 1]) << np.uint32(8))
            | (np.uint32(buffer[position + 2]) << np.uint32(16))
            | (np.uint32(buffer[position + 3]) << np.uint32(24))
        )
        crc = (
            _TABLES[7, low & np.uint32(0xFF)]
            ^ _TABLES[6, (low >> np.uint32(8)) & np.uint32(0xFF)]
            ^ _TABLES[5, (low >> np.uint32(16)) & np.uint32(0xFF)]
            ^ _TABLES[4, low >> np.uint32(24)]
            ^ _TABLES[3, buffer[position + 4]]
            ^ _TABLES[2, buffer[position + 5]]
            ^ _TABLES[1, buffer[position + 6]]
            ^ _TABLES[0, buffer[position + 7]]
        )
        position += 8
    while position < end:
        crc = _TABLES[0, (crc ^ np.uint32(buffer[position])) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
        position += 1
    return np.int64(crc ^ np.uint32(0xFFFFFFFF))


@njit(cache=True)
def _crc_by_instruction(buffer, start, end):
    crc = np.uint64(0xFFFFFFFF)
    words = (end - start) // 8
    if words > 0:
        for word in buffer[start : start + words * 8].view(np.uint64):
            crc = _crc_of_eight(crc, word)
    for position in range(start + words * 8, end):
        crc = np.uint64(_TABLES[0, (crc ^ np.uint64(buffer[position])) & np.uint64(0xFF)]) ^ (
            crc >> np.uint64(8)
        )
    return np.int64(crc ^ np.uint64(0xFFFFFFFF))


crc_kernel = _crc_by_instruction if HARDWARE else _crc_by_table
