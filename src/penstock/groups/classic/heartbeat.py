"""Heartbeat: a member shows that it is alive, and learns whether it must join again."""

from penstock.groups.classic.rebalance import Turn, expect_life
from penstock.groups.state import Group, GroupState
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.heartbeat import HeartbeatRequest


def heartbeat(turn: Turn, group: Group, request: HeartbeatRequest) -> ErrorCode:
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    if not member.is_new:
        expect_life(turn, group, member)
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE
