"""Suppress: of each window only its last row, when stream time has passed the window's end and grace.

A waiting row is kept under  end (8 bytes), packed key and window.  Windows close in the order of their ends.
"""

from __future__ import annotations

from penstock.streams.kernel.building import Building, Emit, kept
from penstock.streams.kernel.records import Row
from penstock.streams.kernel.state_keys import FIRST, row_key, time_bytes
from penstock.streams.plan import nodes
from penstock.streams.plan.sources import WindowKind


def waiting_store(node: nodes.Suppress) -> str:
    return f"{node.name}-waiting"


def suppress(node: nodes.Suppress, building: Building, emit: Emit) -> Emit:
    store = building.store(waiting_store(node))
    clock = building.clock(store)
    waits_ms = building.needs.grace_ms(node)
    if node.window is not None and node.window.kind is WindowKind.SESSION:
        waits_ms += node.window.size_ms + 1  # a row a gap behind the last one still belongs to the session
    elif node.window is not None and node.window.kind is WindowKind.SLIDING:
        waits_ms += 1  # the end belongs to the window
    if building.needs.wants_store(node):
        emit = kept(building.store(node.name), emit, give_old=building.needs.wants_old(node))

    def process(row: Row) -> None:
        assert row.key is not None
        assert row.window is not None
        at = time_bytes(row.window[1]) + row_key(row.key, row.window)
        waits = None if row.value is None else (row.key, row.window, row.value, row.timestamp)
        store.put(at, waits)  # a session that became part of another has nothing to say
        if row.timestamp <= clock.now:
            return
        clock.now = row.timestamp
        for key, (of, window, value, timestamp) in list(
            store.range(FIRST, time_bytes(max(clock.now - waits_ms + 1, 0)))
        ):
            store.put(key, None)
            emit(Row(tuple(of), tuple(value), timestamp, None, (window[0], window[1])))

    return process
