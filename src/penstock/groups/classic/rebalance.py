"""The moves of a rebalance: begin it, finish its joining half, give members up, hand out assignments.

Alarms: ("session", group, member): a member must show life; ("join", group): joining ends; ("sync", group):
members that have not synced are given up.
"""

from collections.abc import Callable
from typing import NamedTuple

from penstock.coordination.form import AlarmKey, Outcome, RequestContext, Ticket
from penstock.groups.options import GroupOptions
from penstock.groups.records import write_group, write_group_key
from penstock.groups.state import Group, GroupState, InitialDelay, Member
from penstock.model.errors import ErrorCode
from penstock.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from penstock.wire.messages.sync_group import SyncGroupResponse


class Turn(NamedTuple):
    """One event being decided: the time, the rules, and the outcome as far as it is known."""

    now_ms: int
    options: GroupOptions
    outcome: Outcome
    context: RequestContext
    new_id: Callable[[], str]
    """A new unique text, for member ids."""
    options_of: Callable[[str], GroupOptions]
    """The options of the group of this id, where it may have a config of its own."""


def session_alarm(group_id: str, member_id: str) -> AlarmKey:
    return ("session", group_id, member_id)


def join_alarm(group_id: str) -> AlarmKey:
    return ("join", group_id)


def sync_alarm(group_id: str) -> AlarmKey:
    return ("sync", group_id)


def expect_life(turn: Turn, group: Group, member: Member, timeout_ms: int | None = None) -> None:
    """Start the member's session again."""
    timeout_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
    turn.outcome.alarm(session_alarm(group.group_id, member.member_id), turn.now_ms + timeout_ms)


def record_group(turn: Turn, group: Group) -> None:
    turn.outcome.record(write_group_key(group.group_id), write_group(group.metadata()))


def hold_join(turn: Turn, group: Group, member: Member, ticket: Ticket) -> None:
    """Park a JoinGroup. One that was parked before is answered: its client has asked again."""
    refuse_join(turn, group, member, ErrorCode.REBALANCE_IN_PROGRESS)
    group.hold_join(member, ticket)


def hold_sync(turn: Turn, member: Member, ticket: Ticket) -> None:
    refuse_sync(turn, member, ErrorCode.REBALANCE_IN_PROGRESS)
    member.sync_ticket = ticket


def refuse_join(turn: Turn, group: Group, member: Member, error: ErrorCode) -> None:
    ticket = group.release_join(member)
    if ticket is not None:
        member_id = "" if error is ErrorCode.UNKNOWN_MEMBER_ID else member.member_id
        turn.outcome.reply(ticket, JoinGroupResponse(error_code=error, member_id=member_id))


def refuse_sync(turn: Turn, member: Member, error: ErrorCode) -> None:
    if member.sync_ticket is not None:
        turn.outcome.reply(member.sync_ticket, SyncGroupResponse(error_code=error))
        member.sync_ticket = None


def drop_member(turn: Turn, group: Group, member_id: str) -> None:
    """Take a member, or an id that only waited to join, out of the group; the caller decides what follows."""
    member = group.members.get(member_id)
    if member is not None:
        refuse_join(turn, group, member, ErrorCode.UNKNOWN_MEMBER_ID)
        refuse_sync(turn, member, ErrorCode.UNKNOWN_MEMBER_ID)
    turn.outcome.alarm(session_alarm(group.group_id, member_id), None)
    group.remove(member_id)


def rebalance(turn: Turn, group: Group) -> None:
    """Members have changed: begin a rebalance, or finish one that waited only for this."""
    if group.state is GroupState.PREPARING_REBALANCE:
        complete_join_if_all_joined(turn, group)
    else:
        prepare_rebalance(turn, group)


