"""Searching a range of a topic, newest or oldest first, with a bound on what is kept.

    scan = Scan(source, search, rows, progress, stopped)
    scan.run()          # in a thread
    scan.top.rows()     # at any time, from any thread: the best so far, in order

The range of each partition is fixed when the scan begins. It is read in rounds: in each, every partition that may
still have something better than what is kept gives a chunk of its range, all of them at once, from the wanted end on.
Chunks grow, so the first rows are there at once and most of a long range is read in one go. A partition is done with
its range, or as soon as `limit` rows are kept that are all better than the edge of what was read of it.
"""

from __future__ import annotations

import bisect
import threading
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.arrow.positions import check_places, chosen_partitions, find_ranges
from penstock.client.fetching import Range
from penstock.client.topics import Topic
from penstock.console.messages.columns import raws, searchable, times
from penstock.console.messages.matching import Matcher
from penstock.console.messages.model import Control, Counts, Progress, Row, Search, Source
from penstock.console.messages.reading import Reader
from penstock.console.messages.rows import Rows, control_row
from penstock.records.columnar.columns import PARTITION

FIRST_OFFSETS: Final = 500
"""At least so many of a partition in the first round of a search with conditions."""
GROWTH: Final = 4
CHUNK_BYTES: Final = 128 << 20
"""Of all partitions in one round, as far as it can be guessed."""
MASKED_ROWS: Final = 256
"""Rows that are decoded between two looks at `stopped`, for a visitor from whom something is hidden."""
Array = np.ndarray[Any, np.dtype[Any]]


class TopRows:
    """The best `limit` rows: the newest, or the oldest. One thread adds, others read."""

    def __init__(self, limit: int, *, newest_first: bool) -> None:
        self.limit = limit
        self._newest_first = newest_first
        self._keys: list[tuple[int, int, int, int]] = []
        self._rows: list[Row] = []
        self.changes = 0
        """Grows with each change."""
        self.generation = 0
        """Rows of a later one come first, whatever their times: who follows a topic sees first what came last."""
        self._lock = threading.Lock()

    @property
    def is_full(self) -> bool:
        return len(self._rows) >= self.limit

    def takes(self, timestamp_ms: int) -> bool:
        """Whether a record of this time could be among the best."""
        if not self.is_full:
            return True
        worst = self._keys[-1]
        return (-self.generation, -timestamp_ms if self._newest_first else timestamp_ms) <= worst[:2]

    def add(self, row: Row) -> None:
        sign = -1 if self._newest_first else 1
        key = (-self.generation, sign * row.timestamp_ms, row.partition, sign * row.offset)
        with self._lock:
            at = bisect.bisect_left(self._keys, key)
            if at >= self.limit or (at < len(self._keys) and self._keys[at] == key):
                return
            self._keys.insert(at, key)
            self._rows.insert(at, row)
            del self._keys[self.limit :], self._rows[self.limit :]
            self.changes += 1

    def rows(self) -> list[Row]:
        with self._lock:
            return list(self._rows)

    def clear(self) -> None:
        with self._lock:
            self._keys.clear()
            self._rows.clear()
            self.changes += 1


class Finder:
    """Takes batches, and keeps of each what is wanted and good enough."""

    def __init__(
        self, search: Search, rows: Rows, progress: Progress, top: TopRows, stopped: threading.Event
    ) -> None:
        self._search = search
        self._rows = rows
        self._progress = progress
        self._top = top
        self._stopped = stopped
        self._matcher = Matcher(search.wanted, rows.value.document, stopped.is_set)
        self.edges: dict[int, int] = {}
        """By partition the time at the edge of what was read: of its first record, or of its last one when the oldest
        are wanted."""

    def take(self, found: pa.RecordBatch | list[Control]) -> None:
        if isinstance(found, list):
            if self._search.wanted.is_everything:
                for control in found:
                    self._progress.matched += 1
                    self._top.add(control_row(control))
            return
        if self._rows.mask is None or self._search.wanted.is_everything:
            mask = self._matcher.mask(found)
            hits = np.arange(found.num_rows) if mask is None else np.flatnonzero(mask)
        else:
            hits = self._seen(found)
        self._progress.matched += len(hits)
        partitions = found.column(PARTITION).to_numpy()
        stamps = times(found)
        self._note_edges(partitions, stamps)
        for record in raws(found, self._chosen(partitions, hits)):
            if self._stopped.is_set():
                return
            if self._top.takes(record.timestamp_ms):
                self._top.add(self._rows.row(record))

    def _seen(self, batch: pa.RecordBatch) -> Array:
        """Those that are found in what the visitor may see. The bytes themselves are not asked at all, not even first: which
        rows `card != 4929` leaves out, or `[^4]*id`, would tell what is hidden."""
        kept, hits = [], np.arange(batch.num_rows)
        for start in range(0, len(hits), MASKED_ROWS):
            if self._stopped.is_set():
                break
            part = hits[start : start + MASKED_ROWS]
            mask = self._matcher.mask(searchable(self._rows, batch, part))
            assert mask is not None
            kept.append(part[mask])
        return np.concatenate(kept) if kept else hits[:0]

    def _note_edges(self, partitions: Array, stamps: Array) -> None:
        changes = np.flatnonzero(np.diff(partitions)) + 1
        firsts, lasts = [0, *changes], [*(changes - 1), len(partitions) - 1]
        for first, last in zip(firsts, lasts, strict=True):
            partition = int(partitions[first])
            if self._search.newest_first:
                self.edges.setdefault(partition, int(stamps[first]))
            else:
                self.edges[partition] = int(stamps[last])

    def _chosen(self, partitions: Array, hits: Array) -> Array:
        """No partition can have more than `limit` of the best."""
        limit = self._top.limit
        if len(hits) <= limit:
            return hits[::-1] if self._search.newest_first else hits
        chosen = []
        of_hits = partitions[hits]
        for partition in np.unique(of_hits):
            own = hits[of_hits == partition]
            chosen.append(own[-limit:][::-1] if self._search.newest_first else own[:limit])
        return np.concatenate(chosen)


