"""From options and what the cluster says to the ranges that tasks read. The decisions of a batch, without its records."""

from __future__ import annotations

from collections.abc import Collection, Container
from typing import Protocol

from penstock.model.ids import TopicPartition
from penstock.spark.failures import BadOption, DataLoss
from penstock.spark.options import Positions, ReadOptions
from penstock.spark.reading.offsets import EARLIEST, LATEST, OffsetRange, Offsets, TopicIds


class Cluster(Protocol):
    """What `topics.Topics` has."""

    def earliest(self, places: Collection[TopicPartition]) -> Offsets: ...

    def latest(self, places: Collection[TopicPartition]) -> Offsets: ...

    def at(self, timestamps_ms: dict[TopicPartition, int]) -> dict[TopicPartition, int | None]: ...


def starting_offsets(options: ReadOptions, cluster: Cluster, places: list[TopicPartition]) -> Offsets:
    return _resolved(options.starting, cluster, places, past_the_end=options.past_the_end)


def ending_offsets(options: ReadOptions, cluster: Cluster, places: list[TopicPartition]) -> Offsets:
    return _resolved(options.ending, cluster, places, past_the_end="latest")


def _resolved(
    positions: Positions, cluster: Cluster, places: list[TopicPartition], *, past_the_end: str
) -> Offsets:
    wanted = positions.by_partition
    if positions.everywhere is not None:
        wanted = dict.fromkeys(places, positions.everywhere)
    elif set(wanted) != set(places):
        raise BadOption(positions.option, _difference(set(wanted), set(places)))
    if positions.are_timestamps:
        return _at_timestamps(positions, cluster, wanted, past_the_end)
    earliest = cluster.earliest([place for place in places if wanted[place] == EARLIEST])
    latest = cluster.latest([place for place in places if wanted[place] == LATEST])
    return {**wanted, **earliest, **latest}


def _at_timestamps(positions: Positions, cluster: Cluster, wanted: Offsets, past_the_end: str) -> Offsets:
    found = cluster.at(wanted)
    beyond = [place for place, offset in found.items() if offset is None]
    if beyond and past_the_end == "error":
        raise BadOption(
            positions.option,
            f"asks for {wanted[beyond[0]]} in {beyond[0]}, where every record is earlier "
            "(startingOffsetsByTimestampStrategy=latest would start at its end)",
        )
    offsets = {place: offset for place, offset in found.items() if offset is not None}
    return {**offsets, **cluster.latest(beyond)}


def _difference(given: set[TopicPartition], there: set[TopicPartition]) -> str:
    if there - given:
        return f"must name every partition that is read: {min(there - given)} is missing"
    return f"names {min(given - there)}, which is not read"


def batch_ranges(options: ReadOptions, cluster: Cluster, places: list[TopicPartition]) -> list[OffsetRange]:
    """Of a batch query."""
    start = starting_offsets(options, cluster, places)
    end = ending_offsets(options, cluster, places)
    if options.ending.by_partition and not options.ending.are_timestamps:
        end = _reachable(options, end, cluster.latest(places))
    return [OffsetRange(*place, start[place], end[place]) for place in places if start[place] < end[place]]


def _reachable(options: ReadOptions, end: Offsets, latest: Offsets) -> Offsets:
    """A task would wait for records that nobody has written."""
    for place in sorted(end):
        if end[place] > latest[place] and options.fail_on_data_loss:
            raise BadOption(
                options.ending.option, f"asks for {end[place]} in {place}, which ends at {latest[place]}"
            )
    return {place: min(offset, latest[place]) for place, offset in end.items()}


def still_valid(
    offsets: Offsets, *, topic_ids: TopicIds, topic_ids_now: TopicIds, fail_on_data_loss: bool
) -> Offsets:
    """Where a query is in topics that are what they were. One that was made anew begins again, like a new one."""
    anew = {topic for topic, topic_id in topic_ids.items() if topic_ids_now.get(topic, topic_id) != topic_id}
    if anew and fail_on_data_loss:
        raise DataLoss(f"the topic '{min(anew)}' was deleted and created anew")
    return {place: offset for place, offset in offsets.items() if place.topic not in anew}


def stream_ranges(
    start: Offsets,
    end: Offsets,
    cluster: Cluster,
    *,
    fail_on_data_loss: bool,
    same_topics: Container[str] = (),
) -> list[OffsetRange]:
    """Of a micro-batch. A partition that is new starts at its earliest record, like one whose topic was made anew.

    A partition that became shorter was made anew, unless its topic is one of `same_topics`: then it lost its last records
    in a crash, and what comes next is behind its new end.

    Which partitions have a range follows from `start` and `end` alone, whatever happened since to the records: a batch
    that is replayed has to have the same tasks.
    """
    if fail_on_data_loss and (gone := start.keys() - end.keys()):
        raise DataLoss(f"the partition {min(gone)} is gone")
    places = [place for place in sorted(end) if end[place] != start.get(place, 0)]
    shorter = [place for place in places if place in start and end[place] < start[place]]
    unsure = [place for place in places if place not in start]
    unsure += [place for place in shorter if place.topic not in same_topics]
    earliest = cluster.earliest(unsure) if unsure else {}
    if fail_on_data_loss:
        for place in shorter:
            raise DataLoss(f"the end of {place} went back from {start[place]} to {end[place]}")
        for place in unsure:
            if earliest[place] > 0:
                raise DataLoss(f"the new partition {place} starts at {earliest[place]}, not at 0")
    ranges = []
    for place in places:
        first = earliest[place] if place in earliest else start[place]
        ranges.append(OffsetRange(*place, min(first, end[place]), end[place]))
    return ranges