def prepare_rebalance(turn: Turn, group: Group) -> None:
    if group.state is GroupState.COMPLETING_REBALANCE:
        for member in group.members.values():
            member.assignment = b""
            if member.sync_ticket is not None:
                refuse_sync(turn, member, ErrorCode.REBALANCE_IN_PROGRESS)
                expect_life(turn, group, member)
    group.unsynced_members.clear()
    turn.outcome.alarm(sync_alarm(group.group_id), None)
    first = group.state is GroupState.EMPTY
    group.move_to(GroupState.PREPARING_REBALANCE, turn.now_ms)
    if first:
        delay_ms = turn.options.initial_rebalance_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        group.initial_delay = InitialDelay(delay_ms=delay_ms, remaining_ms=remaining_ms)
        turn.outcome.alarm(join_alarm(group.group_id), turn.now_ms + delay_ms)
    elif group.all_joined:
        complete_join(turn, group)
    else:
        turn.outcome.alarm(join_alarm(group.group_id), turn.now_ms + group.rebalance_timeout_ms)


def complete_join_if_all_joined(turn: Turn, group: Group) -> None:
    """Not during the initial delay, which is there to wait for members that nobody knows of yet."""
    if group.state is GroupState.PREPARING_REBALANCE and group.initial_delay is None and group.all_joined:
        complete_join(turn, group)


def on_join_alarm(turn: Turn, group: Group) -> None:
    if group.state is not GroupState.PREPARING_REBALANCE:
        return
    delay = group.initial_delay
    if delay is None or not delay.member_added or delay.remaining_ms == 0:
        complete_join(turn, group)
        return
    delay.member_added = False
    next_delay_ms = min(turn.options.initial_rebalance_delay_ms, delay.remaining_ms)
    delay.remaining_ms = max(delay.remaining_ms - delay.delay_ms, 0)
    delay.delay_ms = next_delay_ms
    turn.outcome.alarm(join_alarm(group.group_id), turn.now_ms + next_delay_ms)


def complete_join(turn: Turn, group: Group) -> None:
    """Joining is over: who has not come back is out (static members keep their place until their session
    ends)."""
    group.initial_delay = None
    turn.outcome.alarm(join_alarm(group.group_id), None)
    late = [m for m in group.members.values() if m.join_ticket is None and m.group_instance_id is None]
    for member in late:
        drop_member(turn, group, member.member_id)
    if group.members and not group.elect_joined_leader():
        # Only static members are left and none is here: wait until they come back or their sessions end.
        turn.outcome.alarm(join_alarm(group.group_id), turn.now_ms + group.rebalance_timeout_ms)
        return
    group.generation_id += 1
    if not group.members:
        group.protocol_name = None
        group.leader_id = None
        group.move_to(GroupState.EMPTY, turn.now_ms)
        record_group(turn, group)
        return
    group.protocol_name = group.select_protocol()
    group.move_to(GroupState.COMPLETING_REBALANCE, turn.now_ms)
    for member in group.members.values():
        ticket = group.release_join(member)
        if ticket is not None:
            turn.outcome.reply(ticket, join_response(group, member))
        member.is_new = False
        expect_life(turn, group, member)
    group.unsynced_members = set(group.members)
    turn.outcome.alarm(sync_alarm(group.group_id), turn.now_ms + group.rebalance_timeout_ms)


def join_response(group: Group, member: Member) -> JoinGroupResponse:
    """The current generation as a member is told of it; only the leader learns of the others."""
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=member_list(group) if member.member_id == group.leader_id else (),
    )


def member_list(group: Group) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.protocols[group.protocol_name or ""],
        )
        for member in group.members.values()
    ]


def on_sync_alarm(turn: Turn, group: Group) -> None:
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.unsynced_members:
        return
    for member_id in sorted(group.unsynced_members):
        drop_member(turn, group, member_id)
    prepare_rebalance(turn, group)


def on_session_alarm(turn: Turn, group: Group, member_id: str) -> None:
    member = group.members.get(member_id)
    if member is not None and not member.must_show_life:
        return
    if member is None and member_id not in group.pending_members:
        return
    drop_member(turn, group, member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        # Also during the initial delay: it is as long as a session by now, and all that are known have come.
        if group.all_joined:
            complete_join(turn, group)
    elif member is not None:
        prepare_rebalance(turn, group)
