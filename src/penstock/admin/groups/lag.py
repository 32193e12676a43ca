"""How far a group is: committed offsets beside the ends of the logs, and who reads each partition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from penstock.admin.groups.model import Committed, Description, Member
from penstock.admin.groups.requests import GroupRequests
from penstock.admin.offsets import LATEST
from penstock.model.ids import TopicPartition


class Progress(NamedTuple):
    partition: TopicPartition
    committed: Committed | None
    end_offset: int | None
    member: Member | None

    @property
    def lag(self) -> int | None:
        if self.committed is None or self.end_offset is None:
            return None
        return self.end_offset - self.committed.offset


class GroupLag(NamedTuple):
    """A group, and how far it is in each partition that it reads or has committed."""

    group: Description
    partitions: tuple[Progress, ...]


class TopicLag(NamedTuple):
    """One group's lag in one topic."""

    group: str
    topic: str
    partitions: int
    members: int
    state: str
    committed: int
    """The sum over its partitions: only its growth means something."""
    lag: int | None


def topic_lags(found: Iterable[GroupLag]) -> list[TopicLag]:
    """The same by topic."""
    lags = []
    for group, rows in found:
        by_topic: dict[str, list[Progress]] = {}
        for row in rows:
            by_topic.setdefault(row.partition.topic, []).append(row)
        for topic in sorted(by_topic):
            mine = by_topic[topic]
            known = [row.lag for row in mine if row.lag is not None]
            lags.append(
                TopicLag(
                    group.group_id,
                    topic,
                    len(mine),
                    len({row.member.member_id for row in mine if row.member is not None}),
                    group.state,
                    sum(row.committed.offset for row in mine if row.committed is not None),
                    sum(known) if known else None,
                )
            )
    return lags


class Pace:
    """Records per second of each group and topic, from one look to the next."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, str], int] = {}
        self._at_s = 0.0
        self.per_second: dict[tuple[str, str], float] = {}

    def look(self, found: Iterable[GroupLag], now_s: float) -> None:
        committed = {(one.group, one.topic): one.committed for one in topic_lags(found)}
        passed_s = now_s - self._at_s
        self.per_second = {
            key: (value - self._before[key]) / passed_s
            for key, value in committed.items()
            if key in self._before and passed_s > 0
        }
        self._before, self._at_s = committed, now_s


def progress(groups: GroupRequests, description: Description) -> list[Progress]:
    """Members with the most partitions first, each one's in order; then what was committed and nobody reads now."""
    committed = groups.committed(description.group_id)
    owners: list[tuple[Member | None, list[TopicPartition]]] = [
        (member, sorted(member.assignment))
        for member in sorted(description.members, key=lambda member: -len(member.assignment))
        if member.assignment
    ]
    owned = {partition for _, partitions in owners for partition in partitions}
    owners.append((None, sorted(committed.keys() - owned)))
    ends = groups.log_offsets(owned | committed.keys(), LATEST)
    return [
        Progress(partition, committed.get(partition), ends.get(partition), member)
        for member, partitions in owners
        for partition in partitions
    ]
