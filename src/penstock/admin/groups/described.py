"""The answers of DescribeGroups and ConsumerGroupDescribe as one kind of description."""

from penstock.admin.groups.model import CONSUMER_PROTOCOLS, Coordinator, Description, Member
from penstock.client.errors import Refused
from penstock.client.group_members import assigned_partitions
from penstock.model.ids import TopicPartition
from penstock.wire.messages import consumer_group_describe, describe_groups

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def from_classic(group: describe_groups.DescribedGroup, coordinator: Coordinator) -> Description:
    if group.protocol_type not in CONSUMER_PROTOCOLS:
        raise Refused(
            f"GroupId {group.group_id} is not a consumer group ({group.protocol_type}).",
            exception_name="java.lang.IllegalArgumentException",
        )
    members = [
        Member(
            member.member_id,
            member.group_instance_id or "",
            member.client_id,
            member.client_host,
            assigned_partitions(member.member_assignment),
        )
        for member in group.members
    ]
    return Description(
        group.group_id, "Classic", group.group_state, group.protocol_data, coordinator, members
    )


def from_consumer(group: consumer_group_describe.DescribedGroup, coordinator: Coordinator) -> Description:
    members = [
        Member(
            member.member_id,
            member.instance_id or "",
            member.client_id,
            member.client_host,
            _partitions(member.assignment),
            _partitions(member.target_assignment),
            member.member_epoch,
            {CLASSIC_MEMBER: False, CONSUMER_MEMBER: True}.get(member.member_type),
        )
        for member in group.members
    ]
    return Description(
        group.group_id,
        "Consumer",
        group.group_state,
        group.assignor_name,
        coordinator,
        members,
        group.group_epoch,
        group.assignment_epoch,
    )


def _partitions(assignment: consumer_group_describe.Assignment) -> list[TopicPartition]:
    return [
        TopicPartition(assigned.topic_name, number)
        for assigned in assignment.topic_partitions
        for number in assigned.partitions
    ]
