"""What a query gives its client: a header, rows, and an end. Made in a thread, taken by the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from penstock.streams.plan.schema import Schema

LIMIT_REACHED: Final = "Limit Reached"


class ResultRow(NamedTuple):
    """`values` in the order of the header's columns, keys first."""

    values: tuple[Any, ...]
    is_tombstone: bool = False


class Header(NamedTuple):
    """`keys` are columns that are keys of what was asked, wherever they stand."""

    query_id: str
    schema: Schema
    keys: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        if not self.keys:
            return str(self.schema)
        return ", ".join(
            f"`{column.name}` {column.type}" + (" KEY" if column.name in self.keys else "")
            for column in (*self.schema.key, *self.schema.value)
        )


class Results:
    """Between the thread of a query and the coroutine that writes to its client. The thread waits while the client has not
    taken what is there; `close` ends both."""

    def __init__(self, header: Header, *, bound: int, stop: Callable[[], object] = lambda: None) -> None:
        self.header = header
        self.final: str | None = None
        self.error: str | None = None
        self._rows: deque[ResultRow] = deque()
        self._bound = bound
        self._stop = stop
        self._room = threading.Event()
        self._room.set()
        self._is_ended = False
        self._is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed: asyncio.Event | None = None

    # ------------------------------------------------------------------ for the thread

    def put(self, row: ResultRow) -> bool:
        """False: nobody wants more."""
        while not self._is_closed and len(self._rows) >= self._bound:
            self._room.clear()
            if len(self._rows) >= self._bound:
                self._room.wait(0.5)
        if self._is_closed:
            return False
        self._rows.append(row)
        self._tell()
        return True

    def end(self, *, final: str | None = None, error: str | None = None) -> None:
        if not self._is_ended:
            self.final, self.error, self._is_ended = final, error, True
            self._tell()

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def _tell(self) -> None:
        loop, changed = self._loop, self._changed
        if loop is not None and changed is not None:
            try:
                loop.call_soon_threadsafe(changed.set)
            except RuntimeError:
                self._is_closed = True  # the loop has ended

    # ------------------------------------------------------------------ for the coroutine

    async def take(self, most: int = 1000) -> list[ResultRow]:
        """What is there, or what comes next; nothing: it has ended."""
        if self._changed is None:
            self._loop, self._changed = asyncio.get_running_loop(), asyncio.Event()
        while True:
            self._changed.clear()
            found: list[ResultRow] = []
            while self._rows and len(found) < most:
                found.append(self._rows.popleft())
            if found:
                self._room.set()
                return found
            if self._is_ended or self._is_closed:
                return []
            await self._changed.wait()

    def whole(self, most: int = 1000) -> list[ResultRow] | None:
        """All rows, where the query has ended already and there are no more of them; None otherwise, and nothing is taken."""
        if not self._is_ended or self._is_closed or len(self._rows) > most:
            return None
        found = list(self._rows)
        self._rows.clear()
        return found

    def close(self) -> None:
        """Once; the query's thread is told."""
        if not self._is_closed:
            self._is_closed = True
            self._room.set()
            self._tell()
            self._stop()
