"""One partition of a topic: its open files, and when they are finished.

All open files of a partition are finished together, as in Confluent's sink: then the offset behind them may be committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.connect.connectors.object_store.compatibility import begins_file, projected
from penstock.connect.connectors.object_store.formats import Part
from penstock.connect.data.schema import Schema
from penstock.connect.records import SinkRecord
from penstock.connect.tasks.columnar_sink import Columns

TOMBSTONES: Final = "tombstone"
NEVER_MS: Final = 1 << 62


@dataclass
class OpenFile:
    topic: str
    folder: str
    start_offset: int
    parts: list[Part] = field(default_factory=list)
    keys: list[tuple[Schema | None, Any]] = field(default_factory=list)
    headers: list[Sequence[Any]] = field(default_factory=list)

    @property
    def schema(self) -> Schema | None:
        return self.parts[0][0] if self.parts else None

    def add(self, schema: Schema | None, value: Any) -> None:
        last = self.parts[-1] if self.parts else None
        if last is not None and isinstance(last[1], list) and last[0] is schema:
            last[1].append(value)
        else:
            self.parts.append((schema, [value]))


@dataclass(frozen=True)
class Rules:
    flush_size: int
    rotate_ms: int = -1
    schedule_ms: int = -1
    compatibility: str = "NONE"
    keeps_keys: bool = False
    keeps_headers: bool = False


class PartitionFiles:
    """`write` puts a finished file where it belongs. When it raises RetriableError nothing has changed, and the same records may
    come again."""

    def __init__(self, partition: int, rules: Rules, write: Callable[[int, OpenFile], None]) -> None:
        self.partition: Final = partition
        self.committed: int | None = None
        """Where to go on after a restart."""
        self._rules, self._write = rules, write
        self._open: dict[tuple[str, str], OpenFile] = {}
        self._written: set[tuple[str, str]] = set()
        self._count = 0
        self._next = 0
        self._base_ms: int | None = None
        self._folder = ""
        self._due_ms = NEVER_MS

    def is_known(self, offset: int) -> bool:
        return offset < self._next

    def add(self, record: SinkRecord, folder: str, time_ms: int | None) -> None:
        """`time_ms` where files are finished by the time of records. DataError."""
        offset = record.original[2]
        if offset < self._next:
            return
        self._finish_full()
        schema, value = record.value_schema, record.value
        is_tombstone = folder == TOMBSTONES
        key = record.topic, folder
        found = self._open.get(key)
        is_other = (
            found is not None
            and not is_tombstone
            and begins_file(self._rules.compatibility, schema, found.schema)
        )
        if is_other or (time_ms is not None and self._is_over(folder, time_ms)):
            self.finish()
            found = None
        if found is not None and not is_tombstone:
            value = projected(schema, value, found.schema)
            schema = found.schema
        if found is None:
            found = self._open[key] = OpenFile(record.topic, folder, offset)
        if time_ms is not None and self._base_ms is None:
            self._base_ms = time_ms
        self._folder = folder
        if not is_tombstone:
            found.add(schema, value)
        if self._rules.keeps_keys:
            found.keys.append((record.key_schema, record.key))
        if self._rules.keeps_headers:
            found.headers.append(record.headers)
        self._count += 1
        self._next = offset + 1
        self._finish_full()

    def add_columns(self, piece: Columns, folder: str) -> None:
        piece = piece.since(self._next)
        self._finish_full()
        while piece.messages:
            found = self._open.get((piece.topic, folder))
            if found is not None and begins_file(self._rules.compatibility, piece.schema, found.schema):
                self.finish()
                found = None
            if found is None:
                found = OpenFile(piece.topic, folder, piece.messages[0].offset())
                self._open[piece.topic, folder] = found
            room = self._rules.flush_size - self._count
            taken = min(room, len(piece.messages))
            found.parts.append((piece.schema, piece.table.slice(0, taken)))
            self._count += taken
            self._next = piece.messages[taken - 1].offset() + 1
            piece = piece._replace(table=piece.table.slice(taken), messages=piece.messages[taken:])
            self._finish_full()

    def pass_over(self, offset: int) -> None:
        """A record that goes to no file."""
        if offset >= self._next:
            self._next = offset + 1
            if not self._open:
                self.committed = self._next

    def tick(self, now_ms: int, *, local_ms: int, is_wall_clock: bool) -> None:
        """Files that are finished by the clock. `local_ms`: what it shows in the zone of the schedule."""
        self._finish_full()
        schedule = self._rules.schedule_ms
        if schedule > 0:
            if local_ms >= self._due_ms:
                self.finish()
                self._due_ms = NEVER_MS
            if self._due_ms == NEVER_MS:
                self._due_ms = (local_ms // schedule + 1) * schedule
        if (
            is_wall_clock
            and self._base_ms is not None
            and now_ms - self._base_ms >= self._rules.rotate_ms > 0
        ):
            self.finish()

    def finish(self) -> None:
        """RetriableError."""
        for key, each in self._open.items():
            if key not in self._written:
                self._write(self.partition, each)
                self._written.add(key)
        if self._open:
            self.committed = self._next
        self._open.clear()
        self._written.clear()
        self._count = 0
        self._base_ms = None

    def _finish_full(self) -> None:
        if self._count >= self._rules.flush_size:
            self.finish()

    def _is_over(self, folder: str, time_ms: int) -> bool:
        if self._base_ms is None:
            return False
        return time_ms - self._base_ms >= self._rules.rotate_ms or folder != self._folder
