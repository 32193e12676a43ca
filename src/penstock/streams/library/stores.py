"""The rows of a table, asked by key: of a program under test, and of one that runs.

app.store("visits").get("home")                     the row of a key
app.store("visits").all()                           every key with its row
app.store("visits").range("a", "m")                 keys from "a" to "m", both included, in order
app.store("visits").fetch("home", begin, end)       the windows of a key that begin in this time
app.store("visits").behind()                        how many records, and how old, the view is behind its topic
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from penstock.streams.formats.codecs import key_codec
from penstock.streams.kernel.building import Building
from penstock.streams.kernel.needs import Needs, retention_of
from penstock.streams.kernel.partitioner import partition_of
from penstock.streams.kernel.records import Row
from penstock.streams.kernel.state_keys import TimedKeys
from penstock.streams.kernel.state_values import pack, unpack
from penstock.streams.library.failures import TopologyError
from penstock.streams.library.program import Program
from penstock.streams.library.values import milliseconds_of, plain, values_of
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import Node, Plan
from penstock.streams.plan.schema import Schema
from penstock.streams.plan.sources import Format, Formats, WindowKind


class StoredState(Protocol):
    """Where the parts of stores are."""

    def partitions(self, store: str) -> int: ...

    def get(self, store: str, partition: int, key: bytes) -> Any: ...

    def scan(
        self, store: str, partition: int, first: bytes, last: bytes | None
    ) -> Iterator[tuple[bytes, Any]]: ...


class Behind(NamedTuple):
    """`records` of the topic are not in the view yet. What it has is at least as new as the topic was `ms` ago."""

    records: int
    ms: int


class Entry(NamedTuple):
    """`window`: start and end in milliseconds, of a table with windows."""

    key: Any
    value: Any
    timestamp: int
    window: tuple[int, int] | None = None


class _Part:
    """`kernel.stores.Store`, as far as views ask it."""

    def __init__(self, state: StoredState, store: str, partition: int) -> None:
        self._state, self._store, self._partition = state, store, partition

    def get(self, key: bytes) -> Any:
        return self._state.get(self._store, self._partition, key)

    def put(self, key: bytes, value: Any) -> None:
        raise TypeError("a store is asked, and not written, from outside")

    def range(self, first: bytes, last: bytes) -> Iterator[tuple[bytes, Any]]:
        return self._state.scan(self._store, self._partition, first, last)

    def all(self) -> Iterator[tuple[bytes, Any]]:
        return self._state.scan(self._store, self._partition, b"", None)


class StoreView:
    """Keys and values are as in the program: a key of one column is its value, a value of several columns a dict."""

    def __init__(
        self, program: Program, name: str, plan: Plan, state: StoredState, key_format: Format
    ) -> None:
        self.name = name
        self._node = program.stores[name]
        self._kept = _kept_by(self._node)
        self._state = state
        self._needs = Needs(plan)
        self._schema: Schema = self._node.schema
        formats = Formats(key_format, Format("JSON"))
        self._encode = key_codec(self._schema, formats, window=None, topic="").encode
        self._views: dict[int, Callable[..., Row | None]] = {}

    def get(self, key: Any, default: Any = None) -> Any:
        """The row of a key now. A table with windows is asked by fetch()."""
        self._refuse_windows("get()")
        values = self._key(key)
        for partition in self._places(values):
            row = self._view(partition)(values, None)
            if row is not None:
                return self._entry(row).value
        return default

    def all(self) -> list[Entry]:
        """In the order of keys."""
        return self._sorted(lambda key: True)

    def _sorted(self, is_wanted: Callable[[tuple[Any, ...]], bool]) -> list[Entry]:
        found = [
            entry
            for partition in range(self._partitions())
            for entry in self._entries(partition, is_wanted=is_wanted)
        ]
        return sorted(found, key=lambda entry: (_order(entry.key), entry.window or (0, 0)))

    def range(self, first: Any = None, last: Any = None) -> list[Entry]:
        """Keys from `first` to `last`, both included; None is no bound. Every row is looked at."""
        low, high = (None if each is None else _order(each) for each in (first, last))

        def is_inside(key: tuple[Any, ...]) -> bool:
            place = _order(plain(self._schema.key, key, is_key=True))
            return (low is None or place >= low) and (high is None or place <= high)

        return self._sorted(is_inside)

    def fetch(
        self, key: Any, begin: datetime | int | None = None, end: datetime | int | None = None
    ) -> list[Entry]:
        """The windows of a key that begin from `begin` to `end`, both included, oldest first."""
        if self._node.window is None:
            raise TopologyError(f"the store {self.name} has no windows: ask get()")
        first = 0 if begin is None else _ms(begin)
        last = None if end is None else _ms(end)
        values = self._key(key)
        found: list[Entry] = []
        for partition in self._places(values):
            found = [
                entry
                for entry in self._entries(partition, values, first, last)
                if entry.window is not None
                and entry.window[0] >= first
                and (last is None or entry.window[0] <= last)
            ]
            if found:
                break
        return sorted(found, key=lambda entry: entry.window or (0, 0))

    def behind(self) -> Behind:
        """Of a program under test, nothing."""
        asked = getattr(self._state, "behind", None)
        return Behind(0, 0) if asked is None else Behind(*asked(self._kept.name))

    def __len__(self) -> int:
        return len(self.all())

    # ---------------------------------------------------------------- inside

    def _refuse_windows(self, what: str) -> None:
        if self._node.window is not None:
            raise TopologyError(
                f"the store {self.name} has windows, which {what} does not say: ask fetch(key, begin, end)"
            )

    def _key(self, key: Any) -> tuple[Any, ...]:
        values = values_of(key, self._schema.key, is_key=True)
        if values is None:
            raise TopologyError("a key is wanted")
        return values

    def _partitions(self) -> int:
        return self._state.partitions(self._kept.name)

    def _places(self, key: tuple[Any, ...]) -> list[int]:
        """Where the key belongs, then the others: whoever wrote the topic may have chosen its partitions otherwise."""
        count = self._partitions()
        data = self._encode(key)
        at = 0 if data is None or count == 1 else partition_of(data, count)
        return [at, *(each for each in range(count) if each != at)]

    def _view(self, partition: int) -> Callable[..., Row | None]:
        if partition not in self._views:
            building = Building(
                self._needs,
                partition=partition,
                store=lambda name: _Part(self._state, name, partition),
                output=_refused,
                on_error=lambda trouble: None,
                topic_names=str,
            )
            self._views[partition] = building.view(self._node)
        return self._views[partition]

    def _entries(
        self,
        partition: int,
        key: tuple[Any, ...] | None = None,
        first: int = 0,
        last: int | None = None,
        *,
        is_wanted: Callable[[tuple[Any, ...]], bool] = lambda key: True,
    ) -> Iterator[Entry]:
        """Of one key, or of those that are wanted. `first` and `last` are bounds of the times at which its windows begin."""
        view, wanted = self._view(partition), None if key is None else pack(key)
        places = self._places_of(partition, wanted, first, last) if wanted is not None else None
        if places is None:
            places = (at for at, _ in self._state.scan(self._kept.name, partition, b"", None))
        for at in places:
            found = self._parsed(at)
            if found is None or (wanted is not None and pack(found[0]) != wanted) or not is_wanted(found[0]):
                continue
            row = view(*found)
            if row is not None:
                yield self._entry(row)

    def _places_of(self, partition: int, key: bytes, first: int, last: int | None) -> Iterator[bytes] | None:
        """Where a key's windows are. None: they do not lie by time, or nobody knows how far they reach: all are looked at."""
        node, ends = self._kept, getattr(self._state, "ends", None)
        if ends is None or not isinstance(node, nodes.Aggregate) or node.window is None:
            return None
        if node.window.kind is WindowKind.SESSION:
            return None
        reach = ends(node.name, partition)
        if reach is None:
            return None
        keys = TimedKeys(retention_of(node.window, self._needs.grace_ms(node)))
        lowest, highest = (int.from_bytes(at[:8], "big") * keys.bucket_ms for at in reach)
        until = highest + keys.bucket_ms - 1
        part = _Part(self._state, node.name, partition)
        found = keys.between(part, key, max(first, lowest), until if last is None else min(last, until))
        return (at for at, _ in found)

    def _parsed(self, at: bytes) -> tuple[tuple[Any, ...], tuple[int, int] | None] | None:
        """The key and window of an entry's place; None for the kernel's own entries."""
        if len(at) < 2:
            return None
        node = self._kept
        if not isinstance(node, nodes.Aggregate) or node.window is None:
            key = unpack(at)
            if self._node.window is None:
                return tuple(key), None
            return tuple(key[0]), (key[1][0], key[1][1])
        length = int.from_bytes(at[8:12], "big")
        packed, time = at[12 : 12 + length], int.from_bytes(at[12 + length : 20 + length], "big")
        if node.window.kind is WindowKind.SESSION:
            return tuple(unpack(packed)), (unpack(at[20 + length :]), time)
        return tuple(unpack(packed)), (time, time + node.window.size_ms)

    def _entry(self, row: Row) -> Entry:
        return Entry(
            plain(self._schema.key, row.key, is_key=True),
            plain(self._schema.value, row.value, is_key=False),
            row.timestamp,
            row.window,
        )


def _kept_by(node: Node) -> Node:
    """The step whose store has the rows."""
    while isinstance(node, (nodes.Project, nodes.Filter)):
        node = node.input
    return node


def _order(key: Any) -> Any:
    return tuple(key.values()) if isinstance(key, dict) else (tuple(key) if isinstance(key, list) else key)


def _ms(moment: datetime | int) -> int:
    return milliseconds_of(moment) if isinstance(moment, datetime) else moment


def _refused(_: Any) -> None:
    raise TypeError("a view writes nothing")
