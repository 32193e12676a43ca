"""State of one task: in memory, with every change in a changelog topic before it is committed.

A key that changes a hundred times between two commits is one record of the changelog: what counts is the state at the commit.
What is restored stays packed until somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from penstock.streams.kernel.memory_stores import SortedKeys
from penstock.streams.kernel.state_values import pack, unpack
from penstock.streams.kernel.stores import Store


class KeptStore(Store, Protocol):
    """A task's store, in memory or on disk. `changed` are the keys that the changelog does not know yet."""

    changed: set[bytes]

    def restore(self, key: bytes, value: bytes | None) -> None: ...

    def flush(self, send: Callable[[bytes, bytes | None], None]) -> int: ...

    def look_up(self, key: bytes) -> bytes | None: ...

    def look_through(self, first: bytes, last: bytes | None, limit: int) -> list[tuple[bytes, bytes]]: ...

    def close(self) -> None: ...

    def __len__(self) -> int: ...


class MakeStore(Protocol):
    def __call__(self, name: str, *, is_logged: bool) -> KeptStore: ...


class _Packed(bytes):
    """A value as the changelog has it."""

    __slots__ = ()


class LoggedStore:
    """`kernel.stores.Store`. `changed` are the keys that the changelog does not know yet."""

    __slots__ = ("_keys", "_values", "changed", "is_logged", "name")

    def __init__(self, name: str, *, is_logged: bool) -> None:
        self.name = name
        self.is_logged = is_logged
        self.changed: set[bytes] = set()
        self._values: dict[bytes, Any] = {}
        self._keys: SortedKeys | None = None

    def get(self, key: bytes) -> Any:
        value = self._values.get(key)
        if value.__class__ is _Packed:
            value = self._values[key] = unpack(value)
        return value

    def put(self, key: bytes, value: Any) -> None:
        self.changed.add(key)
        if value is None:
            if self._values.pop(key, None) is not None and self._keys is not None:
                self._keys.remove(key)
            return
        if self._keys is not None and key not in self._values:
            self._keys.add(key)
        self._values[key] = value

    def range(self, first: bytes, last: bytes) -> Iterator[tuple[bytes, Any]]:
        if not self._values:
            return iter(())  # an order would have to be kept from now on
        return iter([(key, self.get(key)) for key in self._ordered().between(first, last)])

    def all(self) -> Iterator[tuple[bytes, Any]]:
        return iter([(key, self.get(key)) for key in self._ordered().all()])

    def restore(self, key: bytes, value: bytes | None) -> None:
        """A record of the changelog."""
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = _Packed(value)

    def flush(self, send: Callable[[bytes, bytes | None], None]) -> int:
        """Hands the changes to the changelog; how many there are."""
        changed, self.changed = self.changed, set()
        if not self.is_logged:
            return 0
        values = self._values
        for key in changed:
            value = values.get(key)
            if value is None:
                send(key, None)
            else:
                send(key, value if value.__class__ is _Packed else pack(value))
        return len(changed)

    def look_up(self, key: bytes) -> bytes | None:
        """For another thread than the task's: the value as the changelog has it."""
        return _as_packed(self._values.get(key))

    def look_through(self, first: bytes, last: bytes | None, limit: int) -> list[tuple[bytes, bytes]]:
        """The same, of a range; what changes meanwhile may be there as it was or as it is."""
        keys = sorted(key for key in list(self._values) if first <= key and (last is None or key < last))
        found = ((key, _as_packed(self._values.get(key))) for key in keys[:limit])
        return [(key, value) for key, value in found if value is not None]

    def close(self) -> None:
        pass

    def __len__(self) -> int:
        return len(self._values)

    def _ordered(self) -> SortedKeys:
        if self._keys is None:
            self._keys = SortedKeys(sorted(self._values))
        return self._keys


def _as_packed(value: Any) -> bytes | None:
    return value if value is None or value.__class__ is _Packed else pack(value)
