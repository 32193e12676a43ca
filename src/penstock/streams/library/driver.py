"""A program in this process, without brokers: what TopologyTestDriver is for Kafka Streams.

    with app.test() as test:
        test.pipe("clicks", key="ann", value={"page": "home", "ms": 120}, timestamp=1000)
        assert test.values("visits") == [{"count": 1}]

A record and everything that follows from it are worked off before `pipe` comes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, NamedTuple, Self

from penstock.streams.formats.codecs import key_codec, value_codec
from penstock.streams.kernel.driver import Driver
from penstock.streams.kernel.operators.reading import without_headers
from penstock.streams.kernel.records import Headers, InputRecord
from penstock.streams.kernel.task import Trouble
from penstock.streams.library.failures import unknown
from penstock.streams.library.program import Program
from penstock.streams.library.stores import StoreView
from penstock.streams.library.values import BadValue, milliseconds_of, plain, values_of
from penstock.streams.library.windows import Duration, duration_ms
from penstock.streams.plan.schema import Schema
from penstock.streams.plan.sources import Formats, Window
from penstock.streams.schema_memory import MemoryRegistry


class Record(NamedTuple):
    """`window`: start and end in milliseconds, where the topic's keys are windowed."""

    key: Any
    value: Any
    timestamp: int
    window: tuple[int, int] | None
    headers: Headers
    partition: int


class TestDriver:
    """`partitions` of topics: one number for all, or by topic (else 1)."""

    __test__ = False  # for pytest

    def __init__(self, program: Program, *, partitions: int | Mapping[str, int] = 1) -> None:
        self._program = program
        self._plan = program.plan()
        self._registry = MemoryRegistry()
        self.driver = Driver(self._plan, partitions=partitions, registry=self._registry)
        self._seen: dict[str, int] = {}
        self._now = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def pipe(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        timestamp: datetime | int | None = None,
        headers: Mapping[str, bytes] | Headers = (),
        partition: int | None = None,
        window: tuple[int, int] | None = None,
    ) -> None:
        """A record of a topic that is read, as Python values, or as bytes that are taken as they are. Without a
        `timestamp` it is a
        millisecond younger than the one before."""
        source = self._program.source(topic)
        at = self._now + 1 if timestamp is None else _ms(timestamp)
        self._now = max(self._now, at)
        schema = without_headers(source.schema)
        is_raw = isinstance(value, bytes) and not _is_bytes(schema)
        if is_raw:
            data: bytes | None = value
        else:
            values = _fitting(value, schema, is_key=False)
            data = value_codec(schema, source.formats, topic=topic, registry=self._registry).encode(values)
        if isinstance(key, bytes) and [column.type.kind.value for column in schema.key] != ["BYTES"]:
            key_data: bytes | None = key
        else:
            keys = _fitting(key, schema, is_key=True)
            codec = key_codec(
                schema, source.formats, window=source.window, topic=topic, registry=self._registry
            )
            key_data = codec.encode(keys, window)
        given: Headers = tuple(headers.items()) if isinstance(headers, Mapping) else tuple(headers)
        self.driver.pipe(topic, key=key_data, value=data, timestamp=at, headers=given, partition=partition)

    def advance_wall_clock(self, by: Duration) -> None:
        """Timers by the wall clock that are due are called, each once. Without this the clock stands still."""
        self.driver.advance_wall_clock(duration_ms(by, "the time"))

    def read(self, topic: str) -> list[Record]:
        """Records of a topic that is written, since the last call."""
        sink = self._program.sink(topic)
        found = self.driver.outputs(topic)
        begin, self._seen[topic] = self._seen.get(topic, 0), len(found)
        return [self._record(each, sink.schema, sink.formats, sink.window) for each in found[begin:]]

    def values(self, topic: str) -> list[Any]:
        """Only the values."""
        return [record.value for record in self.read(topic)]

    def table(self, topic: str) -> dict[Any, Any]:
        """What a table of the topic has now: the newest value of each key, deleted ones left out. A windowed key stands with its
        window's start, a key of several columns as a tuple of them. What `read` gives stays the same."""
        sink = self._program.sink(topic)
        newest: dict[Any, Any] = {}
        for each in self.driver.outputs(topic):
            record = self._record(each, sink.schema, sink.formats, sink.window)
            key = tuple(record.key.values()) if isinstance(record.key, dict) else record.key
            place = key if record.window is None else (key, record.window[0])
            newest.pop(place, None)
            if record.value is not None:
                newest[place] = record.value
        return newest

    @property
    def troubles(self) -> list[Trouble]:
        """Records and rows that were left out, and why. Those that came too late for their windows are of kind "late"."""
        return self.driver.troubles

    def store(self, name: str) -> StoreView:
        return view_of(self._program, name, self._plan, _Stores(self.driver))

    def restart(self) -> None:
        """The program ends and comes back with what its stores hold."""
        self.driver.restart()

    def _record(self, each: InputRecord, schema: Schema, formats: Formats, window: Window | None) -> Record:
        keys, bounds = key_codec(
            schema, formats, window=window, topic=each.topic, registry=self._registry
        ).decode(each.key)
        values = value_codec(schema, formats, topic=each.topic, registry=self._registry).decode(each.value)
        return Record(
            plain(schema.key, keys, is_key=True),
            plain(schema.value, values, is_key=False),
            each.timestamp,
            bounds,
            each.headers,
            each.partition,
        )


def view_of(program: Program, name: str, plan: Any, state: Any) -> StoreView:
    if name not in program.stores:
        raise unknown("store", name, program.stores)
    return StoreView(program, name, plan, state, program.store_formats[name])


class _Stores:
    """`StoredState` of a driver."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def partitions(self, store: str) -> int:
        return len(self._driver.stores(store))

    def get(self, store: str, partition: int, key: bytes) -> Any:
        return self._driver.stores(store)[partition].get(key)

    def scan(
        self, store: str, partition: int, first: bytes, last: bytes | None
    ) -> Iterator[tuple[bytes, Any]]:
        part = self._driver.stores(store)[partition]
        return part.all() if last is None else part.range(first, last)


def _fitting(given: Any, schema: Schema, *, is_key: bool) -> tuple[Any, ...] | None:
    columns = schema.key if is_key else schema.value
    if given is not None and not columns:
        raise BadValue(f"the topic is declared without a {'key' if is_key else 'value'}")
    return values_of(given, columns, is_key=is_key)


def _is_bytes(schema: Schema) -> bool:
    return len(schema.value) == 1 and schema.value[0].type.kind.value == "BYTES"


def _ms(moment: datetime | int) -> int:
    return milliseconds_of(moment) if isinstance(moment, datetime) else moment
