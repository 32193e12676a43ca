"""A copy of the groups that this broker coordinates: members, committed offsets, and where the partitions end that they read.

The copy is taken on the loop, some groups at a time, and holds the records of offsets as they are; a thread reads them. First the
offsets are copied and then the ends, so that a group is never shown beyond an end.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from penstock.broker.metrics.end_offsets import End, EndOffsets
from penstock.model.ids import TopicPartition

if TYPE_CHECKING:
    from penstock.broker.facets import WithClock, WithConfig, WithGroups
    from penstock.broker.metrics.end_offsets import Needs as EndOffsetsNeeds
    from penstock.groups.consumer.state import ConsumerGroup
    from penstock.groups.directory import GroupDirectory

    class Needs(EndOffsetsNeeds, WithClock, WithConfig, WithGroups, Protocol): ...


BUDGET_SECONDS: Final = 0.002
LOOK_AT_THE_CLOCK_EVERY: Final = 8
STATES: Final = ("Stable", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance")


class MemberFacts(NamedTuple):
    member_id: str
    client_id: str
    host: str
    assignment: "bytes | Mapping[bytes, Mapping[int, int]]"
    """Of a classic member what its leader sent; of another its partitions, by topic id."""


class GroupFacts(NamedTuple):
    name: str
    state: str
    members: tuple[MemberFacts, ...]
    offsets: dict[TopicPartition, bytes]


class GroupsFacts(NamedTuple):
    groups: list[GroupFacts]
    states: dict[str, int]
    """Also of groups that are left out."""
    protocols: dict[str, int]
    offset_count: int
    rebalances: int
    """JoinGroup requests that wait for others."""
    ends: dict[TopicPartition, End]
    left_out_groups: int
    now_s: float
    cluster_id: str
    topic_names: dict[bytes, str]


class GroupsCopy:
    def __init__(self, node: "Needs") -> None:
        self._node = node
        self._ends = EndOffsets(node)

    def stop(self) -> None:
        self._ends.stop()

    async def take(self) -> GroupsFacts:
        node = self._node
        get = node.config.get
        most_groups = get("penstock.metrics.max.groups") if get("penstock.metrics.groups") else 0
        most_offsets = get("penstock.metrics.max.group.partitions")
        groups: list[GroupFacts] = []
        wanted: set[TopicPartition] = set()
        ids: set[bytes] = set()
        states = dict.fromkeys(STATES, 0)
        protocols = {"classic": 0, "consumer": 0}
        kept_offsets = left_out = rebalances = offset_count = 0
        time = node.clock.monotonic
        began, number = time(), 0
        for directory in node.groups.directories():
            rebalances += sum(group.joined_count for group in directory.alive.values())
            offset_count += directory.offsets.totals()
            for name in directory.names():
                number += 1
                if number % LOOK_AT_THE_CLOCK_EVERY == 0 and time() - began > BUDGET_SECONDS:
                    await asyncio.sleep(0)
                    began = time()
                is_new = directory.consumers.get(name) is not None
                protocols["consumer" if is_new else "classic"] += 1
                state, members = _of_group(directory, name)
                states[state] = states.get(state, 0) + 1
                count = directory.offsets.count(name)
                if len(groups) >= most_groups or kept_offsets + count > most_offsets:
                    left_out += 1
                    continue
                kept_offsets += count
                group = GroupFacts(name, state, members, directory.offsets.values(name))
                groups.append(group)
                wanted.update(group.offsets)
                for member in members:
                    if not isinstance(member.assignment, bytes):
                        ids.update(member.assignment)
        await asyncio.sleep(0)
        ends = await self._ends.of(wanted)
        await asyncio.sleep(0)
        return GroupsFacts(
            groups=groups,
            states=states,
            protocols=protocols,
            offset_count=offset_count,
            rebalances=rebalances,
            ends=ends,
            left_out_groups=left_out if get("penstock.metrics.groups") else 0,
            now_s=node.clock.now_ms() / 1000,
            cluster_id=node.image.cluster_id,
            topic_names={id: topic for id in ids if (topic := node.image.topic_name(id)) is not None},
        )


def _of_group(directory: "GroupDirectory", name: str) -> tuple[str, tuple[MemberFacts, ...]]:
    """Its state and members; those of a group that only its record knows are there until their sessions end."""
    consumer = directory.consumers.get(name)
    if consumer is not None:
        return _of_consumer_group(consumer)
    group = directory.alive.get(name)
    if group is None:
        return "Empty", ()
    return str(group.state), tuple(
        MemberFacts(member.member_id, member.client_id, member.client_host, member.assignment)
        for member in group.members.values()
    )


def _of_consumer_group(group: "ConsumerGroup") -> tuple[str, tuple[MemberFacts, ...]]:
    return str(group.state), tuple(
        MemberFacts(member.member_id, member.client_id, member.client_host, member.assigned)
        for member in group.members.values()
    )
