"""Offsets of groups at the source, translated, and set at the target."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from penstock.admin import Cluster
from penstock.client.errors import Refused
from penstock.mirror.translation import Offsets
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition

log = logging.getLogger("penstock.mirror")

_FREE: Final = frozenset({"Empty", "Dead"})
_MISSING: Final = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class GroupPlace(NamedTuple):
    upstream: int
    downstream: int
    is_exact: bool


Places = dict[TopicPartition, GroupPlace]
"""By the partition at the target."""


def groups_of(cluster: Cluster, wants: Callable[[str], bool]) -> list[str]:
    """Groups of consumers that have committed something, or may have."""
    listed = cluster.groups.list()
    return sorted(one.group_id for one in listed if one.is_of_consumers and wants(one.group_id))


def translated(
    cluster: Cluster,
    group: str,
    offsets: Offsets,
    *,
    wants: Callable[[str], bool],
    remote: Callable[[str], str],
) -> tuple[Places, list[TopicPartition]]:
    """And the partitions of the source of which nothing is known."""
    found: Places = {}
    unknown = []
    for place, committed in cluster.groups.committed(group).items():
        if not wants(place.topic):
            continue
        said = offsets.translate(place.topic, place.partition, committed.offset)
        if said is None:
            unknown.append(place)
        else:
            found[TopicPartition(remote(place.topic), place.partition)] = GroupPlace(
                committed.offset, said.offset, said.is_exact
            )
    return found, unknown


def is_free(cluster: Cluster, group: str) -> bool:
    """Nobody reads there as this group."""
    described = cluster.groups.describe_each([group])[group]
    if isinstance(described, Refused):
        if described.code in _MISSING:
            return True
        raise described
    return described.state in _FREE


def set_offsets(
    cluster: Cluster, group: str, places: Mapping[TopicPartition, int], *, goes_back: bool = False
) -> dict[TopicPartition, int]:
    """What was set. A group that is at work is left alone; one that is further stays there, unless `goes_back`."""
    if not places or not is_free(cluster, group):
        return {}
    try:
        now = {place: one.offset for place, one in cluster.groups.committed(group).items()}
    except Refused as error:
        if error.code not in _MISSING:
            raise
        now = {}
    wanted = {
        place: offset
        for place, offset in places.items()
        if now.get(place) != offset and (goes_back or now.get(place, -1) < offset)
    }
    if wanted:
        cluster.groups.commit(group, wanted)
    return wanted


def dealt_groups(groups: Iterable[str], tasks: int) -> list[list[str]]:
    every = list(groups)
    found: list[list[str]] = [[] for _ in range(min(tasks, len(every)))]
    for number, group in enumerate(every):
        found[number % len(found)].append(group)
    return found
