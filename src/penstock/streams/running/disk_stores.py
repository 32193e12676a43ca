"""State that is larger than memory: a store in a SQLite file, with what was used last in memory.

The file is a temporary one that has no name: nothing is left of it, also when the process is killed. What lasts is the changelog.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from penstock.streams.kernel.state_values import pack, unpack

RECENT_MAX: Final = 20_000  # entries of a store in memory
CACHE_KIB: Final = 4096  # SQLite's own, of each store
_MISSING: Final = object()
_UPWARDS: Final = "SELECT key, value FROM rows WHERE key >= ? AND (? IS NULL OR key < ?) ORDER BY key"


def use_directory(directory: str | None) -> None:
    """Where files are made by this process; without it where the system has temporary files."""
    if directory:
        Path(directory).mkdir(parents=True, exist_ok=True)
        os.environ["SQLITE_TMPDIR"] = directory


class DiskStore:
    """As `changelogs.LoggedStore`. `changed` are the keys that the changelog does not know yet."""

    def __init__(self, name: str, *, is_logged: bool) -> None:
        self.name = name
        self.is_logged = is_logged
        self.changed: set[bytes] = set()
        self._recent: dict[bytes, Any] = {}  # None: it is not there
        self._unwritten: set[bytes] = set()
        self._count = 0
        self._lock = threading.Lock()
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._file.execute("CREATE TABLE rows (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")

    def get(self, key: bytes) -> Any:
        found = self._recent.get(key, _MISSING)
        if found is _MISSING:
            data = self._read(key)
            found = self._recent[key] = None if data is None else unpack(data)
        return found

    def put(self, key: bytes, value: Any) -> None:
        self._keep(key, value)
        self.changed.add(key)

    def _keep(self, key: bytes, value: Any) -> None:
        self._count += (value is not None) - (self.get(key) is not None)
        self._recent[key] = value
        self._unwritten.add(key)
        self._make_room()

    def range(self, first: bytes, last: bytes | None) -> Iterator[tuple[bytes, Any]]:
        self._write()
        with self._lock:
            found = self._file.execute(_UPWARDS, (first, last, last)).fetchall()
        return ((key, unpack(value)) for key, value in found)

    def all(self) -> Iterator[tuple[bytes, Any]]:
        return self.range(b"", None)

    def restore(self, key: bytes, value: bytes | None) -> None:
        """A record of the changelog."""
        self._keep(key, None if value is None else unpack(value))

    def flush(self, send: Callable[[bytes, bytes | None], None]) -> int:
        """Hands the changes to the changelog; how many there are."""
        changed, self.changed = self.changed, set()
        if not self.is_logged:
            return 0
        for key in changed:
            value = self.get(key)
            send(key, None if value is None else pack(value))
        self._make_room()
        return len(changed)

    def look_up(self, key: bytes) -> bytes | None:
        """For another thread than the task's: the value as the changelog has it."""
        found = self._recent.get(key, _MISSING)
        if found is _MISSING:
            return self._read(key)
        return None if found is None else pack(found)

    def look_through(self, first: bytes, last: bytes | None, limit: int) -> list[tuple[bytes, bytes]]:
        """The same, of a range; what changes meanwhile may be there as it was or as it is."""
        newer = {key for key in list(self._unwritten) if first <= key and (last is None or key < last)}
        with self._lock:
            rows = self._file.execute(
                f"{_UPWARDS} LIMIT ?", (first, last, last, limit + len(newer))
            ).fetchall()
        found = dict(rows)
        for key in newer:
            value = self._recent.get(key)
            if value is None:
                found.pop(key, None)
            else:
                found[key] = pack(value)
        return sorted(found.items())[:limit]

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def __len__(self) -> int:
        return self._count

    def _read(self, key: bytes) -> bytes | None:
        with self._lock:
            row = self._file.execute("SELECT value FROM rows WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def _make_room(self) -> None:
        if len(self._recent) > RECENT_MAX:
            self._write()
            self._recent = {}

    def _write(self) -> None:
        if not self._unwritten:
            return
        recent = self._recent
        kept = [(key, pack(value)) for key in self._unwritten if (value := recent[key]) is not None]
        gone = [(key,) for key in self._unwritten if recent[key] is None]
        with self._lock:
            self._file.execute("BEGIN")
            self._file.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?)", kept)
            self._file.executemany("DELETE FROM rows WHERE key = ?", gone)
            self._file.execute("COMMIT")
        self._unwritten = set()
