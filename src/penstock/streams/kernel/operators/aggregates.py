"""Aggregate: rows of one key become one row, which goes out anew with every row that comes.

A group's entry in the store is `[timestamp, states of the calls, carried values]`. Its timestamp is the largest of its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.streams.functions.aggregates import AggregateFunction
from penstock.streams.functions.scope import added
from penstock.streams.kernel.building import Building, Emit, View, with_value
from penstock.streams.kernel.needs import retention_of
from penstock.streams.kernel.operators.calls import Calls, Values
from penstock.streams.kernel.operators.sessions import session_aggregate
from penstock.streams.kernel.operators.sliding import sliding_aggregate
from penstock.streams.kernel.operators.user_aggregates import ProgramFailed
from penstock.streams.kernel.records import Row
from penstock.streams.kernel.state_keys import TimedKeys, row_key
from penstock.streams.kernel.state_values import pack
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import TABLE
from penstock.streams.plan.sources import Window, WindowKind


def aggregate(node: nodes.Aggregate, building: Building, emit: Emit) -> Emit:
    calls = Calls(node, building)
    if node.input.kind is TABLE:
        process = _of_table(node, building, calls, emit)
    elif node.window is None:
        process = _of_stream(node, building, calls, emit)
    elif node.window.kind is WindowKind.SESSION:
        process = session_aggregate(node, building, calls, emit)
    elif node.window.kind is WindowKind.SLIDING:
        process = sliding_aggregate(node, building, calls, emit)
    else:
        process = _in_windows(node, node.window, building, calls, emit)
    if any(call.program is not None or added(call.function, AggregateFunction) for call in node.calls):
        process = _without_failures(node, building, process)
    return _with_whole_key(process)


def _without_failures(node: nodes.Aggregate, building: Building, process: Emit) -> Emit:
    """A row that the user's function fails on is left out."""

    def checked(row: Row) -> None:
        try:
            process(row)
        except ProgramFailed as failed:
            building.trouble(node, "process", failed.__cause__, row)

    return checked


def _with_whole_key(process: Emit) -> Emit:
    """A row without key, or with a NULL in it, belongs to no group; nor does one that has neither a value nor an old one."""

    def checked(row: Row) -> None:
        if row.key is not None and None not in row.key and (row.value is not None or row.old is not None):
            process(row)

    return checked


def _of_stream(node: nodes.Aggregate, building: Building, calls: Calls, emit: Emit) -> Emit:
    store, wants_old = building.store(node.name), building.needs.wants_old(node)
    values_of, add, result, arguments = calls.values, calls.add, calls.result, calls.carried

    def process(row: Row) -> None:
        key, _, timestamp, _, _, headers, partition, offset = row
        at = pack(key)
        entry = store.get(at)
        old = None
        if entry is None:
            states = calls.initial()
        else:
            before, states, carried = entry
            if wants_old:
                old = (*carried, *result(states))
            if before > timestamp:
                timestamp = before
        values = values_of(row)
        states, carried = add(states, values, row), values[arguments:]
        store.put(at, (timestamp, states, carried))
        emit(Row(key, carried + result(states), timestamp, old, None, headers, partition, offset))

    return process


def _of_table(node: nodes.Aggregate, building: Building, calls: Calls, emit: Emit) -> Emit:
    """The old row is taken back before the new one counts. A group that lost its last row keeps its entry."""
    store = building.store(node.name)

    def process(row: Row) -> None:
        at = pack(row.key)
        entry = store.get(at)
        old, timestamp = None, row.timestamp
        states: list[Any] | None = None
        carried: Values = ()
        if entry is not None:
            before, states, carried = entry
            old, timestamp = (*carried, *calls.result(states)), max(before, row.timestamp)
            if row.old is not None:
                was = with_value(row, row.old)
                values = calls.values(was)
                states, carried = calls.remove(states, values, was), values[calls.carried :]
        if row.value is not None:
            values = calls.values(row)
            states = calls.add(calls.initial() if states is None else states, values, row)
            carried = values[calls.carried :]
        new = None if states is None else (*carried, *calls.result(states))
        store.put(at, None if states is None else (timestamp, states, carried))
        emit(Row(row.key, new, timestamp, old, None, row.headers, row.partition, row.offset))

    return process


def windows_of(window: Window) -> Callable[[int], list[tuple[int, int]]]:
    """The windows that a time lies in, oldest first."""
    size, advance = window.size_ms, window.advance_ms or window.size_ms

    def tumbling(time: int) -> list[tuple[int, int]]:
        start = time - time % size
        return [(start, start + size)]

    def hopping(time: int) -> list[tuple[int, int]]:
        first = max(0, time - size + advance) // advance * advance
        return [(start, start + size) for start in range(first, time + 1, advance)]

    return tumbling if advance == size else hopping


def _in_windows(node: nodes.Aggregate, window: Window, building: Building, calls: Calls, emit: Emit) -> Emit:
    store, wants_old = building.store(node.name), building.needs.wants_old(node)
    clock = building.clock(store)
    grace_ms = building.needs.grace_ms(node)
    keys = TimedKeys(retention_of(window, grace_ms))
    windows = windows_of(window)

    values_of, add, result, arguments = calls.values, calls.add, calls.result, calls.carried

    def process(row: Row) -> None:
        key, _, time, _, _, headers, partition, offset = row
        if time > clock.now:
            clock.now = time
            keys.forget(store, time)
        closed = clock.now - grace_ms
        packed = pack(key)
        values = values_of(row)
        carried = values[arguments:]
        for bounds in windows(time):
            if bounds[1] <= closed:
                building.trouble(node, "late", "the window has closed", row)
                continue
            at = keys.key(packed, bounds[0])
            entry = store.get(at)
            old, timestamp = None, time
            if entry is None:
                states = calls.initial()
            else:
                before, states, was = entry
                if wants_old:
                    old = (*was, *result(states))
                if before > timestamp:
                    timestamp = before
            states = add(states, values, row)
            store.put(at, (timestamp, states, carried))
            emit(Row(key, carried + result(states), timestamp, old, bounds, headers, partition, offset))

    return process


def aggregate_view(node: nodes.Aggregate, building: Building) -> View:
    store, calls = building.store(node.name), Calls(node, building)
    keys = (
        None if node.window is None else TimedKeys(retention_of(node.window, building.needs.grace_ms(node)))
    )

    def view(key: Values, window: tuple[int, int] | None) -> Row | None:
        if keys is None or window is None:
            entry = store.get(row_key(key, None))
        elif node.window is not None and node.window.kind is WindowKind.SESSION:
            entry = store.get(keys.key(pack(key), window[1], pack(window[0])))
        else:
            entry = store.get(keys.key(pack(key), window[0]))
        if entry is None:
            return None
        timestamp, states, carried = entry
        return Row(key, (*carried, *calls.result(states)), timestamp, None, window)

    return view
