"""The answers of DescribeGroups and ConsumerGroupDescribe as one kind of description."""

import struct

from penstock.cli.failures import Refused
from penstock.cli.groups.model import CONSUMER_PROTOCOLS, Coordinator, Description, Member
from penstock.model.ids import TopicPartition
from penstock.wire.codec import decode
from penstock.wire.errors import Malformed
from penstock.wire.messages import consumer_group_describe, describe_groups
from penstock.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
NEWEST_ASSIGNMENT_VERSION = ConsumerProtocolAssignment.VERSIONS[1]


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


def assigned_partitions(assignment: bytes) -> list[TopicPartition]:
    """What the consumers' own protocol put there; nothing where it is empty or something else."""
    if len(assignment) < 2:
        return []
    (version,) = struct.unpack_from(">h", assignment)
    if version < 0:
        return []
    try:
        # A later version only adds fields behind those that are known.
        known = min(version, NEWEST_ASSIGNMENT_VERSION)
        decoded, _ = decode(ConsumerProtocolAssignment, known, bytes(assignment), 2)
    except Malformed:
        return []
    return [
        TopicPartition(assigned.topic, number)
        for assigned in decoded.assigned_partitions
        for number in assigned.partitions
    ]


def _partitions(assignment: consumer_group_describe.Assignment) -> list[TopicPartition]:
    return [
        TopicPartition(assigned.topic_name, number)
        for assigned in assignment.topic_partitions
        for number in assigned.partitions
    ]
