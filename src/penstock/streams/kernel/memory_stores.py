"""A store in memory: a dict, and its keys in order once somebody asks for a range."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any, Final

BLOCK_KEYS: Final = 1000


class SortedKeys:
    """Keys in blocks of at most twice `BLOCK_KEYS`, so that a new key moves few of the others."""

    def __init__(self, keys: list[bytes]) -> None:
        self._blocks = [keys[at : at + BLOCK_KEYS] for at in range(0, len(keys), BLOCK_KEYS)] or [[]]
        self._firsts = [block[0] if block else b"" for block in self._blocks]

    def add(self, key: bytes) -> None:
        at = self._block_of(key)
        block = self._blocks[at]
        insort(block, key)
        self._firsts[at] = block[0]
        if len(block) > 2 * BLOCK_KEYS:
            self._blocks[at : at + 1] = [block[:BLOCK_KEYS], block[BLOCK_KEYS:]]
            self._firsts[at : at + 1] = [block[0], block[BLOCK_KEYS]]

    def remove(self, key: bytes) -> None:
        at = self._block_of(key)
        block = self._blocks[at]
        del block[bisect_left(block, key)]
        if block:
            self._firsts[at] = block[0]
        elif len(self._blocks) > 1:
            del self._blocks[at], self._firsts[at]

    def between(self, first: bytes, last: bytes) -> list[bytes]:
        found: list[bytes] = []
        for at in range(self._block_of(first), len(self._blocks)):
            block = self._blocks[at]
            if found and block and block[0] >= last:
                break
            begin = bisect_left(block, first)
            end = bisect_left(block, last, begin)
            found += block[begin:end]
            if end < len(block):
                break
        return found

    def first_from(self, key: bytes) -> bytes | None:
        """The first that is not before this one."""
        for block in self._blocks[self._block_of(key) :]:
            at = bisect_left(block, key)
            if at < len(block):
                return block[at]
        return None

    def last(self) -> bytes:
        return self._blocks[-1][-1]

    def all(self) -> list[bytes]:
        return [key for block in self._blocks for key in block]

    def _block_of(self, key: bytes) -> int:
        at = bisect_left(self._firsts, key)
        if at < len(self._firsts) and self._firsts[at] == key:
            return at
        return max(at - 1, 0)


class MemoryStore:
    """`stores.Store`. What a walk gives is what was there when it began."""

    def __init__(self) -> None:
        self._values: dict[bytes, Any] = {}
        self._keys: SortedKeys | None = None

    def get(self, key: bytes) -> Any:
        return self._values.get(key)

    def put(self, key: bytes, value: Any) -> None:
        if value is None:
            if self._values.pop(key, None) is not None and self._keys is not None:
                self._keys.remove(key)
            return
        if self._keys is not None and key not in self._values:
            self._keys.add(key)
        self._values[key] = value

    def range(self, first: bytes, last: bytes) -> Iterator[tuple[bytes, Any]]:
        values = self._values
        if not values:
            return iter(())  # an order would have to be kept from now on
        return iter([(key, values[key]) for key in self._ordered().between(first, last)])

    def all(self) -> Iterator[tuple[bytes, Any]]:
        values = self._values
        return iter([(key, values[key]) for key in self._ordered().all()])

    def __len__(self) -> int:
        return len(self._values)

    def _ordered(self) -> SortedKeys:
        if self._keys is None:
            self._keys = SortedKeys(sorted(self._values))
        return self._keys
