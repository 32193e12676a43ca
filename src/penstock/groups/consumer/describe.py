"""ConsumerGroupDescribe, and a consumer group's line in ListGroups."""

from typing import Final

from penstock.groups.consumer.assignors import offered_assignors
from penstock.groups.consumer.state import NO_TARGET, ConsumerGroup, Member
from penstock.groups.options import GroupOptions
from penstock.groups.state import CONSUMER_PROTOCOL_TYPE
from penstock.groups.topics import Topics
from penstock.model.errors import ErrorCode
from penstock.wire.messages.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    TopicPartitions,
)
from penstock.wire.messages.consumer_group_describe import Member as DescribedMember
from penstock.wire.messages.list_groups import ListedGroup

CONSUMER: Final = "consumer"
CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1


def listed(group: ConsumerGroup) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        group_state=group.state.value,
        group_type=CONSUMER,
    )


def described(group: ConsumerGroup, options: GroupOptions, topics: Topics) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(offered_assignors(options.consumer_assignors)),
        members=[_described_member(group, member, topics) for member in group.members.values()],
    )


def described_unknown(group_id: str, *, is_known: bool) -> DescribedGroup:
    why = "is not a consumer group" if is_known else "not found"
    return DescribedGroup(
        group_id=group_id,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id} {why}.",
    )


def _described_member(group: ConsumerGroup, member: Member, topics: Topics) -> DescribedMember:
    has: dict[bytes, list[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, epochs in partitions.items():
            has.setdefault(topic_id, []).extend(epochs)
    target = group.targets.get(member.member_id, NO_TARGET)
    return DescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment({topic_id: sorted(indexes) for topic_id, indexes in has.items()}, topics),
        target_assignment=_assignment({topic_id: sorted(target[topic_id]) for topic_id in target}, topics),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(partitions: dict[bytes, list[int]], topics: Topics) -> Assignment:
    parts = []
    for topic_id, indexes in partitions.items():
        name = topics.topic_name(topic_id)
        if name is not None:  # a topic that is gone has no name to show
            parts.append(TopicPartitions(topic_id=topic_id, topic_name=name, partitions=indexes))
    parts.sort(key=lambda part: part.topic_name)
    return Assignment(topic_partitions=parts)
