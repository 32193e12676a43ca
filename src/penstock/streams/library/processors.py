"""Processors of the user's own: what they are given, and what they may do.

class Deduplicate:
    def process(self, row, context):
        seen = context.store("seen")
        if seen.get(row["id"]) is None:
            seen.put(row["id"], True)
            context.forward(row["id"], {"n": row["n"]})
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from penstock.streams.library.failures import unknown
from penstock.streams.library.values import RowReader, values_of
from penstock.streams.library.windows import Duration, duration_ms
from penstock.streams.plan.schema import Schema

CLOCKS: Final = ("rows", "wall")


class Context:
    """Of one partition."""

    def __init__(self, kernel: Any, after: Schema) -> None:
        self._kernel, self._after = kernel, after

    def forward(self, key: Any, value: Any, timestamp: int | None = None) -> None:
        """A row for the steps behind. Its time is that of the row at hand, if no other is given; its headers go with it."""
        keys = values_of(key, self._after.key, is_key=True)
        self._kernel.forward(keys, values_of(value, self._after.value, is_key=False), timestamp)

    def store(self, name: str) -> Any:
        """get(key, default), put(key, value), delete(key), all(). Keys and values are plain Python: None, bool, int, float, str,
        bytes, Decimal, lists and dicts of them."""
        return self._kernel.store(name)

    def schedule(
        self, every: Duration | timedelta, callback: Callable[[int], None], *, clock: str = "rows"
    ) -> None:
        """`callback(now)`, in milliseconds, whenever so much time has gone by: on the clock of the "rows", their times (without
        rows no time goes by), or on the "wall" clock, which is looked at some ten times a second. What a callback by the wall
        clock forwards has its time, if it gives no other."""
        if clock not in CLOCKS:
            raise unknown("clock", clock, CLOCKS)
        interval_ms = duration_ms(every, "the interval", least=1)
        self._kernel.schedule(interval_ms, callback, by_wall_clock=clock == "wall")

    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        """Of the record at hand."""
        headers: tuple[tuple[str, bytes | None], ...] = tuple(self._kernel.headers)
        return headers

    @property
    def timestamp(self) -> int:
        timestamp: int = self._kernel.timestamp
        return timestamp

    @property
    def partition(self) -> int:
        partition: int = self._kernel.partition
        return partition

    @property
    def offset(self) -> int:
        return -1 if self._kernel.row is None else int(self._kernel.row.offset)


class Adapter:
    """Between the kernel and the user's processor."""

    def __init__(self, processor: Any, before: Schema, after: Schema) -> None:
        self._processor, self._after = processor, after
        self._reader = RowReader((*before.key, *before.value))
        self._has_key = any(column.name == "KEY" for column in (*before.key, *before.value))
        self._context: Context | None = None

    def init(self, kernel: Any) -> None:
        self._context = Context(kernel, self._after)
        if hasattr(self._processor, "init"):
            self._processor.init(self._context)

    def process(self, row: dict[str, Any], kernel: Any) -> None:
        if not self._has_key:
            row.pop("KEY", None)
        self._processor.process(self._reader.changed(row), self._context)


class Making:
    """`PythonProcessor.make`."""

    def __init__(self, make: Callable[[], Any], before: Schema, after: Schema) -> None:
        self._make, self._before, self._after = make, before, after

    def __call__(self) -> Adapter:
        return Adapter(self._make(), self._before, self._after)
