"""LeaveGroup: members go at once, by id, or by instance id alone when an operator removes them."""

from penstock.groups.classic.rebalance import Turn, complete_join_if_all_joined, drop_member, rebalance
from penstock.groups.state import Group
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

BATCH_FROM = 3


def leaving_members(request: LeaveGroupRequest, api_version: int) -> list[MemberIdentity]:
    """Before version 3 a request names one member, outside the list."""
    return (
        list(request.members) if api_version >= BATCH_FROM else [MemberIdentity(member_id=request.member_id)]
    )


def leave(turn: Turn, group: Group | None, request: LeaveGroupRequest) -> LeaveGroupResponse:
    results = []
    count_before = len(group.members) if group is not None else 0
    for leaving in leaving_members(request, turn.context.api_version):
        try:
            if group is None:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
            drop_member(turn, group, _id_of(group, leaving))
            error = ErrorCode.NONE
        except ApiError as refusal:
            error = refusal.code
        results.append(
            MemberResponse(
                member_id=leaving.member_id, group_instance_id=leaving.group_instance_id, error_code=error
            )
        )
    if group is not None and len(group.members) < count_before:
        rebalance(turn, group)
    elif group is not None:
        complete_join_if_all_joined(turn, group)
    if turn.context.api_version < BATCH_FROM:
        return LeaveGroupResponse(error_code=results[0].error_code)
    return LeaveGroupResponse(members=results)


def _id_of(group: Group, leaving: MemberIdentity) -> str:
    if not leaving.member_id:
        member_id = group.static_members.get(leaving.group_instance_id or "")
        if member_id is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member_id
    if leaving.member_id in group.pending_members:
        return leaving.member_id
    return group.check_member(leaving.member_id, leaving.group_instance_id).member_id
