"""ListGroups and DescribeGroups: what a group looks like from outside."""

from typing import Final

from penstock.groups.state import Group, GroupState, Member
from penstock.model.errors import ErrorCode
from penstock.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from penstock.wire.messages.list_groups import ListedGroup, ListGroupsRequest

CLASSIC: Final = "classic"
GROUP_ID_NOT_FOUND_FROM: Final = 6


def listed(group: Group) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=CLASSIC,
    )


def is_asked_for(group: ListedGroup, request: ListGroupsRequest) -> bool:
    """An empty filter wants everything; case does not matter."""
    states = {state.strip().lower() for state in request.states_filter}
    types = {kind.strip().lower() for kind in request.types_filter}
    return (not states or group.group_state.lower() in states) and (not types or group.group_type in types)


def described(group: Group) -> DescribedGroup:
    """Subscriptions and assignments are shown for a stable group only: at other times they do not belong
    together."""
    stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=[_described_member(group, member, stable=stable) for member in group.members.values()],
    )


def described_unknown(group_id: str, *, api_version: int) -> DescribedGroup:
    """Before version 6 a group that is not there looks like one that is dead."""
    if api_version < GROUP_ID_NOT_FOUND_FROM:
        return DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
    return DescribedGroup(
        group_id=group_id,
        group_state=GroupState.DEAD.value,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id} not found.",
    )


def _described_member(group: Group, member: Member, *, stable: bool) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.protocols[group.protocol_name or ""] if stable else b"",
        member_assignment=member.assignment if stable else b"",
    )