class Scan:
    """One search. `run` blocks: call it in a thread; `stopped` ends it."""

    def __init__(self, source: Source, search: Search, rows: Rows, stopped: threading.Event) -> None:
        self._source = source
        self._search = search
        self._rows = rows
        self._stopped = stopped
        self.progress = Progress()
        self.top = TopRows(search.limit, newest_first=search.newest_first)

    def run(self) -> None:
        """UserError, Refused or Unreachable when it cannot go on; what was found until then stays."""
        search = self._search
        with Reader(
            self._source.bootstrap, self._source.properties, committed=search.committed, stopped=self._stopped
        ) as reader:
            self.progress.counts = reader.counts
            topic = reader.topic(search.topic)
            ranges = ranges_of(reader, topic, search)
            self.progress.total = sum(one.end_offset - one.start_offset for one in ranges.values())
            self._rounds(reader, topic, ranges)

    def _rounds(self, reader: Reader, topic: Topic, left: dict[int, Range]) -> None:
        left = {partition: one for partition, one in left.items() if one.start_offset < one.end_offset}
        finder = Finder(self._search, self._rows, self.progress, self.top, self._stopped)
        is_search = not self._search.wanted.is_everything
        size = max(self._search.limit // max(1, len(left)) + 1, FIRST_OFFSETS if is_search else 20)
        while left and not self._stopped.is_set():
            chunks = {}
            for partition, one in left.items():
                if self._may_have_better(finder, partition):
                    chunks[partition] = self._chunk(one, size)
            if not chunks:
                return
            finder.edges = {
                partition: edge for partition, edge in finder.edges.items() if partition not in chunks
            }
            for batch in reader.batches(topic, chunks, with_control=self._search.with_control):
                finder.take(batch)
                if self._stopped.is_set():
                    return
            for partition, chunk in chunks.items():
                rest = _without(left[partition], chunk)
                if rest.start_offset < rest.end_offset:
                    left[partition] = rest
                else:
                    del left[partition]
            size = self._grown(size, len(left), reader.counts)

    def _may_have_better(self, finder: Finder, partition: int) -> bool:
        edge = finder.edges.get(partition)
        return edge is None or self.top.takes(edge)

    def _chunk(self, one: Range, size: int) -> Range:
        if self._search.newest_first:
            return Range(max(one.start_offset, one.end_offset - size), one.end_offset)
        return Range(one.start_offset, min(one.end_offset, one.start_offset + size))

    def _grown(self, size: int, partitions: int, counts: Counts) -> int:
        bytes_each = counts.bytes / max(1, counts.offsets)
        most = int(CHUNK_BYTES / max(1.0, bytes_each) / max(1, partitions))
        return max(1, min(size * GROWTH, most))


def ranges_of(reader: Reader, topic: Topic, search: Search) -> dict[int, Range]:
    check_places("start", search.start)
    check_places("end", search.end)
    partitions = chosen_partitions(topic, search.partitions, start=search.start, end=search.end)
    return find_ranges(
        reader.client,
        topic,
        partitions,
        start=search.start,
        end=search.end,
        isolation_level=reader.isolation_level,
    )


def _without(whole: Range, chunk: Range) -> Range:
    """What is left of it: the chunk is at one of its ends."""
    if chunk.end_offset == whole.end_offset:
        return Range(whole.start_offset, chunk.start_offset)
    return Range(chunk.end_offset, whole.end_offset)
