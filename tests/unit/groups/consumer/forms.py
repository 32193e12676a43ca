"""How transcripts write the newer protocol.

Partitions are maps: `topic_partitions={orders=[0 1]}` in a heartbeat, `assignment={orders=[0 1]}` in its answer; in records
of what a member has, `assigned={orders={0=1 1=2}}` says with which epoch it got each. A heartbeat with epoch 0 is a full
one, to `orders` unless it says otherwise. Hashes of topics are left out.
"""

from collections.abc import Mapping
from typing import Any

from penstock.groups.consumer import records
from penstock.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest, DescribedGroup
from penstock.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from simulation.transcript_text import build, plain

APIS: dict[str, tuple[type[Any], str]] = {
    "ConsumerGroupHeartbeat": (ConsumerGroupHeartbeatRequest, "consumer_group_heartbeat"),
    "ConsumerGroupDescribe": (ConsumerGroupDescribeRequest, "consumer_group_describe"),
}

JOINING = {"rebalance_timeout_ms": "60000", "topic_partitions": {}}

KINDS = {
    records.GROUP: "ConsumerGroupMetadata",
    records.PARTITION_METADATA: "ConsumerGroupPartitionMetadata",
    records.MEMBER: "ConsumerGroupMemberMetadata",
    records.TARGET_EPOCH: "ConsumerGroupTargetAssignmentMetadata",
    records.TARGET: "ConsumerGroupTargetAssignmentMember",
    records.CURRENT: "ConsumerGroupCurrentMemberAssignment",
    records.REGEX: "ConsumerGroupRegularExpression",
}
STATES = {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"}


def heartbeat_request(fields: dict[str, Any]) -> object:
    fields = {"group_id": "g", **fields}
    if fields.get("member_epoch") == "0":
        fields = {**JOINING, **fields}
        if "subscribed_topic_regex" not in fields:
            fields.setdefault("subscribed_topic_names", ["orders"])
    if isinstance(fields.get("topic_partitions"), dict):
        fields["topic_partitions"] = [
            {"topic_id": name, "partitions": indexes} for name, indexes in fields["topic_partitions"].items()
        ]
    return build(ConsumerGroupHeartbeatRequest, fields)


def view(response: ConsumerGroupHeartbeatResponse | DescribedGroup, *, sparse: bool) -> Any:
    found = plain(response, sparse=sparse)
    if isinstance(response, ConsumerGroupHeartbeatResponse):
        if response.assignment is not None:
            found["assignment"] = _partitions(response.assignment.topic_partitions)
        return found
    found["members"] = [
        {
            **plain(member, sparse=sparse),
            "assignment": _partitions(member.assignment.topic_partitions),
            "target_assignment": _partitions(member.target_assignment.topic_partitions),
        }
        for member in response.members
    ]
    return found


def describe_record(key: bytes, value: bytes | None) -> tuple[str, Mapping[str, object]]:
    name = records.read_key(key)
    fields: dict[str, Any] = {"group": name.group}
    if name.name:
        fields["regex" if name.kind == records.REGEX else "member"] = name.name
    if value is None:
        return KINDS[name.kind], {**fields, "deleted": True}
    read = records.read_value(name.kind, value)
    fields |= plain(read, sparse=True)
    fields.pop("metadata_hash", None)
    if isinstance(read, records.TargetValue):
        fields["topic_partitions"] = _partitions(read.topic_partitions)
    elif isinstance(read, records.CurrentValue):
        for old in ("assigned_partitions", "partitions_pending_revocation"):
            fields.pop(old, None)
        fields["state"] = STATES[read.state]
        fields["assigned"] = _with_epochs(read.assigned_partitions)
        if read.partitions_pending_revocation:
            fields["pending_revocation"] = _with_epochs(read.partitions_pending_revocation)
    elif isinstance(read, records.MemberValue) and read.classic_member_metadata is not None:
        classic = read.classic_member_metadata
        fields["classic_member_metadata"] = {
            "session_timeout_ms": classic.session_timeout_ms,
            "protocols": {one.name: one.metadata for one in classic.supported_protocols},
        }
    return KINDS[name.kind], fields


def _name(topic_id: bytes) -> str:
    return topic_id.rstrip(b"\0").decode()


def _partitions(parts: Any) -> dict[str, list[int]]:
    return {_name(part.topic_id): list(part.partitions) for part in parts}


def _with_epochs(parts: Any) -> dict[str, dict[str, int]]:
    return {
        _name(part.topic_id): {
            str(index): epoch for index, epoch in zip(part.partitions, part.assignment_epochs, strict=True)
        }
        for part in parts
    }
