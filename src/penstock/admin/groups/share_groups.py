"""Share groups (KIP-932): state, members, offsets. Apache Kafka 4.1 and later have them; Penstock has not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from penstock.admin.groups.model import Coordinator
from penstock.admin.groups.requests import GroupRequests
from penstock.client.error_names import refused
from penstock.client.errors import UserError
from penstock.client.wire_client import UnsupportedByBroker
from penstock.model.ids import TopicPartition
from penstock.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)
from penstock.wire.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse

TYPE: Final = "Share"
STATES: Final = ("Dead", "Stable", "Empty")
NOT_THERE: Final = (
    "the brokers of this cluster have no share groups (Apache Kafka 4.1 and later have them, Penstock has not). "
    "Groups of consumers: kafka-consumer-groups"
)


class ShareMember(NamedTuple):
    member_id: str
    host: str
    client_id: str
    epoch: int
    assignment: list[TopicPartition]


class ShareGroup(NamedTuple):
    group_id: str
    state: str
    coordinator: Coordinator
    members: list[ShareMember]
    group_epoch: int
    assignment_epoch: int


class StartOffset(NamedTuple):
    """From where on records are shared. None where nobody has read the partition yet, or where the brokers do not say it."""

    offset: int | None
    leader_epoch: int | None
    lag: int | None


def check_share_groups(groups: GroupRequests) -> None:
    """UserError where the brokers have none of the kind."""
    try:
        groups.client.ask(ShareGroupDescribeRequest(group_ids=[]), ShareGroupDescribeResponse)
    except UnsupportedByBroker:
        raise UserError(NOT_THERE) from None


def share_groups(groups: GroupRequests, group_ids: Iterable[str]) -> list[ShareGroup]:
    """Refused where one is not there, or is of another kind."""
    return [_described(groups, group_id) for group_id in group_ids]


def _described(groups: GroupRequests, group_id: str) -> ShareGroup:
    node, group = groups.described_by_coordinator(
        group_id, ShareGroupDescribeRequest(group_ids=[group_id]), ShareGroupDescribeResponse
    )
    members = [
        ShareMember(
            member.member_id,
            member.client_host,
            member.client_id,
            member.member_epoch,
            sorted(
                TopicPartition(topic.topic_name, number)
                for topic in member.assignment.topic_partitions
                for number in topic.partitions
            ),
        )
        for member in group.members
    ]
    return ShareGroup(group_id, group.group_state, node, members, group.group_epoch, group.assignment_epoch)


def start_offsets(groups: GroupRequests, group_id: str) -> dict[TopicPartition, StartOffset]:
    """Of each partition of the group's topics, in order."""
    request = DescribeShareGroupOffsetsRequest(
        groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)]
    )
    answer = groups.ask_coordinator(
        group_id,
        request,
        DescribeShareGroupOffsetsResponse,
        codes=lambda answer: [group.error_code for group in answer.groups],
    )
    found: dict[TopicPartition, StartOffset] = {}
    for group in answer.groups:
        if group.error_code:
            raise refused(group.error_code, group.error_message)
        for topic in group.topics:
            for one in topic.partitions:
                if one.error_code:
                    raise refused(one.error_code, one.error_message)
                is_known = one.start_offset >= 0
                found[TopicPartition(topic.topic_name, one.partition_index)] = StartOffset(
                    one.start_offset if is_known else None,
                    one.leader_epoch if is_known else None,
                    one.lag if one.lag >= 0 else None,
                )
    return dict(sorted(found.items()))
