"""What goes in and out of the kernel, and between its steps."""

from __future__ import annotations

from typing import Any, NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]


class InputRecord(NamedTuple):
    """A record of a topic as it stands there."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class OutputRecord(NamedTuple):
    """`partition` None: by the key, as Kafka's default partitioner (murmur2) chooses it."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()
    partition: int | None = None


class Row(NamedTuple):
    """Between steps. `key` None: no key; a key column may be None besides. `value` None: NULL, and a tombstone of a
    table. `old` is the
    table's row before, where the step is a table's and knows it. `window`: start and end, where the key is windowed."""

    key: tuple[Any, ...] | None
    value: tuple[Any, ...] | None
    timestamp: int
    old: tuple[Any, ...] | None = None
    window: tuple[int, int] | None = None
    headers: Headers = ()
    partition: int = 0
    offset: int = 0
