"""JoinGroup: become a member, or come back for the next generation.

A new dynamic member (from version 4 on) first gets an id and MEMBER_ID_REQUIRED, so that a lost answer leaves no unknown member
behind. Otherwise the request is parked until the rebalance that it causes, or
joins, has all members; see `rebalance.complete_join`. A static member that comes back to a stable group only
changes its id, unless it went while the group waited for it to give partitions up (cooperative rebalancing) and to join
again: nobody else would ever get them. Apache Kafka leaves them without an owner until the next rebalance.
"""

from typing import Final

from penstock.coordination.form import Ticket
from penstock.groups.classic.rebalance import (
    Turn,
    complete_join_if_all_joined,
    drop_member,
    expect_life,
    hold_join,
    join_response,
    prepare_rebalance,
    rebalance,
    record_group,
    refuse_join,
    refuse_sync,
    session_alarm,
)
from penstock.groups.consumer_protocol import gives_up
from penstock.groups.options import GroupOptions
from penstock.groups.state import CONSUMER_PROTOCOL_TYPE, Group, GroupState, Member
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

MEMBER_ID_REQUIRED_FROM: Final = 4
SKIP_ASSIGNMENT_FROM: Final = 9

NAME_MAX_BYTES: Final = 32_000
"""A string of a record has 32,767 bytes at most, and a member id is a client id or an instance id and 37
bytes more."""


def is_too_long(name: str) -> bool:
    """A character takes four bytes at most, so that most names need not be encoded to be measured."""
    return len(name) * 4 > NAME_MAX_BYTES and len(name.encode()) > NAME_MAX_BYTES


def check_request(request: JoinGroupRequest, client_id: str, options: GroupOptions) -> None:
    """What can be refused without looking at the group."""
    if not request.group_id or is_too_long(request.group_id):
        raise ApiError(ErrorCode.INVALID_GROUP_ID)
    if not options.min_session_timeout_ms <= request.session_timeout_ms <= options.max_session_timeout_ms:
        raise ApiError(ErrorCode.INVALID_SESSION_TIMEOUT)
    names = [client_id, request.group_instance_id or "", request.protocol_type]
    names += [protocol.name for protocol in request.protocols]
    if any(map(is_too_long, names)):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"a name is longer than {NAME_MAX_BYTES} bytes")


def join(turn: Turn, group: Group, request: JoinGroupRequest, ticket: Ticket) -> None:
    """Decide, or refuse with an ApiError that leaves the group as it was (but for one that is full)."""
    if not _has_room(turn, group, request.member_id):
        if request.member_id:
            drop_member(turn, group, request.member_id)
            complete_join_if_all_joined(turn, group)
        raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED)
    if not group.supports(request.protocol_type, [protocol.name for protocol in request.protocols]):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if request.member_id:
        _come_back(turn, group, request, ticket)
    elif request.group_instance_id is not None:
        _join_as_static(turn, group, request, ticket, request.group_instance_id)
    else:
        _join_as_dynamic(turn, group, request, ticket)


def _has_room(turn: Turn, group: Group, member_id: str) -> bool:
    member = group.members.get(member_id)
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING_REBALANCE:
        # Those who have joined count, not the members: a lowered limit then pushes out who comes back last.
        return (
            member is not None and member.join_ticket is not None
        ) or group.joined_count < turn.options.max_size
    return member is not None or len(group.members) < turn.options.max_size


def _join_as_dynamic(turn: Turn, group: Group, request: JoinGroupRequest, ticket: Ticket) -> None:
    member_id = f"{turn.context.client_id}-{turn.new_id()}"
    if turn.context.api_version < MEMBER_ID_REQUIRED_FROM:
        _add(turn, group, request, ticket, member_id)
        return
    group.pending_members.add(member_id)
    turn.outcome.alarm(session_alarm(group.group_id, member_id), turn.now_ms + request.session_timeout_ms)
    turn.outcome.reply(
        ticket, JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
    )


def _join_as_static(
    turn: Turn, group: Group, request: JoinGroupRequest, ticket: Ticket, instance_id: str
) -> None:
    member_id = f"{instance_id}-{turn.new_id()}"
    old_id = group.static_members.get(instance_id)
    if old_id is None:
        _add(turn, group, request, ticket, member_id)
    else:
        _replace_static(turn, group, request, ticket, group.members[old_id], member_id)


