"""Pull queries: the answer as it is now, and then the end.

Any SELECT is answered. What looks up rows of a table takes them from the table's view: by key where WHERE names keys, by a range,
or all. Everything else (streams, joins, aggregates, windows, table functions) is run by the kernel over the topics up to where
they end now. It gives what the same query with EMIT CHANGES would have given by then: the rows of a stream, the newest row of
each key of a table.

Memory is bounded: rows are given as they come, and a query whose state grows beyond `max_entries` is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, Protocol

from penstock.client.clients import Connection
from penstock.client.errors import UserError
from penstock.sql.analysis.pull_shapes import AS_IT_IS
from penstock.sql.analysis.pulling import Lookup, PlannedPull
from penstock.sql.engine.finishing import finished, hashable
from penstock.sql.engine.topic_reading import TopicReader
from penstock.sql.engine.view_store import FIRST, LAST
from penstock.streams.formats.codecs import value_codec
from penstock.streams.formats.registry import SchemaLookup
from penstock.streams.kernel.compiling import compile_items, compile_predicate
from penstock.streams.kernel.driver import Driver
from penstock.streams.kernel.records import InputRecord, Row
from penstock.streams.kernel.task import OnError
from penstock.streams.plan.nodes import TABLE, Deliver, Node, Plan, Read
from penstock.streams.plan.sources import Source

MAX_ENTRIES: Final = 1_000_000
CHECK_EVERY: Final = 1000
"""Records between two looks at how much a query keeps."""
READY_TIMEOUT_S: Final = 30.0

Columns = tuple[Any, ...]
ShouldStop = Callable[[], bool]


def _never() -> bool:
    return False


class View(Protocol):
    """`views.TableView`."""

    def wait_ready(self, timeout_s: float) -> None: ...
    def windows(self, key: tuple[Any, ...], first_start: int, last_start: int) -> list[Row]: ...
    def range(self, low: tuple[Any, ...] | None, high: tuple[Any, ...] | None) -> Iterator[Row]: ...


class QueryTooLarge(UserError):
    """It would take more memory than one query may have."""


@dataclass(frozen=True, slots=True)
class PullQueries:
    """`view_of` gives the view of a table, and None where there is none. One object answers for any number of threads."""

    connection: Connection
    view_of: Callable[[Source], View | None]
    registry: SchemaLookup | None = None
    max_entries: int = MAX_ENTRIES
    on_error: OnError | None = None

    def rows(
        self, planned: PlannedPull, *, should_stop: ShouldStop = _never
    ) -> Generator[Columns, None, None]:
        """The columns of each row, as the header has them. UserError, and `topic_reading.Stopped` when `should_stop` says so.
        Close it when the rest is not wanted."""
        left = planned.limit
        if left == 0:
            return
        found = self._found(planned, should_stop)
        try:
            for row in found:
                yield row
                if left is not None:
                    left -= 1
                    if not left:
                        return
        finally:
            found.close()

    def _found(self, planned: PlannedPull, should_stop: ShouldStop) -> Generator[Columns, None, None]:
        inner = dict(planned.inner)
        if planned.lookup is not None:
            found = self._looked_up(planned.lookup, inner, should_stop)
        else:
            assert planned.plan is not None
            found = _picked(self._run(planned.plan.node, inner, should_stop), planned.plan.columns)
        if planned.finish == AS_IT_IS:
            return found
        columns = planned.all_columns().value
        return finished(found, planned.finish, columns, bound=self.max_entries, too_large=self._too_large)

    def _looked_up(
        self, lookup: Lookup, inner: Mapping[str, PlannedPull], should_stop: ShouldStop
    ) -> Generator[Columns, None, None]:
        source = lookup.source
        project = compile_items(lookup.items, source.schema)
        holds = None if lookup.predicate is None else compile_predicate(lookup.predicate, source.schema)
        view = self.view_of(source) if source.kind is TABLE else None
        if view is None:
            read = Read(
                name="read", schema=source.schema, kind=source.kind, window=source.window, source=source
            )
            rows: Iterable[Row] = self._run(read, inner, should_stop)
        else:
            view.wait_ready(READY_TIMEOUT_S)
            rows = _of_view(lookup, view)
        try:
            for row in rows:
                if holds is None or holds(row):
                    yield project(row)
        finally:
            if isinstance(rows, Generator):
                rows.close()

    def _run(
        self, node: Node, inner: Mapping[str, PlannedPull], should_stop: ShouldStop
    ) -> Generator[Row, None, None]:
        """By the kernel, over the topics, and then over the rows of the queries in FROM."""
        sink = node if isinstance(node, Deliver) else _delivered(node)
        reads = [each.source for each in Plan((sink,)).nodes() if isinstance(each, Read)]
        topics = sorted({each.topic for each in reads if each.topic not in inner})
        reader: TopicReader | NoTopics = (
            TopicReader(self.connection, topics, should_stop=should_stop) if topics else NoTopics()
        )
        try:
            driver = Driver(
                Plan((sink,)),
                partitions={**reader.partitions, **dict.fromkeys(inner, 1)},
                registry=self.registry,
                on_error=self.on_error or _forget,
                on_output=_forget,
            )
            has_state = any(part.stores for part in driver.subtopologies)
            records = reader.merged() if has_state or len(topics) > 1 else reader.unordered()
            if inner:
                records = chain(records, *(self._records(each, inner, should_stop) for each in _once(reads)))
            if sink.kind is TABLE:
                yield from self._newest(driver, records)
            else:
                yield from self._all(driver, records)
        finally:
            reader.close()

    def _records(
        self, source: Source, inner: Mapping[str, PlannedPull], should_stop: ShouldStop
    ) -> Iterator[InputRecord]:
        planned = inner.get(source.topic)
        if planned is None:
            return
        encode = value_codec(source.schema, source.formats, topic=source.topic).encode
        now_ms = int(time.time() * 1000)
        for number, row in enumerate(self.rows(planned, should_stop=should_stop)):
            yield InputRecord(source.topic, 0, number, now_ms, None, encode(row))

    def _too_large(self) -> QueryTooLarge:
        return QueryTooLarge(
            f"The query keeps more than {self.max_entries:,} rows in memory (ksql.query.pull.max.rows). "
            "Make a table of it (CREATE TABLE … AS SELECT …), and query that."
        )

    def _all(self, driver: Driver, records: Iterator[InputRecord]) -> Iterator[Row]:
        for number, record in enumerate(records):
            driver.process(record)
            if driver.delivered:
                yield from [row for row in driver.delivered if row.value is not None]
                driver.delivered.clear()
            if number % CHECK_EVERY == 0:
                self._check(driver, 0)

    def _newest(self, driver: Driver, records: Iterator[InputRecord]) -> Iterator[Row]:
        newest: dict[Any, Row] = {}
        for number, record in enumerate(records):
            driver.process(record)
            for row in driver.delivered:
                place: Any = row.key, row.window
                try:
                    hash(place)
                except TypeError:  # arrays and structs
                    place = hashable(place)
                newest.pop(place, None)
                if row.value is not None:
                    newest[place] = row
            driver.delivered.clear()
            if number % CHECK_EVERY == 0:
                self._check(driver, len(newest))
        yield from newest.values()

    def _check(self, driver: Driver, more: int) -> None:
        kept = more + sum(
            len(store)
            for part in driver.subtopologies
            for spec in part.stores
            for store in driver.stores(spec.name).values()
        )
        if kept > self.max_entries:
            raise self._too_large()


def _of_view(lookup: Lookup, view: View) -> Generator[Row, None, None]:
    """All that may match, and more."""
    if lookup.keys is None:
        low, high = lookup.key_range or (None, None)
        yield from view.range(None if low is None else (low,), None if high is None else (high,))
        return
    first = FIRST if lookup.starts.least is None else lookup.starts.least
    last = LAST if lookup.starts.most is None else lookup.starts.most
    for key in lookup.keys:
        yield from view.windows(key, first, last)


def _delivered(node: Node) -> Deliver:
    return Deliver(
        name=f"{node.name}-pull", schema=node.schema, kind=node.kind, window=node.window, input=node
    )


def _picked(
    rows: Generator[Row, None, None], columns: Sequence[tuple[str, bool, int]]
) -> Generator[Columns, None, None]:
    """By whether a column is one of the key's, and its place there."""
    places = [(is_key, place) for _, is_key, place in columns]
    try:
        for row in rows:
            key, value = row.key or (), row.value or ()
            yield tuple(
                [
                    (key[place] if place < len(key) else None) if is_key else value[place]
                    for is_key, place in places
                ]
            )
    finally:
        rows.close()


class NoTopics:
    """In the place of a `TopicReader`: all rows are of queries in FROM."""

    partitions: Final[Mapping[str, int]] = MappingProxyType({})

    def merged(self) -> Iterator[InputRecord]:
        return iter(())

    unordered = merged

    def close(self) -> None: ...


def _once(sources: Iterable[Source]) -> list[Source]:
    return list({each.topic: each for each in sources}.values())


def _forget(what: Any) -> None:
    """No query writes to a topic here, and what was left out is kept for nobody."""
