"""Aggregate over session windows: rows of a key that lie no farther apart than the gap are one session.

A row may make a session longer, or join several. The sessions that it swallows go as tombstones, also when the new one has the
same
bounds. Sessions are kept under their end:  end, then start.
"""

from __future__ import annotations

from typing import Any

from penstock.streams.kernel.building import Building, Emit
from penstock.streams.kernel.needs import retention_of
from penstock.streams.kernel.operators.calls import Calls
from penstock.streams.kernel.records import Row
from penstock.streams.kernel.state_keys import TimedKeys
from penstock.streams.kernel.state_values import pack, unpack
from penstock.streams.plan import nodes


def session_aggregate(node: nodes.Aggregate, building: Building, calls: Calls, emit: Emit) -> Emit:
    assert node.window is not None
    gap, grace_ms = node.window.size_ms, building.needs.grace_ms(node)
    store, wants_old = building.store(node.name), building.needs.wants_old(node)
    clock = building.clock(store)
    keys = TimedKeys(retention_of(node.window, grace_ms))

    def touched(key: bytes, time: int, now: int) -> list[tuple[bytes, int, int, Any]]:
        """Sessions that end no earlier than a gap before the row and begin no later than a gap after it. Those that were out
        of their retention when the row came are gone."""
        found = []
        first = max(time - gap, now - keys.retention_ms + 1, 0)
        for at, entry in keys.between(store, key, first, max(clock.now, time + gap)):
            start = unpack(at[12 + len(key) + 8 :])
            if start <= time + gap:
                found.append((at, start, _end_of(at, key), entry))
        return sorted(found, key=lambda each: (each[1], each[2]))

    def process(row: Row) -> None:
        time, key = row.timestamp, row.key
        assert key is not None
        now = clock.now
        if time > now:
            clock.now = time
            keys.forget(store, time)
        packed = pack(key)
        sessions = touched(packed, time, now)
        start = min([time, *(each[1] for each in sessions)])
        end = max([time, *(each[2] for each in sessions)])
        if end < clock.now - grace_ms - gap:
            building.trouble(node, "late", "the session has closed", row)
            return
        states = calls.initial()
        for _, _, _, (_, other, _) in sessions:
            states = calls.merge(states, other, key)
        values = calls.values(row)
        states, carried = calls.add(states, values, row), values[calls.carried :]
        if (start, end) != (time, time):
            for at, first, last, (_, other, before) in sessions:
                store.put(at, None)
                old = (*before, *calls.result(other)) if wants_old else None
                emit(Row(key, None, last, old, (first, last), *row[5:]))
        store.put(keys.key(packed, end, pack(start)), (end, states, carried))
        emit(Row(key, carried + calls.result(states), end, None, (start, end), *row[5:]))

    return process


def _end_of(at: bytes, key: bytes) -> int:
    return int.from_bytes(at[12 + len(key) : 20 + len(key)], "big", signed=True)
