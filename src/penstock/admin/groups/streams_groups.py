"""Streams groups (KIP-1071): state, members, lag. Apache Kafka 4.1 and later have them; Penstock has not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from penstock.admin.groups.model import Coordinator
from penstock.admin.groups.requests import GroupRequests
from penstock.admin.offsets import EARLIEST, LATEST
from penstock.client.errors import UserError
from penstock.client.wire_client import UnsupportedByBroker
from penstock.model.ids import TopicPartition
from penstock.wire.messages.streams_group_describe import (
    Assignment,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    Subtopology,
    TaskIds,
)

TYPE: Final = "Streams"
STATES: Final = ("NotReady", "Stable", "Empty", "Reconciling", "Dead", "Assigning")
NOT_THERE: Final = (
    "the brokers of this cluster have no streams groups (Apache Kafka 4.1 and later have them, Penstock has not). "
    "Programs of Kafka Streams without group.protocol=streams are groups of consumers: kafka-consumer-groups"
)


class Tasks(NamedTuple):
    """Partitions by subtopology."""

    active: dict[str, list[int]]
    standby: dict[str, list[int]]
    warmup: dict[str, list[int]]


class StreamsMember(NamedTuple):
    member_id: str
    process_id: str
    client_id: str
    epoch: int
    topology_epoch: int
    is_classic: bool
    assigned: Tasks
    target: Tasks


class StreamsGroup(NamedTuple):
    group_id: str
    state: str
    coordinator: Coordinator
    members: list[StreamsMember]
    group_epoch: int
    assignment_epoch: int
    sources: dict[str, list[str]]
    """By subtopology: the topics that it reads, those between subtopologies too."""


class SourceOffset(NamedTuple):
    committed: int | None
    leader_epoch: int | None
    end_offset: int
    lag: int


def check_streams_groups(groups: GroupRequests) -> None:
    """UserError where the brokers have none of the kind."""
    try:
        groups.client.ask(StreamsGroupDescribeRequest(group_ids=[]), StreamsGroupDescribeResponse)
    except UnsupportedByBroker:
        raise UserError(NOT_THERE) from None


def streams_groups(groups: GroupRequests, group_ids: Iterable[str]) -> list[StreamsGroup]:
    """Refused where one is not there, or is of another kind."""
    return [_described(groups, group_id) for group_id in group_ids]


def _described(groups: GroupRequests, group_id: str) -> StreamsGroup:
    node, group = groups.described_by_coordinator(
        group_id, StreamsGroupDescribeRequest(group_ids=[group_id]), StreamsGroupDescribeResponse
    )
    members = [
        StreamsMember(
            member.member_id,
            member.process_id,
            member.client_id,
            member.member_epoch,
            member.topology_epoch,
            member.is_classic,
            _tasks(member.assignment),
            _tasks(member.target_assignment),
        )
        for member in group.members
    ]
    parts: Sequence[Subtopology] = () if group.topology is None else group.topology.subtopologies or ()
    sources = {
        part.subtopology_id: [*part.source_topics, *(topic.name for topic in part.repartition_source_topics)]
        for part in parts
    }
    return StreamsGroup(
        group_id, group.group_state, node, members, group.group_epoch, group.assignment_epoch, sources
    )


def _tasks(assignment: Assignment) -> Tasks:
    def of(tasks: Iterable[TaskIds]) -> dict[str, list[int]]:
        return dict(sorted((each.subtopology_id, sorted(each.partitions)) for each in tasks))

    return Tasks(of(assignment.active_tasks), of(assignment.standby_tasks), of(assignment.warmup_tasks))


def source_offsets(groups: GroupRequests, group: StreamsGroup) -> dict[TopicPartition, SourceOffset]:
    """Of each partition that a member of the group reads, in order. Where nothing is committed the lag is the whole log."""
    read = sorted(
        {
            TopicPartition(topic, number)
            for member in group.members
            for subtopology, numbers in member.assigned.active.items()
            for topic in group.sources.get(subtopology, ())
            for number in numbers
        }
    )
    if not read:
        return {}
    committed = groups.committed(group.group_id)
    starts, ends = (groups.log_offsets(read, when) for when in (EARLIEST, LATEST))
    found = {}
    for one in read:
        if one in ends:
            known = committed.get(one)
            offset = None if known is None else known.offset
            lag = ends[one] - (starts.get(one, 0) if offset is None else offset)
            found[one] = SourceOffset(offset, None if known is None else known.leader_epoch, ends[one], lag)
    return found
