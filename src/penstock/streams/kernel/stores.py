"""Where the kernel keeps state. Keys are bytes, and their order is the order of `range`; values are what `msgpack` can
carry, plus Decimal
(`state_values`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """`name` is unique in the plan. `retention_ms`: entries whose keys' time is older may go (windows); 0: they stay."""

    name: str
    retention_ms: int = 0
    is_logged: bool = True  # False: it can be read again from its source topic (`source_topic`)
    source_topic: str | None = None


class Store(Protocol):
    """Of one task. Whatever `get` and `range` give must not be changed by the caller."""

    def get(self, key: bytes) -> Any: ...

    def put(self, key: bytes, value: Any) -> None:
        """None deletes."""

    def range(self, first: bytes, last: bytes) -> Iterator[tuple[bytes, Any]]:
        """In the order of keys, `first` included, `last` not. Changes during the walk are allowed, and not seen by it."""

    def all(self) -> Iterator[tuple[bytes, Any]]: ...