def _add(turn: Turn, group: Group, request: JoinGroupRequest, ticket: Ticket, member_id: str) -> None:
    member = Member(
        member_id=member_id,
        group_instance_id=request.group_instance_id,
        client_id=turn.context.client_id,
        client_host=turn.context.client_host,
    )
    member.is_new = True
    _take_offer(member, request)
    if not group.members:
        group.protocol_type = request.protocol_type
    if group.initial_delay is not None:
        group.initial_delay.member_added = True
    group.add(member)
    hold_join(turn, group, member, ticket)
    # Its session begins when it knows its id. Until then it cannot send a heartbeat, and we cannot see
    # whether its sender is still there, so it may wait long, but not forever.
    expect_life(turn, group, member, turn.options.new_member_join_timeout_ms)
    rebalance(turn, group)


def _come_back(turn: Turn, group: Group, request: JoinGroupRequest, ticket: Ticket) -> None:
    if request.member_id in group.pending_members:
        if request.group_instance_id is not None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        _add(turn, group, request, ticket, request.member_id)
        return
    member = group.check_member(request.member_id, request.group_instance_id)
    is_leader = member.member_id == group.leader_id
    same = member.offers_the_same(request.protocols)
    if same and (
        group.state is GroupState.COMPLETING_REBALANCE or (group.state is GroupState.STABLE and not is_leader)
    ):
        # It missed our answer, or asks without need: it learns of the generation that it is in. A leader who
        # joins a stable group wants a new assignment, though, e.g. because a topic has grown.
        turn.outcome.reply(ticket, join_response(group, member))
        return
    group.discount_offer(member)
    _take_offer(member, request)
    group.count_offer(member)
    hold_join(turn, group, member, ticket)
    rebalance(turn, group)


def _take_offer(member: Member, request: JoinGroupRequest) -> None:
    member.protocols = {protocol.name: bytes(protocol.metadata) for protocol in request.protocols}
    member.session_timeout_ms = request.session_timeout_ms
    # Version 0 has no rebalance timeout; the session timeout stands in for it.
    timeout_ms = request.rebalance_timeout_ms
    member.rebalance_timeout_ms = timeout_ms if timeout_ms >= 0 else request.session_timeout_ms


def _replace_static(
    turn: Turn, group: Group, request: JoinGroupRequest, ticket: Ticket, old: Member, member_id: str
) -> None:
    old_leader_id = group.leader_id
    refuse_join(turn, group, old, ErrorCode.FENCED_INSTANCE_ID)
    refuse_sync(turn, old, ErrorCode.FENCED_INSTANCE_ID)
    turn.outcome.alarm(session_alarm(group.group_id, old.member_id), None)
    member = Member(
        member_id=member_id,
        group_instance_id=old.group_instance_id,
        client_id=turn.context.client_id,
        client_host=turn.context.client_host,
    )
    member.assignment = old.assignment
    _take_offer(member, request)
    group.remove(old.member_id)
    group.add(member)
    if old_leader_id == old.member_id:
        group.leader_id = member_id
    expect_life(turn, group, member)
    is_stable = group.state is GroupState.STABLE and not _owes_a_join(group, old)
    if is_stable and group.select_protocol() == group.protocol_name:
        record_group(turn, group)
        turn.outcome.reply(ticket, _replaced_response(turn, group, member, old_leader_id or ""))
        return
    hold_join(turn, group, member, ticket)
    if group.state is GroupState.PREPARING_REBALANCE:
        complete_join_if_all_joined(turn, group)
    else:
        # Also while completing: the leader is assigning to the id that has just gone.
        prepare_rebalance(turn, group)


def _owes_a_join(group: Group, member: Member) -> bool:
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE or group.protocol_name is None:
        return False
    return gives_up(member.protocols.get(group.protocol_name, b""), member.assignment)


def _replaced_response(turn: Turn, group: Group, member: Member, old_leader_id: str) -> JoinGroupResponse:
    """The generation continues as it is, so nobody may assign. A leader is told to skip it; to one too old to
    understand that, we name its former self as the leader."""
    response = join_response(group, member)
    if turn.context.api_version >= SKIP_ASSIGNMENT_FROM:
        response.skip_assignment = member.member_id == group.leader_id
    else:
        response.leader = old_leader_id
        response.members = ()
    return response
