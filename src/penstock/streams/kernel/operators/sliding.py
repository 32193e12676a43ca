"""Aggregate over sliding windows: rows of a key that lie no farther apart than `size_ms` are in a window together.

A window holds the times from its start to start + size, both included. For each row at time t there is the window that ends
with it, [t - size, t], and the one behind it, [t + 1, t + 1 + size], as soon as that has a row. No window begins before 0: rows
earlier than `size_ms` share the window [0, size]. These are the windows of Kafka Streams.

    size 10, rows at 5, 12, 14      [0, 10]: 5    [2, 12]: 5, 12    [4, 14]: 5, 12, 14    [6, 16]: 12, 14    [13, 23]: 14

An entry is `[largest time of its rows, states, carried values]`, kept under the start. What a new window holds is known from the
windows around it: no row is kept.
"""

from __future__ import annotations

from typing import Any

from penstock.streams.kernel.building import Building, Emit
from penstock.streams.kernel.needs import retention_of
from penstock.streams.kernel.operators.calls import Calls
from penstock.streams.kernel.records import Row
from penstock.streams.kernel.state_keys import TimedKeys
from penstock.streams.kernel.state_values import pack
from penstock.streams.plan import nodes

Entry = Any
"""Time, states, carried."""


class Around:
    """The windows of a key that a row at `time` touches or may need, from two sizes before it to the one behind it."""

    def __init__(self, windows: list[tuple[int, Entry]], time: int, size: int) -> None:
        self.starts = {start for start, _ in windows}
        self.touched: list[tuple[int, Entry]] = []
        self.has_right = time + 1 in self.starts
        self.before: Entry = None  # the last window that ended before the row
        self.right: Entry = None  # whose rows behind `time` are those of the window behind the row
        self.previous: int | None = None  # when the last row before this one was
        is_early = time < size
        for start, entry in windows:
            if start > time:
                continue
            if start + size < time:
                self.before, self.previous = entry, entry[0]
                continue
            self.touched.append((start, entry))
            is_left = start == 0 if is_early else start + size == time
            if is_left and entry[0] < time:
                self.previous = entry[0]
            if not is_left or (is_early and self.right is None and entry[0] > time):
                self.right = entry
        self.left = max(time - size, 0)

    def is_right_missing(self, time: int) -> bool:
        return not self.has_right and self.right is not None and self.right[0] > time

    def is_missing_behind_previous(self, time: int, size: int) -> bool:
        previous = self.previous
        return previous is not None and previous + 1 not in self.starts and previous + 1 + size >= time


def sliding_aggregate(node: nodes.Aggregate, building: Building, calls: Calls, emit: Emit) -> Emit:
    assert node.window is not None
    size, grace_ms = node.window.size_ms, building.needs.grace_ms(node)
    store, wants_old = building.store(node.name), building.needs.wants_old(node)
    clock = building.clock(store)
    keys = TimedKeys(retention_of(node.window, grace_ms))

    def put(row: Row, packed: bytes, start: int, before: Entry, after: Entry) -> None:
        time, states, carried = after
        old = (*before[2], *calls.result(before[1])) if wants_old and before is not None else None
        store.put(keys.key(packed, start), after)
        value = (*carried, *calls.result(states))
        emit(Row(row.key, value, time, old, (start, start + size), *row[5:]))

    def process(row: Row) -> None:
        time = row.timestamp
        if time > clock.now:
            clock.now = time
            keys.forget(store, time)
        closed = clock.now - grace_ms
        if time + size < closed:
            building.trouble(node, "late", "the windows have closed", row)
            return
        packed, values = pack(row.key), calls.values(row)
        carried = values[calls.carried :]
        at = 12 + len(packed)
        windows = [
            (int.from_bytes(key[at : at + 8], "big"), entry)
            for key, entry in keys.between(store, packed, max(time - 2 * size, 0), time + 1)
        ]
        around = Around(windows, time, size)

        def add(start: int, before: Entry, base: Entry) -> None:
            if start + size < closed:
                building.trouble(node, "late", "the window has closed", row)
                return
            latest = time if base is None else max(base[0], time)
            states = calls.add(calls.initial() if base is None else base[1], values, row)
            put(row, packed, start, before, (latest, states, carried))

        for start, entry in around.touched:
            add(start, entry, entry)
        if around.is_missing_behind_previous(time, size):
            assert around.previous is not None
            add(around.previous + 1, None, None)
        if around.left not in around.starts:
            is_near = around.previous is not None and around.previous >= around.left
            add(around.left, None, around.before if is_near else None)
        if around.is_right_missing(time):
            put(row, packed, time + 1, None, around.right)

    return process
