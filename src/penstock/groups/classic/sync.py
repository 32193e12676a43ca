"""SyncGroup: the leader brings the assignment, the others wait for it.

The leader's request completes the generation: it is recorded, and all parked SyncGroups are answered. Parts
for members that the group does not have are ignored; members without a part get an empty one.
"""

from penstock.coordination.form import Ticket
from penstock.groups.classic.rebalance import Turn, expect_life, hold_sync, record_group, sync_alarm
from penstock.groups.state import Group, GroupState, Member
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def sync(turn: Turn, group: Group, request: SyncGroupRequest, ticket: Ticket) -> None:
    member = _check(group, request)
    if group.state is GroupState.PREPARING_REBALANCE:
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
    group.unsynced_members.discard(member.member_id)
    if not group.unsynced_members:
        turn.outcome.alarm(sync_alarm(group.group_id), None)
    if group.state is GroupState.STABLE:
        turn.outcome.reply(ticket, _response(group, member))
        return
    hold_sync(turn, member, ticket)
    if member.member_id == group.leader_id:
        _complete(turn, group, request)


def _check(group: Group, request: SyncGroupRequest) -> Member:
    if group.state is GroupState.EMPTY:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    for named, current in (
        (request.protocol_type, group.protocol_type),
        (request.protocol_name, group.protocol_name),
    ):
        if named is not None and current is not None and named != current:
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return member


def _complete(turn: Turn, group: Group, request: SyncGroupRequest) -> None:
    assignments = {part.member_id: bytes(part.assignment) for part in request.assignments}
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
    record_group(turn, group)
    group.move_to(GroupState.STABLE, turn.now_ms)
    for member in group.members.values():
        if member.sync_ticket is not None:
            turn.outcome.reply(member.sync_ticket, _response(group, member))
            member.sync_ticket = None
            expect_life(turn, group, member)


def _response(group: Group, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )
