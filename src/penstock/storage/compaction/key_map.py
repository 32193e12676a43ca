"""The last offset of each key in the dirty part of a log, in bounded memory: 24 bytes a slot.

Keys are known by their hash of 128 bits alone. The table starts small and grows; when it may grow no more and is as
full as the load factor allows, cleaning goes as far as the map has come, and another round does the rest.
"""

import os

import numpy as np

from penstock.storage.compaction.key_kernels import move_entries

SLOT_BYTES = 24
_FIRST_SLOTS = 4096


class KeyMap:
    __slots__ = ("_load_factor", "_max_slots", "max_entries", "secret", "table")

    def __init__(self, *, max_bytes: int, load_factor: float, expected_keys: int = 0) -> None:
        self._max_slots = max(max_bytes // SLOT_BYTES, 2)
        self._load_factor = load_factor
        self.secret = np.frombuffer(os.urandom(16), dtype=np.uint64).copy()
        self._allocate(max(_FIRST_SLOTS, int(expected_keys / load_factor)))

    def _allocate(self, slots: int) -> None:
        slots = min(slots, self._max_slots)
        self.table = np.zeros(slots * 3, dtype=np.uint64)
        # One slot always stays empty: that is where a search ends.
        self.max_entries = max(min(int(slots * self._load_factor), slots - 1), 1)

    @property
    def slots(self) -> int:
        return len(self.table) // 3

    def grow(self) -> bool:
        """False when the map may not become larger. While its entries move, the smaller table exists beside it."""
        if self.slots >= self._max_slots:
            return False
        smaller = self.table
        self._allocate(self.slots * 4)
        move_entries(smaller, self.table)
        return True
