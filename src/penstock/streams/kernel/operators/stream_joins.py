"""StreamStreamJoin: rows of two streams that have one key and lie close enough in time.

Each side keeps its rows in a store of its own (`-left`, `-right`), several of one key and time as a list. With a grace period
the rows
that found nobody wait in a third store (`-waiting`): time (8 bytes), side (1), key. They go out when nobody can come any more.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.streams.kernel.building import Building, Emit
from penstock.streams.kernel.records import Row
from penstock.streams.kernel.state_keys import FIRST, StreamTime, TimedKeys, row_key, time_bytes
from penstock.streams.kernel.stores import Store
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import JoinKind
from penstock.streams.plan.sources import DEFAULT_GRACE_MS, WindowKind

SIDES: Final = ("left", "right")
FAR_AWAY: Final = 1 << 62


def side_store(node: nodes.StreamStreamJoin, side: int) -> str:
    return f"{node.name}-{SIDES[side]}"


def waiting_store(node: nodes.StreamStreamJoin) -> str:
    return f"{node.name}-waiting"


def waits(node: nodes.StreamStreamJoin) -> bool:
    return node.grace_ms is not None and node.join is not JoinKind.INNER


def retention_of(node: nodes.StreamStreamJoin) -> int:
    within = node.before_ms + node.after_ms
    return within + (max(DEFAULT_GRACE_MS - within, 0) if node.grace_ms is None else node.grace_ms)


class Side:
    """Rows of one side, as far back as the retention reaches from the side's own newest row."""

    def __init__(self, store: Store, clock: StreamTime, keys: TimedKeys) -> None:
        self._store, self._clock, self._keys = store, clock, keys

    def put(self, key: bytes, row: Row) -> None:
        clock, keys = self._clock, self._keys
        if row.timestamp > clock.now:
            clock.now = row.timestamp
            keys.forget(self._store, clock.now)
        elif row.timestamp <= clock.now - keys.retention_ms:
            return
        at = keys.key(key, row.timestamp)
        self._store.put(at, [*(self._store.get(at) or ()), row.value])

    def between(self, key: bytes, first: int, last: int) -> list[tuple[int, Any]]:
        oldest = max(first, self._clock.now - self._keys.retention_ms + 1, 0)
        if last < oldest:
            return []
        at = 12 + len(key)
        return [
            (int.from_bytes(found[at : at + 8], "big"), value)
            for found, values in self._keys.between(
                self._store, key, oldest, min(last, max(self._clock.now, 0))
            )
            for value in values
        ]


class Join:
    def __init__(self, node: nodes.StreamStreamJoin, building: Building, emit: Emit) -> None:
        self._node, self._building, self._emit = node, building, emit
        keys = TimedKeys(retention_of(node))
        stores = [building.store(side_store(node, side)) for side in (0, 1)]
        self._sides = [Side(store, building.clock(store), keys) for store in stores]
        self._time = building.clock_at(stores[0], b"\x00")  # of both sides together
        before, after = node.before_ms, node.after_ms
        # As ksqlDB has it: a RIGHT join is the LEFT join of the exchanged streams, `before` and `after` not exchanged.
        if node.join is JoinKind.RIGHT:
            before, after = after, before
        self._reach = ((before, after), (after, before))
        self._alone = (
            node.join in (JoinKind.LEFT, JoinKind.FULL),
            node.join in (JoinKind.RIGHT, JoinKind.FULL),
        )
        self._nobody = ((None,) * len(node.right.schema.value), (None,) * len(node.left.schema.value))
        self._grace = node.grace_ms or 0
        # Keys of tumbling and hopping windows have their start only: those of two sizes are equal, and the left side's counts.
        window = node.window
        self._size_ms = None if window is None or window.kind is WindowKind.SESSION else window.size_ms
        self._waiting = building.store(waiting_store(node)) if waits(node) else None
        self._oldest = -1 if self._waiting is not None else FAR_AWAY  # no waiting row is older
        self._trouble = lambda row: building.trouble(
            node, "process", "a row without key or value joins nothing", row
        )

    def process(self, side: int, row: Row) -> None:
        if row.window is not None and self._size_ms is not None:
            row = row._replace(window=(row.window[0], row.window[0] + self._size_ms))
        time = self._time
        if row.timestamp > time.now:
            time.now = row.timestamp
        if row.value is None or row.key is None:
            if row.value is not None and self._alone[side]:
                self._give(side, row, row.value, None, row.timestamp)
            else:
                self._building.trouble(self._node, "skipped", "a row without key or value joins nothing", row)
            return
        if self._waiting is not None and row.timestamp == time.now:
            self._close(side, row)
        key = row_key(row.key, row.window)
        before, after = self._reach[side]
        first, last = max(row.timestamp - before, 0), max(row.timestamp + after, 0)
        matches = self._sides[1 - side].between(key, first, last)
        for timestamp, value in matches:
            if self._waiting is not None:
                self._waiting.put(_place(timestamp, 1 - side, key), None)
            self._give(side, row, row.value, value, max(row.timestamp, timestamp))
        if not matches and self._alone[side]:
            if self._waiting is None or last < time.now:
                self._give(side, row, row.value, None, row.timestamp)
            else:
                self._wait(side, key, row)
        self._sides[side].put(key, row)

    def _give(self, side: int, row: Row, mine: Any, other: Any, timestamp: int) -> None:
        theirs = self._nobody[side] if other is None else tuple(other)
        value = (*mine, *theirs) if side == 0 else (*theirs, *mine)
        self._emit(Row(row.key, value, timestamp, None, row.window, row.headers, row.partition, row.offset))

    def _wait(self, side: int, key: bytes, row: Row) -> None:
        assert self._waiting is not None
        at = _place(row.timestamp, side, key)
        before = self._waiting.get(at)
        values = [*(before[2] if before is not None else ()), row.value]
        self._waiting.put(at, (row.key, row.window, values))
        self._oldest = min(self._oldest, row.timestamp)

    def _close(self, side: int, row: Row) -> None:
        """Waiting rows whose partners would be late now go out alone. As in Kafka Streams, nothing is looked at before the
        oldest of them would be out of reach of the side that the row is from."""
        assert self._waiting is not None
        now = self._time.now - self._grace
        if self._oldest + self._reach[side][1] >= now:
            return
        self._oldest = FAR_AWAY
        least = min(self._reach[0][1], self._reach[1][1])
        for at, (key, window, values) in list(self._waiting.range(FIRST, time_bytes(max(now - least, 0)))):
            timestamp, from_side = int.from_bytes(at[:8], "big"), 1 - at[8]
            if timestamp + self._reach[from_side][1] >= now:
                self._oldest = min(self._oldest, timestamp)
                continue
            self._waiting.put(at, None)
            bounds = None if window is None else (window[0], window[1])
            alone = Row(tuple(key), None, timestamp, None, bounds, row.headers, row.partition, row.offset)
            for value in values:
                self._give(from_side, alone, value, None, timestamp)
        following = next(iter(self._waiting.range(time_bytes(max(now - least, 0)), b"\xff")), None)
        if following is not None:
            self._oldest = min(self._oldest, int.from_bytes(following[0][:8], "big"))


def _place(timestamp: int, side: int, key: bytes) -> bytes:
    return (
        time_bytes(timestamp) + bytes([1 - side]) + key
    )  # of one time the right side's go first, as Kafka Streams does


def stream_stream_join(node: nodes.StreamStreamJoin, building: Building, emit: Emit) -> tuple[Emit, Emit]:
    join = Join(node, building, emit)
    return (lambda row: join.process(0, row)), (lambda row: join.process(1, row))
