"""Where an offset of the source is at the target. Pure.

A pair (upstream, downstream) is kept whenever the distance between the two offsets changes: where a compaction or a transaction
has left a gap on either side. Between two pairs the distance is the same, so that every offset in between is known:

    pairs (0, 0), (20, 10)      of the source, records 0 … 9 and 20 … are left; at the target they are 0 … 9 and 10 …
    offset 5 → 5    offset 9 → 9    offset 10, 15 or 20 → 10    offset 25 → 15

An offset in a gap goes to the next record behind it, which is what a reader would get. MirrorMaker 2 writes a pair only now and
then; between those nothing is known but that the next record is behind the pair's (`is_dense` is False).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from penstock.mirror.formats import SLOTS, OffsetSync


class _Pair(NamedTuple):
    upstream: int
    downstream: int
    is_dense: bool


class Translated(NamedTuple):
    offset: int
    is_exact: bool
    """False: some records before it may not have been read, and none behind it has."""


class PartitionOffsets:
    def __init__(self) -> None:
        self._upstreams: list[int] = []
        self._pairs: list[_Pair] = []
        self._end = 0
        """Upstream: up to here the last pair holds."""
        self._is_from_start = True

    def add(self, sync: OffsetSync) -> None:
        upstream, downstream = sync.upstream, sync.downstream
        if sync.slot is None and self._continues(upstream, downstream):
            self._end = max(self._end, upstream + 1)
            return
        if not self._pairs and sync.slot:
            self._is_from_start = False  # the first ones have made room for later ones
        keep = bisect_left(self._upstreams, upstream)
        # The topic at the target has been made anew, or a source has begun from an earlier offset.
        while keep and self._pairs[keep - 1].downstream >= downstream:
            keep -= 1
        has_cut = keep < len(self._pairs)
        del self._upstreams[keep:], self._pairs[keep:]
        if sync.slot is None and self._pairs and not has_cut and self._end < upstream:
            last = self._pairs[-1]
            if last.is_dense:
                self._append(_Pair(self._end, last.downstream + self._end - last.upstream, is_dense=False))
        self._append(_Pair(upstream, downstream, is_dense=sync.slot is not None))
        self._end = upstream + 1
        if len(self._pairs) > SLOTS:
            del self._upstreams[:-SLOTS], self._pairs[:-SLOTS]
            self._is_from_start = False

    def translate(self, upstream: int) -> Translated | None:
        """None: nothing is known of it."""
        if not self._pairs:
            return None
        at = bisect_right(self._upstreams, upstream) - 1
        if at < 0:
            first = self._pairs[0]
            return Translated(first.downstream, True) if self._is_from_start and first.is_dense else None
        pair = self._pairs[at]
        if upstream == pair.upstream:
            return Translated(pair.downstream, True)
        if not pair.is_dense:
            return Translated(pair.downstream + 1, False)
        wanted = pair.downstream + upstream - pair.upstream
        if at + 1 < len(self._pairs):
            return Translated(min(wanted, self._pairs[at + 1].downstream), True)
        # What is committed may not be copied yet.
        end = pair.downstream + self._end - pair.upstream
        return Translated(min(wanted, end), wanted <= end)

    def _continues(self, upstream: int, downstream: int) -> bool:
        if not self._pairs or upstream < self._pairs[-1].upstream:
            return False
        last = self._pairs[-1]
        return last.is_dense and downstream - last.downstream == upstream - last.upstream

    def _append(self, pair: _Pair) -> None:
        if self._upstreams and self._upstreams[-1] == pair.upstream:
            return
        self._upstreams.append(pair.upstream)
        self._pairs.append(pair)


class Offsets:
    """Of all partitions, by the topic's name at the source."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, int], PartitionOffsets] = {}

    def add(self, sync: OffsetSync) -> None:
        self._partitions.setdefault((sync.topic, sync.partition), PartitionOffsets()).add(sync)

    def translate(self, topic: str, partition: int, upstream: int) -> Translated | None:
        found = self._partitions.get((topic, partition))
        return None if found is None else found.translate(upstream)


class Tracking:
    """Which pairs are to be told of one partition, while its records are copied."""

    def __init__(self, topic: str, partition: int, slot: int = 0) -> None:
        self.topic, self.partition = topic, partition
        self.slot = slot
        """Of the next pair."""
        self._distance: int | None = None
        self.last: OffsetSync | None = None
        """The last record that was copied."""

    def see(self, upstream: int, downstream: int, count: int) -> OffsetSync | None:
        """So many records on end are at both offsets. The pair to be told, if there is one."""
        pair = None
        if downstream - upstream != self._distance:
            self._distance = downstream - upstream
            pair = OffsetSync(self.topic, self.partition, upstream, downstream, self.slot % SLOTS)
            self.slot += 1
        self.last = OffsetSync(self.topic, self.partition, upstream + count - 1, downstream + count - 1)
        return pair
