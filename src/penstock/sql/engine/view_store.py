"""The rows of a view on disk: SQLite in its write-ahead mode, one writer, readers that do not wait for it.

Rows and the offsets up to which the topic was read change in one transaction, so a file that was left behind is right as far as
it says. It can be made again from the topic at any time, so nothing waits for the disk.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

WRITE_CACHE_KIB: Final = 16 << 10
READ_CACHE_KIB: Final = 2 << 10
MMAP_BYTES: Final = 256 << 20
ROWS_AT_ONCE: Final = 500
FORM: Final = 1
"""Of the file. Another one's is thrown away."""
FIRST: Final = -(1 << 63)
LAST: Final = (1 << 63) - 1


class Stored(NamedTuple):
    """`order` is the key's place (`key_order`); the bounds of its window are 0 where it has none."""

    order: bytes
    start: int
    end: int
    key: bytes
    value: bytes
    timestamp: int
    partition: int
    offset: int


class Deleted(NamedTuple):
    order: bytes
    start: int
    end: int


class ViewStore:
    def __init__(self, path: Path, identity: str) -> None:
        """`identity` says what the rows are of. A file of something else is emptied."""
        self._path = path
        self._lock = threading.Lock()
        self._readers: list[sqlite3.Connection] = []
        self._local = threading.local()
        self._closed = False
        self._writer = self._open_writer(f"{FORM} {identity}")

    def _open_writer(self, identity: str) -> sqlite3.Connection:
        try:
            return self._prepared(identity)
        except sqlite3.DatabaseError:  # a file that is broken, or none of ours
            for each in self._files():
                each.unlink(missing_ok=True)
            return self._prepared(identity)

    def _prepared(self, identity: str) -> sqlite3.Connection:
        writer = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            writer.execute("PRAGMA journal_mode = WAL")
            writer.execute("PRAGMA synchronous = OFF")
            writer.execute(f"PRAGMA cache_size = -{WRITE_CACHE_KIB}")
            writer.execute("CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT)")
            found = writer.execute("SELECT value FROM about WHERE name = 'identity'").fetchone()
            if found != (identity,):
                _empty(writer, identity)
        except BaseException:
            writer.close()
            raise
        return writer

    def positions(self) -> dict[int, int]:
        """The next offset to read of each partition."""
        return dict(self._writer.execute("SELECT partition, next FROM positions"))

    def forget(self) -> None:
        """The topic is not the one that the rows are of."""
        with self._lock:
            (identity,) = self._writer.execute("SELECT value FROM about WHERE name = 'identity'").fetchone()
            _empty(self._writer, identity)

    def apply(
        self,
        changes: Iterable[Stored | Deleted],
        positions: Mapping[int, int],
        forget_ended_before: int | None = None,
    ) -> None:
        """In their order, all or none. Windows that ended at that time or before it go."""
        with self._lock:
            writer = self._writer
            writer.execute("BEGIN")
            try:
                for change in changes:
                    if isinstance(change, Stored):
                        writer.execute(_PUT, change)
                    else:
                        writer.execute(_DELETE, change)
                writer.executemany(_MOVE, positions.items())
                if forget_ended_before is not None:
                    writer.execute(_FORGET, (forget_ended_before,))
            except BaseException:
                writer.execute("ROLLBACK")
                raise
            writer.execute("COMMIT")

    def get(self, order: bytes, first_start: int = FIRST, last_start: int = LAST) -> list[Stored]:
        """All windows of the key whose start is in the range, both ends included."""
        found = self._reader().execute(_GET, (order, first_start, last_start))
        return [Stored(*row) for row in found.fetchall()]

    def between(self, first: bytes, last: bytes) -> Iterator[Stored]:
        """In the order of keys, `first` included, `last` not. As the view is when the first row is taken; close the iterator."""
        cursor = self._reader().cursor()
        try:
            cursor.execute(_BETWEEN, (first, last))
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                for row in rows:
                    yield Stored(*row)
        finally:
            cursor.close()

    def __len__(self) -> int:
        (count,) = self._reader().execute("SELECT count(*) FROM rows").fetchone()
        return int(count)

    def close(self, *, delete: bool = False) -> None:
        with self._lock:
            self._closed = True
            for reader in self._readers:
                reader.close()
            self._readers.clear()
            self._writer.close()
        if delete:
            for each in self._files():
                each.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return [self._path.with_name(self._path.name + end) for end in ("", "-wal", "-shm")]

    def _reader(self) -> sqlite3.Connection:
        """One for each thread."""
        reader: sqlite3.Connection | None = getattr(self._local, "reader", None)
        if reader is None:
            with self._lock:
                if self._closed:
                    raise sqlite3.ProgrammingError("the view is closed")
                reader = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
                self._readers.append(reader)
            reader.execute("PRAGMA query_only = ON")
            reader.execute(f"PRAGMA cache_size = -{READ_CACHE_KIB}")
            reader.execute(f"PRAGMA mmap_size = {MMAP_BYTES}")
            self._local.reader = reader
        return reader


def _empty(writer: sqlite3.Connection, identity: str) -> None:
    for statement in _TABLES:
        writer.execute(statement)
    writer.execute("INSERT OR REPLACE INTO about VALUES ('identity', ?)", (identity,))


_TABLES: Final = (
    "DROP TABLE IF EXISTS rows",
    "DROP TABLE IF EXISTS positions",
    "CREATE TABLE positions (partition INTEGER PRIMARY KEY, next INTEGER NOT NULL)",
    """CREATE TABLE rows (place BLOB NOT NULL, opens INTEGER NOT NULL, closes INTEGER NOT NULL, key BLOB NOT NULL,
        value BLOB NOT NULL, time INTEGER NOT NULL, partition INTEGER NOT NULL, number INTEGER NOT NULL,
        PRIMARY KEY (place, opens, closes)) WITHOUT ROWID""",
    "CREATE INDEX closed ON rows (closes) WHERE closes > 0",
)
_PUT: Final = "INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_DELETE: Final = "DELETE FROM rows WHERE place = ? AND opens = ? AND closes = ?"
_FORGET: Final = "DELETE FROM rows WHERE closes > 0 AND closes <= ?"
_MOVE: Final = "INSERT OR REPLACE INTO positions VALUES (?, ?)"
_GET: Final = "SELECT * FROM rows WHERE place = ? AND opens BETWEEN ? AND ? ORDER BY opens, closes"
_BETWEEN: Final = "SELECT * FROM rows WHERE place >= ? AND place < ? ORDER BY place, opens, closes"
