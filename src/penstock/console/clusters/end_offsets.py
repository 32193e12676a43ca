"""Where logs ended at which time ◇, and from it: how old, in seconds, the first record is that a group has not read.

As kafka-lag-exporter does it: the committed offset lies between two points of the sampled history of the partition's end,
and so does its time. Where these are far apart, or the history begins after the offset was written, the record's own timestamp
is another point, as soon as it was looked up. Until then a history is extended backwards by its own slope, and where
it has none (nothing was written since the console looks) the lag in seconds is not known.

    (10 s, 100) … (20 s, 200): offset 150 was written at about 15 s; at 30 s that is a lag of 15 s.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from math import inf
from typing import Final

from penstock.model.ids import TopicPartition

MAX_POINTS: Final = 60
"""Of one partition. When there are more, every second one of the older half goes."""
FAR_APART_S: Final = 60.0
"""Between two points: nothing may have been written for most of it."""
MAX_GUESS_S: Final = 7 * 86_400.0
"""No lag is told as greater where it is only extended backwards."""


class PartitionEnds:
    """The points of one partition: times and offsets, both growing."""

    __slots__ = ("_offsets", "_times")

    def __init__(self) -> None:
        self._times = array("d")
        self._offsets = array("q")

    def __len__(self) -> int:
        return len(self._times)

    def add(self, at_s: float, end_offset: int) -> None:
        """A log that ends before where it ended is another log: its topic was made anew."""
        times, offsets = self._times, self._offsets
        if offsets and end_offset < offsets[-1]:
            del times[:], offsets[:]
        # Of a level stretch only its two ends are kept.
        if len(offsets) >= 2 and offsets[-1] == end_offset == offsets[-2]:
            times[-1] = at_s
            return
        times.append(at_s)
        offsets.append(end_offset)
        self._thin()

    def _thin(self) -> None:
        if len(self._times) > MAX_POINTS:
            half = MAX_POINTS // 2
            self._times = self._times[:half:2] + self._times[half:]
            self._offsets = self._offsets[:half:2] + self._offsets[half:]

    def knows(self, offset: int) -> bool:
        """Whether the time of this offset is between two points that are not far apart."""
        place = bisect_right(self._offsets, offset)
        if place == 0 or not self._offsets:
            return False
        return place == len(self._offsets) or self._times[place] - self._times[place - 1] <= FAR_APART_S

    def insert(self, at_s: float, offset: int) -> None:
        """A point from a record's own timestamp, among those that are there. Times stay in order."""
        place = bisect_left(self._offsets, offset)
        if place == len(self._offsets):
            return
        before_s = self._times[place - 1] if place else -inf
        at_s = max(before_s, min(at_s, self._times[place]))
        if self._offsets[place : place + 2].tolist() == [offset, offset]:
            self._times[place] = at_s  # a level stretch, which began earlier than we have seen
            return
        self._times.insert(place, at_s)
        self._offsets.insert(place, offset)
        self._thin()

    def time_of(self, offset: int) -> float | None:
        """When the record with this offset was written, about."""
        times, offsets = self._times, self._offsets
        if not offsets:
            return None
        # The first point whose end lies behind the record: it was written before that point, and after the one before it.
        place = bisect_right(offsets, offset)
        if place == len(offsets):
            return times[-1]
        if place > 0:
            before, after = place - 1, place
            share = (offset - offsets[before]) / (offsets[after] - offsets[before])
            return times[before] + share * (times[after] - times[before])
        grown = offsets[-1] - offsets[0]
        if grown <= 0:
            return None
        slope_s = (times[-1] - times[0]) / grown
        return max(times[0] - (offsets[0] - offset) * slope_s, times[-1] - MAX_GUESS_S)


class EndHistory:
    """Of all partitions that groups read. Bounded: those that nobody reads any more are forgotten."""

    def __init__(self) -> None:
        self._ends: dict[TopicPartition, PartitionEnds] = {}

    def __len__(self) -> int:
        return len(self._ends)

    def add(self, at_s: float, ends: Mapping[TopicPartition, int], read: Iterable[TopicPartition]) -> None:
        """`read`: the partitions in which groups have offsets."""
        kept: dict[TopicPartition, PartitionEnds] = {}
        for partition in read:
            known = self._ends.get(partition) or kept.get(partition) or PartitionEnds()
            if partition not in kept and partition in ends:
                known.add(at_s, ends[partition])
            kept[partition] = known
        self._ends = kept

    def insert(self, partition: TopicPartition, at_s: float, offset: int) -> None:
        ends = self._ends.get(partition)
        if ends is not None:
            ends.insert(at_s, offset)

    def knows(self, partition: TopicPartition, offset: int) -> bool:
        """Whether the time of this offset is between points that are near, and not guessed."""
        ends = self._ends.get(partition)
        return ends is not None and ends.knows(offset)

    def lag_s(self, partition: TopicPartition, committed: int, end_offset: int, at_s: float) -> float | None:
        """0 where nothing is left to be read; never negative."""
        if committed >= end_offset:
            return 0.0
        ends = self._ends.get(partition)
        written_s = None if ends is None else ends.time_of(committed)
        return None if written_s is None else max(0.0, at_s - written_s)
