"""The hash MurmurHash2: Kafka's partitioner has it with one seed, COUNT_DISTINCT with another."""

from __future__ import annotations

from typing import Final

PARTITIONER_SEED: Final = 0x9747B28C
_MIX: Final = 0x5BD1E995
_WORD: Final = 0xFFFFFFFF


def murmur2(data: bytes, seed: int = PARTITIONER_SEED) -> int:
    result = seed ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _MIX & _WORD
        word = (word ^ word >> 24) * _MIX & _WORD
        result = (result * _MIX & _WORD) ^ word
    if whole < len(data):
        result = (result ^ int.from_bytes(data[whole:], "little")) * _MIX & _WORD
    result = (result ^ result >> 13) * _MIX & _WORD
    return result ^ result >> 15
