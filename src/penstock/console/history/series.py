"""What is kept of a look ◇: which series, and when a value is worth a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import nlargest
from typing import Final, NamedTuple

from penstock.console.clusters.model import ClusterView, GroupRow, TopicRow, Totals

MAX_TOPICS: Final = 2_000
"""With series of their own: those with most records per second, then by size. The others keep what they have."""
MAX_GROUPS: Final = 2_000
"""Those that are furthest behind."""
HEARTBEAT_S: Final = 600.0
"""After so long a value is written again though it is the same."""


class Point(NamedTuple):
    at_s: float
    value: float


def series_of(view: ClusterView) -> Iterator[tuple[str, float]]:
    """Names and values: `cluster/lag`, `broker/1/bytes_in`, `topic/orders/rate`, `group/billing/lag_s`."""
    yield from _totals("cluster", view.totals)
    sizes = [one.size_bytes for one in view.brokers if one.size_bytes is not None]
    if sizes:
        yield "cluster/size", float(sum(sizes))
    for broker, totals in view.by_broker.items():
        yield from _totals(f"broker/{broker}", totals)
    topics: Iterable[TopicRow] = view.topics.values()
    if len(view.topics) > MAX_TOPICS:
        topics = nlargest(MAX_TOPICS, topics, key=lambda one: (one.per_second or 0.0, one.size_bytes or 0))
    for topic in topics:
        if topic.per_second is not None:
            yield f"topic/{topic.name}/rate", topic.per_second
        if topic.size_bytes is not None:
            yield f"topic/{topic.name}/size", float(topic.size_bytes)
    groups: Iterable[GroupRow] = view.groups.values()
    if len(view.groups) > MAX_GROUPS:
        groups = nlargest(MAX_GROUPS, groups, key=lambda one: (one.lag or 0, one.members or 0))
    for group in groups:
        if group.lag is not None:
            yield f"group/{group.name}/lag", float(group.lag)
        if group.lag_s is not None:
            yield f"group/{group.name}/lag_s", group.lag_s
        if group.per_second is not None:
            yield f"group/{group.name}/rate", group.per_second


def _totals(prefix: str, totals: Totals) -> Iterator[tuple[str, float]]:
    for name, value in totals._asdict().items():
        if value is not None:
            yield f"{prefix}/{name}", float(value)


def is_worth_a_row(value: float, at_s: float, last: Point | None) -> bool:
    return last is None or value != last.value or at_s - last.at_s >= HEARTBEAT_S


def thinned(points: list[Point], *, since_s: float, until_s: float, most: int) -> list[Point]:
    """At most so many points: of each stretch of time the one with the greatest value, at its own time, so that peaks stay.

    >>> thinned([Point(1, 5.0), Point(2, 9.0), Point(3, 1.0)], since_s=0, until_s=4, most=2)
    [Point(at_s=1, value=5.0), Point(at_s=2, value=9.0)]
    """
    if len(points) <= most:
        return points
    width_s = max(1e-9, (until_s - since_s) / most)
    best: dict[int, Point] = {}
    for point in points:
        place = int((point.at_s - since_s) / width_s)
        known = best.get(place)
        if known is None or point.value > known.value:
            best[place] = point
    return [best[place] for place in sorted(best)][-most:]


def shown(points: Mapping[str, list[Point]]) -> dict[str, list[tuple[int, float]]]:
    """For charts: milliseconds, and values with few digits."""
    return {
        name: [(round(at_s * 1000), round(value, 2)) for at_s, value in each] for name, each in points.items()
    }
