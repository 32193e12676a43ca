"""The file of a history: two tables in SQLite, one writer.

    series  id, cluster, name                      points  series, at (whole seconds), value

`at` is the end of what the value stands for. `tidy` makes old points fewer and drops the oldest beyond the bounds; it works in
portions, so that a reader never waits for long.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from penstock.console.history.series import Point

IN_MEMORY: Final = ":memory:"
BUSY_TIMEOUT_S: Final = 5.0
STEPS: Final = ((3600, 60), (24 * 3600, 600))
"""What is older than so many seconds keeps one point in so many seconds."""
PORTION: Final = 5_000

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS series (
    id INTEGER PRIMARY KEY, cluster TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (cluster, name)
);
CREATE TABLE IF NOT EXISTS points (
    series INTEGER NOT NULL, at INTEGER NOT NULL, value REAL NOT NULL, PRIMARY KEY (series, at)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS points_by_time ON points (at);
"""


class Store:
    """Belongs to one thread, but for `read`, which has a lock of SQLite's own."""

    def __init__(self, file: Path | None) -> None:
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(
            IN_MEMORY if file is None else file,
            timeout=BUSY_TIMEOUT_S,
            check_same_thread=False,
            isolation_level=None,
        )
        if file is not None:
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
        self._connection.executescript(_SCHEMA)
        self._ids = self._known()
        self._thinned: dict[int, int] = {}
        """By the width of a stretch: all before this is thin already."""

    def close(self) -> None:
        self._connection.close()

    def write(self, cluster: str, at_s: float, values: Iterable[tuple[str, float]]) -> int:
        """How many rows that were."""
        at = int(at_s)
        rows = [(self._id(cluster, name), at, value) for name, value in values]
        self._connection.execute("BEGIN")
        try:
            self._connection.executemany("INSERT OR REPLACE INTO points VALUES (?, ?, ?)", rows)
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")
        return len(rows)

    def _id(self, cluster: str, name: str) -> int:
        found = self._ids.get((cluster, name))
        if found is None:
            cursor = self._connection.execute(
                "INSERT INTO series (cluster, name) VALUES (?, ?)", (cluster, name)
            )
            assert cursor.lastrowid is not None
            found = self._ids[cluster, name] = cursor.lastrowid
        return found

    def read(
        self, cluster: str, names: Sequence[str], *, since_s: float, until_s: float
    ) -> Mapping[str, list[Point]]:
        """Each with the last point before `since_s`, moved to it: a value holds until the next."""
        found: dict[str, list[Point]] = {}
        for name in names:
            number = self._ids.get((cluster, name))
            if number is None:
                found[name] = []
                continue
            rows = self._connection.execute(
                "SELECT at, value FROM points WHERE series = ? AND at > ? AND at <= ? ORDER BY at",
                (number, int(since_s), int(until_s)),
            )
            points = [Point(float(at), value) for at, value in rows]
            before = self._connection.execute(
                "SELECT at, value FROM points WHERE series = ? AND at <= ? AND at > ? ORDER BY at DESC LIMIT 1",
                (number, int(since_s), int(since_s) - 2 * STEPS[-1][1]),
            ).fetchone()
            found[name] = [Point(float(since_s), before[1]), *points] if before else points
        return found

    def count(self) -> int:
        (found,) = self._connection.execute("SELECT count(*) FROM points").fetchone()
        return int(found)

    def tidy(self, now_s: float, *, keep_s: float, max_rows: int) -> None:
        for _ in self.tidying(now_s, keep_s=keep_s, max_rows=max_rows):
            pass

    def tidying(self, now_s: float, *, keep_s: float, max_rows: int) -> Iterator[None]:
        """As `tidy`, in steps that are short: readers have their turn between two of them."""
        yield from self._delete("at < ?", (int(now_s - keep_s),))
        for age_s, width_s in STEPS:
            # The last point of each stretch stays: in order of time, it is what the value was at its end. What was gone through
            # before is not again, but for the stretch that was not over.
            until = int(now_s - age_s)
            yield from self._delete(
                "at >= ? AND at < ? AND EXISTS (SELECT 1 FROM points AS later WHERE later.series = points.series "
                "AND later.at > points.at AND later.at < (points.at / ? + 1) * ?)",
                (self._thinned.get(width_s, 0), until, width_s, width_s),
            )
            self._thinned[width_s] = until // width_s * width_s
        excess = self.count() - max_rows
        while excess > 0:
            taken = min(excess, PORTION)
            self._connection.execute(
                "DELETE FROM points WHERE (series, at) IN (SELECT series, at FROM points ORDER BY at LIMIT ?)",
                (taken,),
            )
            excess -= taken
            yield
        self._forget_series()
        yield

    def _delete(self, which: str, values: tuple[int, ...]) -> Iterator[None]:
        while True:
            cursor = self._connection.execute(
                f"DELETE FROM points WHERE (series, at) IN (SELECT series, at FROM points WHERE {which} LIMIT {PORTION})",
                values,
            )
            yield
            if cursor.rowcount < PORTION:
                return

    def _forget_series(self) -> None:
        """Those without points: of topics and groups that are long gone."""
        gone = self._connection.execute(
            "DELETE FROM series WHERE NOT EXISTS (SELECT 1 FROM points WHERE points.series = series.id)"
        )
        if gone.rowcount:
            self._ids = self._known()

    def _known(self) -> dict[tuple[str, str], int]:
        found = self._connection.execute("SELECT id, cluster, name FROM series")
        return {(cluster, name): number for number, cluster, name in found}
