"""Where a read begins and ends in each partition, from the forms that a person may write.

"earliest", "latest", an offset, a datetime (the first record at or after it; without a time zone: local time), or a
mapping of partitions to any of these; partitions that it leaves out are read from their first or to their last record.
The end is exclusive. What lies outside of a partition's records is brought to their nearest end.
Example: records 100 … 109 are there; start 0 and end 105 give 100 … 104.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from penstock.client.errors import BadOption
from penstock.client.fetching import Range
from penstock.client.topics import EARLIEST, LATEST, Client, Topic

Place = str | int | datetime
Places = Place | Mapping[int, Place]
_NAMED: Final = {"earliest": EARLIEST, "latest": LATEST}


def check_places(option: str, places: Places) -> None:
    """BadOption for what is no place, before any broker is asked."""
    if isinstance(places, Mapping):
        for partition, place in places.items():
            if isinstance(partition, bool) or not isinstance(partition, int) or partition < 0:
                raise BadOption(f"{option}: {partition!r} is not a partition")
            _check_place(f"{option}[{partition}]", place)
    else:
        _check_place(option, places)


def _check_place(option: str, place: object) -> None:
    if isinstance(place, bool) or not isinstance(place, str | int | datetime):
        raise BadOption(f"{option}: {place!r} is not an offset, a datetime, 'earliest' or 'latest'")
    if isinstance(place, str) and place not in _NAMED:
        raise BadOption(f"{option}: '{place}' is not 'earliest' or 'latest'; give an offset as a number")
    if isinstance(place, int) and place < 0:
        raise BadOption(f"{option}: an offset is 0 or more, not {place}")


def chosen_partitions(topic: Topic, wanted: Iterable[int] | None, *, start: Places, end: Places) -> list[int]:
    for option, partitions in (
        ("partitions", wanted or ()),
        ("start", start if isinstance(start, Mapping) else ()),
        ("end", end if isinstance(end, Mapping) else ()),
    ):
        for partition in partitions:
            if partition not in topic.leaders:
                raise BadOption(
                    f"{option}: {topic.name} has no partition {partition!r}: it has {len(topic.leaders)}"
                )
    return sorted(topic.leaders if wanted is None else set(wanted))


def find_ranges(
    client: Client, topic: Topic, partitions: list[int], *, start: Places, end: Places, isolation_level: int
) -> dict[int, Range]:
    """The end of a reader of committed records is the last stable offset, where the first open transaction begins."""
    firsts = client.offsets(topic, dict.fromkeys(partitions, EARLIEST), isolation_level=isolation_level)
    lasts = client.offsets(topic, dict.fromkeys(partitions, LATEST), isolation_level=isolation_level)
    starts = _places(start, partitions, default="earliest")
    ends = _places(end, partitions, default="latest")
    start_times = _by_time(client, topic, starts, isolation_level)
    end_times = _by_time(client, topic, ends, isolation_level)
    ranges = {}
    for partition in partitions:
        bounds = Range(firsts.get(partition) or 0, lasts.get(partition) or 0)
        first = _offset(starts[partition], bounds, start_times.get(partition))
        last = _offset(ends[partition], bounds, end_times.get(partition))
        first = min(max(first, bounds.start_offset), bounds.end_offset)
        ranges[partition] = Range(first, max(first, min(last, bounds.end_offset)))
    return ranges


def _places(places: Places, partitions: list[int], *, default: str) -> dict[int, Place]:
    if isinstance(places, Mapping):
        return {partition: places.get(partition, default) for partition in partitions}
    return dict.fromkeys(partitions, places)


def _by_time(
    client: Client, topic: Topic, places: dict[int, Place], isolation_level: int
) -> dict[int, int | None]:
    times = {
        partition: max(
            0, -int(-place.timestamp() * 1000 // 1)
        )  # rounded up: a record just before is not at or after
        for partition, place in places.items()
        if isinstance(place, datetime)
    }
    return client.offsets(topic, times, isolation_level=isolation_level) if times else {}


def _offset(place: Place, bounds: Range, at_time: int | None) -> int:
    if isinstance(place, datetime):
        return bounds.end_offset if at_time is None else at_time
    if isinstance(place, int):
        return place
    return bounds.start_offset if place == "earliest" else bounds.end_offset
