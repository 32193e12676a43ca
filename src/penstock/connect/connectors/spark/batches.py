"""Which records belong to which batch of the sink, so that a batch that is written again is the same one. Pure.

A plan says a batch's number, the offsets that it has of each topic partition, and where the next batch begins. It is kept before
the batch is written and marked when it is written. After a crash between the two, exactly these records are waited for again:

    plan 7: orders-0 from 40 to 55, orders-1 from 9 to 12     written, not marked
    then:   orders-0 is read from 40 and orders-1 from 9; batch 7 goes out when 54 and 11 have come, or what is behind them
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.connect.interface import TopicPlace
from penstock.connect.records import SinkRecord


@dataclass(frozen=True)
class Plan:
    number: int
    ranges: Mapping[TopicPlace, tuple[int, int]]
    """First and end offset."""
    ends: Mapping[TopicPlace, int] = field(default_factory=dict)
    """Of all partitions that were ever written."""

    def to_json(self) -> dict[str, Any]:
        return {
            "batch": self.number,
            "ranges": [[*place, *bounds] for place, bounds in self.ranges.items()],
            "ends": [[*place, end] for place, end in self.ends.items()],
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Plan:
        return cls(
            said["batch"],
            {(topic, partition): (start, end) for topic, partition, start, end in said["ranges"]},
            {(topic, partition): end for topic, partition, end in said["ends"]},
        )


class Batches:
    """`last` is the plan that was made last, and whether it is written."""

    def __init__(self, last: Plan | None = None, *, is_written: bool = True) -> None:
        self._waits_for = None if last is None or is_written else last
        self._next = 0 if last is None else last.number + (1 if is_written else 0)
        self._ends = dict(last.ends) if last is not None else {}
        self._starts = dict(self._ends)
        if self._waits_for is not None:
            self._starts.update({place: bounds[0] for place, bounds in self._waits_for.ranges.items()})
        self._seen: dict[TopicPlace, int] = {}
        self._records: list[SinkRecord] = []

    def __len__(self) -> int:
        return len(self._records)

    @property
    def waits_for(self) -> Plan | None:
        return self._waits_for

    def starts(self, places: Sequence[TopicPlace]) -> dict[TopicPlace, int]:
        """Where partitions that were written before are to be read from."""
        return {place: self._starts[place] for place in places if place in self._starts}

    def add(self, records: Sequence[SinkRecord]) -> None:
        """Without those that were added, or written, before."""
        for record in records:
            topic, partition, offset = record.original
            place = topic, partition
            if offset >= self._starts.get(place, -1):
                self._records.append(record)
                self._starts[place] = offset + 1
        self.seen(self._starts)

    def seen(self, positions: Mapping[TopicPlace, int]) -> None:
        """So far the partitions were read: what is not there of what is in front will not come."""
        for place, position in positions.items():
            self._seen[place] = max(position, self._seen.get(place, 0))

    def cut(self) -> tuple[Plan, list[SinkRecord]] | None:
        """The next batch. None: there is nothing, or something of a batch that was begun is still to come."""
        waited = self._waits_for
        if waited is not None:
            if any(self._seen.get(place, 0) < end for place, (_, end) in waited.ranges.items()):
                return None
            return waited, [record for record in self._records if _is_in(record, waited.ranges)]
        if not self._records:
            return None
        ranges: dict[TopicPlace, tuple[int, int]] = {}
        for record in self._records:
            topic, partition, offset = record.original
            start, _ = ranges.get((topic, partition), (offset, offset))
            ranges[topic, partition] = (start, offset + 1)
        ends = {**self._ends, **{place: end for place, (_, end) in ranges.items()}}
        return Plan(self._next, ranges, ends), list(self._records)

    def begun(self, plan: Plan) -> None:
        """It is kept: whatever fails now, it is this one that is written next."""
        self._waits_for = plan

    def written(self, plan: Plan) -> None:
        self._records = [record for record in self._records if not _is_in(record, plan.ranges)]
        self._ends = dict(plan.ends)
        self._next = plan.number + 1
        self._waits_for = None

    def forget(self, places: Sequence[TopicPlace]) -> None:
        """They go to somebody else, or come again."""
        gone = set(places)
        self._records = [record for record in self._records if record.original[:2] not in gone]
        for place in gone:
            self._seen.pop(place, None)
            self._starts.pop(place, None)
            if place in self._ends:
                self._starts[place] = self._ends[place]
            if self._waits_for is not None and place in self._waits_for.ranges:
                self._starts[place] = self._waits_for.ranges[place][0]


def _is_in(record: SinkRecord, ranges: Mapping[TopicPlace, tuple[int, int]]) -> bool:
    topic, partition, offset = record.original
    bounds = ranges.get((topic, partition))
    return bounds is not None and bounds[0] <= offset < bounds[1]
