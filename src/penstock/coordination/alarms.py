"""The alarms of one host in one heap, so that one timer of the event loop serves them all.

Most alarms are session deadlines that each heartbeat pushes back and that never go off. Moving an alarm later
therefore only notes the new time; its old entry in the heap is corrected when it comes up. Moving it earlier
adds an entry. An alarm has at most a handful of entries, and each goes away when its time comes.
"""

import heapq
from collections.abc import Iterator

from penstock.coordination.form import AlarmKey

STALE_ENTRIES_MAX = 256
"""Entries of cancelled alarms that may wait in the heap, beyond as many as there are alarms, before a clean-
up."""


class AlarmHeap:
    __slots__ = ("_at_ms", "_heap", "_tiebreak")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, AlarmKey]] = []
        # (shard, key) → (when it is wanted, when its entry in the heap comes up)
        self._at_ms: dict[tuple[int, AlarmKey], tuple[int, int]] = {}
        self._tiebreak = 0

    def __len__(self) -> int:
        return len(self._at_ms)

    def set(self, shard: int, key: AlarmKey, at_ms: int | None) -> None:
        """Set, move or (None) cancel an alarm of a shard, which is known here by its partition."""
        name = (shard, key)
        if at_ms is None:
            self._at_ms.pop(name, None)
            if len(self._heap) > 2 * len(self._at_ms) + STALE_ENTRIES_MAX:
                self._rebuild()
            return
        queued = self._at_ms.get(name)
        if queued is not None and queued[1] <= at_ms:
            self._at_ms[name] = (at_ms, queued[1])
            return
        self._at_ms[name] = (at_ms, at_ms)
        self._tiebreak += 1
        heapq.heappush(self._heap, (at_ms, self._tiebreak, shard, key))

    def drop(self, shard: int) -> None:
        """Cancel all alarms of a shard that is gone."""
        for name in [name for name in self._at_ms if name[0] == shard]:
            del self._at_ms[name]
        self._rebuild()

    def next_at_ms(self) -> int | None:
        """When `due` has something to give at the earliest, or None."""
        self._settle()
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int) -> Iterator[tuple[int, AlarmKey]]:
        """Take out what is due, one by one, so that an alarm cancelled meanwhile does not go off."""
        while True:
            self._settle()
            if not self._heap or self._heap[0][0] > now_ms:
                return
            _, _, shard, key = heapq.heappop(self._heap)
            del self._at_ms[shard, key]
            yield shard, key

    def _settle(self) -> None:
        """Make the top of the heap an alarm that stands: drop cancelled entries, push back moved ones."""
        heap = self._heap
        while heap:
            queued_ms, tiebreak, shard, key = heap[0]
            wanted = self._at_ms.get((shard, key))
            if wanted is None or wanted[1] != queued_ms:
                heapq.heappop(heap)
            elif wanted[0] > queued_ms:
                self._at_ms[shard, key] = (wanted[0], wanted[0])
                heapq.heapreplace(heap, (wanted[0], tiebreak, shard, key))
            else:
                return

    def _rebuild(self) -> None:
        self._heap = []
        for (shard, key), (wanted_ms, _) in self._at_ms.items():
            self._tiebreak += 1
            self._heap.append((wanted_ms, self._tiebreak, shard, key))
            self._at_ms[shard, key] = (wanted_ms, wanted_ms)
        heapq.heapify(self._heap)
