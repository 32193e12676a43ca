"""What the steps of one task are made with, and the views that joins look rows up in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from penstock.streams.formats.codecs import key_codec, value_codec
from penstock.streams.formats.failures import SchemasUnavailable
from penstock.streams.kernel.compiling import compile_items, compile_predicate
from penstock.streams.kernel.needs import Needs
from penstock.streams.kernel.records import InputRecord, OutputRecord, Row
from penstock.streams.kernel.state_keys import OWN, StreamTime, row_key
from penstock.streams.kernel.stores import Store
from penstock.streams.kernel.task import OnError, Trouble
from penstock.streams.plan import nodes
from penstock.streams.plan.expressions import Expression
from penstock.streams.plan.nodes import Node
from penstock.streams.plan.schema import Schema
from penstock.streams.plan.sources import Formats, Window

Emit = Callable[[Row], None]
View = Callable[[tuple[Any, ...], tuple[int, int] | None], Row | None]
Entry = Callable[[InputRecord], None]


class KeyCodec(Protocol):
    def encode(self, key: tuple[Any, ...] | None, window: tuple[int, int] | None) -> bytes | None: ...

    def decode(self, data: bytes | None) -> tuple[tuple[Any, ...] | None, tuple[int, int] | None]: ...


class ValueCodec(Protocol):
    def encode(self, value: tuple[Any, ...] | None) -> bytes | None: ...

    def decode(self, data: bytes | None) -> tuple[Any, ...] | None: ...


class Timed(Protocol):
    """A step with timers by the wall clock."""

    def due_ms(self) -> int | None: ...

    def punctuate(self, now_ms: int) -> None: ...


class Building:
    """Of one task. Steps ask it for their stores, codecs and compiled expressions; it knows the way outside."""

    def __init__(
        self,
        needs: Needs,
        *,
        partition: int,
        store: Callable[[str], Store],
        output: Callable[[OutputRecord], None],
        on_error: OnError,
        topic_names: Callable[[str], str],
        registry: Any = None,
        stream_time: int = -1,
        properties: Iterable[tuple[str, str]] = (),
        deliver: Callable[[Row], None] | None = None,
    ) -> None:
        self.needs = needs
        self.partition = partition
        self.store = store
        self.output = output
        self.on_error = on_error
        self.topic_name = topic_names
        self.registry = registry
        self.properties = tuple(properties)
        self.deliver = deliver
        self.stream_time = stream_time  # of the task: the largest timestamp read
        self.entries: dict[str, list[Entry]] = {}  # topics as they are named outside
        self.restores: dict[str, list[Entry]] = {}
        self.clocks: list[StreamTime] = []
        self.views: dict[str, View] = {}
        self.timed: list[Timed] = []

    def entry(self, topic: str, entry: Entry) -> None:
        self.entries.setdefault(topic, []).append(entry)

    def clock(self, store: Store) -> StreamTime:
        return self.clock_at(store, OWN)

    def clock_at(self, store: Store, key: bytes) -> StreamTime:
        """A stream time that the store keeps under a key shorter than those of its rows."""
        clock = StreamTime(store, key)
        self.clocks.append(clock)
        return clock

    def trouble(self, node: Node, kind: str, error: Any, record: Any) -> None:
        """One record is left out. When the schema registry does not answer, that is no fault of the record: the task fails."""
        if isinstance(error, SchemasUnavailable):
            raise error
        self.on_error(Trouble(node.name, kind, error, record))

    def items(
        self, node: Node, items: tuple[Expression, ...], schema: Schema
    ) -> Callable[[Row], tuple[Any, ...]]:
        return compile_items(items, schema, on_error=self._told(node, is_left_out=False))

    def predicate(self, node: Node, predicate: Expression, schema: Schema) -> Callable[[Row], bool]:
        return compile_predicate(predicate, schema, on_error=self._told(node, is_left_out=True))

    def key_codec(self, schema: Schema, formats: Formats, window: Window | None, topic: str) -> KeyCodec:
        codec: KeyCodec = key_codec(schema, formats, window=window, topic=topic, registry=self.registry)
        return codec

    def value_codec(self, schema: Schema, formats: Formats, topic: str) -> ValueCodec:
        codec: ValueCodec = value_codec(schema, formats, topic=topic, registry=self.registry)
        return codec

    def view(self, node: Node) -> View:
        """Rows of a table by key, as they are now."""
        found = self.views.get(node.name)
        if found is None:
            found = self.views[node.name] = self._make_view(node)
        return found

    def _make_view(self, node: Node) -> View:
        match node:
            case nodes.Filter():
                return filtered_view(
                    self.view(node.input), self.predicate(node, node.predicate, node.input.schema)
                )
            case nodes.Project():
                return projected_view(self.view(node.input), self.items(node, node.items, node.input.schema))
            case nodes.TableTableJoin():
                from penstock.streams.kernel.operators.table_joins import joined_view

                return joined_view(node, self.view(node.left), self.view(node.right))
            case nodes.Aggregate():
                from penstock.streams.kernel.operators.aggregates import aggregate_view

                return aggregate_view(node, self)
            case _:
                return stored_view(self.store(node.name))

    def _told(self, node: Node, *, is_left_out: bool) -> Callable[[Expression, Row, Exception], None]:
        def told(expression: Expression, row: Row, error: Exception) -> None:
            self.on_error(Trouble(node.name, "expression", error, row, is_left_out))

        return told


def stored_view(store: Store) -> View:
    def view(key: tuple[Any, ...], window: tuple[int, int] | None) -> Row | None:
        entry = store.get(row_key(key, window))
        if entry is None:
            return None
        value, timestamp, partition, offset = entry
        return Row(key, tuple(value), timestamp, None, window, (), partition, offset)

    return view


def filtered_view(inner: View, predicate: Callable[[Row], bool]) -> View:
    def view(key: tuple[Any, ...], window: tuple[int, int] | None) -> Row | None:
        row = inner(key, window)
        return row if row is not None and predicate(row) else None

    return view


def projected_view(inner: View, items: Callable[[Row], tuple[Any, ...]]) -> View:
    def view(key: tuple[Any, ...], window: tuple[int, int] | None) -> Row | None:
        row = inner(key, window)
        return None if row is None else with_value(row, items(row))

    return view


def with_value(row: Row, value: tuple[Any, ...] | None, old: tuple[Any, ...] | None = None) -> Row:
    return Row(row.key, value, row.timestamp, old, row.window, row.headers, row.partition, row.offset)


def kept(store: Store, emit: Emit, *, give_old: bool) -> Emit:
    """Keeps a table's newest rows. `give_old`: the row before is looked up in the store and goes with the change."""

    def process(row: Row) -> None:
        assert row.key is not None
        at = row_key(row.key, row.window)
        old = row.old
        if give_old:
            before = store.get(at)
            old = tuple(before[0]) if before is not None else None
        value = row.value
        store.put(at, None if value is None else (value, row.timestamp, row.partition, row.offset))
        emit(with_value(row, value, old) if give_old else row)

    return process
