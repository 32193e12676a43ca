"""What the members of a classic group read, as DescribeGroups tells it."""

from __future__ import annotations

import struct
from typing import Final

from penstock.client.clients import Connection
from penstock.client.cluster_client import GROUP
from penstock.model.endpoints import Address
from penstock.model.ids import TopicPartition
from penstock.wire.codec import decode
from penstock.wire.errors import Malformed
from penstock.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from penstock.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

NEWEST_ASSIGNMENT_VERSION: Final = ConsumerProtocolAssignment.VERSIONS[1]
STABLE: Final = "Stable"


def topics_read(connection: Connection, group: str, *, timeout_s: float) -> set[str] | None:
    """By any member; None while the group has not settled. `timeout_s` bounds each of two answers; nothing is asked again."""
    with connection.wire(timeout_s=timeout_s) as client:
        request = FindCoordinatorRequest(key=group, key_type=GROUP, coordinator_keys=[group])
        answer = client.ask(request, FindCoordinatorResponse)
    # Up to version 3 there is one answer; from version 4 on a list of them.
    found = answer.coordinators[0] if answer.coordinators else answer
    if found.error_code:
        return None
    with connection.wire(Address(found.host, found.port), timeout_s=timeout_s) as client:
        groups = client.ask(DescribeGroupsRequest(groups=[group]), DescribeGroupsResponse).groups
    if [each.group_state for each in groups] != [STABLE]:
        return None
    return {
        place.topic for each in groups[0].members for place in assigned_partitions(each.member_assignment)
    }


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
