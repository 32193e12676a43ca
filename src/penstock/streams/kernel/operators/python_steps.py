"""PythonStep and PythonProcessor: functions and programs of the user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.streams.kernel.building import Building, Emit, with_value
from penstock.streams.kernel.operators.user_aggregates import plain_key, row_dict
from penstock.streams.kernel.records import Row
from penstock.streams.kernel.state_values import pack, unpack
from penstock.streams.kernel.stores import Store
from penstock.streams.plan import nodes


def python_step(node: nodes.PythonStep, building: Building, emit: Emit) -> Emit:
    schema, function = node.input.schema, node.function
    keeps_window = not node.changes_key or node.window is not None

    def process(row: Row) -> None:
        if row.value is None and not node.takes_null:
            if not node.changes_key:
                emit(row)
            return
        try:
            given = function(row_dict(row, schema))
            rows = [] if node.gives == "nothing" else list(given)
        except Exception as error:  # the user's function may raise what it likes
            building.trouble(node, "process", error, row)
            return
        if node.gives == "nothing":
            emit(row)
            return
        for key, value in rows:
            new_key = row.key if not node.changes_key else (None if key is None else tuple(key))
            emit(
                Row(
                    new_key,
                    None if value is None else tuple(value),
                    row.timestamp,
                    None,
                    row.window if keeps_window else None,
                    *row[5:],
                )
            )

    return process


class UserStore:
    """A processor's store: keys and values are what a program has at hand."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, key: Any, default: Any = None) -> Any:
        found = self._store.get(pack([key]))
        return default if found is None else found

    def put(self, key: Any, value: Any) -> None:
        """None deletes."""
        self._store.put(pack([key]), value)

    def delete(self, key: Any) -> None:
        self._store.put(pack([key]), None)

    def all(self) -> Iterator[tuple[Any, Any]]:
        for key, value in self._store.all():
            if key:  # the empty key is the kernel's own
                yield unpack(key)[0], value


class Timer:
    """Calls back when its clock has gone on by `interval_ms`; once, if that was several times as much."""

    def __init__(self, interval_ms: int, callback: Any) -> None:
        self.interval_ms, self.callback, self.due = interval_ms, callback, -1

    def tick(self, now: int) -> bool:
        """Whether it was due. At the first tick it is set."""
        if self.due < 0:
            self.due = now + self.interval_ms
            return False
        if now < self.due:
            return False
        self.due = now - (now - self.due) % self.interval_ms + self.interval_ms
        self.callback(now)
        return True


class ProcessorContext:
    """What a processor is given: its stores, its timers, and the way on."""

    def __init__(self, node: nodes.PythonProcessor, building: Building, emit: Emit) -> None:
        self._stores = {name: UserStore(building.store(f"{node.name}-{name}")) for name in node.stores}
        self._emit = emit
        self._waiting: list[Row] = []
        self._timers: list[Timer] = []
        self._wall_timers: list[Timer] = []
        self._node, self._building = node, building
        self.row: Row | None = None
        self.partition = building.partition

    def store(self, name: str) -> UserStore:
        return self._stores[name]

    def forward(self, key: Any, value: tuple[Any, ...] | None, timestamp: int | None = None) -> None:
        """The row goes on when the call has come back, and not when it fails."""
        row = self.row if self.row is not None else Row(None, None, 0)
        whole = None if key is None else key if isinstance(key, tuple) else (key,)
        at = row.timestamp if timestamp is None else timestamp
        self._waiting.append(Row(whole, value, at, None, None, row.headers, row.partition, row.offset))

    def release(self, *, failed: bool = False) -> None:
        rows, self._waiting = self._waiting, []
        if not failed:
            for row in rows:
                self._emit(row)

    def schedule(self, interval_ms: int, callback: Any, *, by_wall_clock: bool = False) -> None:
        """`callback(now)` each time that stream time, or the clock of whoever runs the task, has passed so many milliseconds."""
        (self._wall_timers if by_wall_clock else self._timers).append(Timer(interval_ms, callback))

    def tick(self, stream_time: int) -> None:
        for timer in self._timers:
            timer.tick(stream_time)

    def due_ms(self) -> int | None:
        """When the next timer by the wall clock is due; None: there is none."""
        return min((timer.due for timer in self._wall_timers), default=None)

    def punctuate(self, now_ms: int) -> None:
        """No row is at hand: what a callback forwards has the time of the clock, if it gives no other."""
        before, self.row = self.row, Row(None, None, now_ms, partition=self.partition, offset=-1)
        for timer in self._wall_timers:
            try:
                timer.tick(now_ms)
            except Exception as error:  # the user's program may raise what it likes
                self.release(failed=True)
                self._building.trouble(self._node, "process", error, None)
            else:
                self.release()
        self.row = before

    @property
    def headers(self) -> Any:
        return () if self.row is None else self.row.headers

    @property
    def timestamp(self) -> int:
        return -1 if self.row is None else self.row.timestamp


def python_processor(node: nodes.PythonProcessor, building: Building, emit: Emit) -> Emit:
    schema = node.input.schema
    context, processor = ProcessorContext(node, building, emit), node.make()
    building.timed.append(context)
    if hasattr(processor, "init"):
        processor.init(context)

    def process(row: Row) -> None:
        context.row = row
        try:
            given = row_dict(row, schema)
            given["KEY"] = plain_key(row.key)
            processor.process(given, context)
            context.tick(building.stream_time)
        except Exception as error:  # the user's program may raise what it likes
            context.release(failed=True)
            building.trouble(node, "process", error, row)
        else:
            context.release()

    return process


def deliver(node: nodes.Deliver, building: Building) -> Emit:
    give = building.deliver
    assert give is not None, "a plan that delivers its rows is run with somebody who takes them"

    def process(row: Row) -> None:
        give(with_value(row, row.value, row.old))

    return process
