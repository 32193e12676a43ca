"""GroupShard: the groups of one partition of `__consumer_offsets`.

Every request takes its ticket and the time and returns an `Outcome`; the promises are those of
`coordination`.
"""

from collections.abc import Callable

from penstock.coordination.form import NO_PRODUCER_ID, AlarmKey, Outcome, RequestContext, Ticket
from penstock.groups import describe, offsets
from penstock.groups.classic.heartbeat import heartbeat
from penstock.groups.classic.join import NAME_MAX_BYTES, check_request, join
from penstock.groups.classic.leave import leave
from penstock.groups.classic.rebalance import (
    Turn,
    expect_life,
    on_join_alarm,
    on_session_alarm,
    on_sync_alarm,
    prepare_rebalance,
    refuse_join,
    refuse_sync,
    session_alarm,
)
from penstock.groups.classic.sync import sync
from penstock.groups.offsets import GroupOffsets, Topics
from penstock.groups.options import GroupOptions
from penstock.groups.records import (
    CommittedOffset,
    GroupMetadata,
    OffsetKey,
    new_group,
    read_group,
    read_key,
    read_offset,
    write_group,
    write_group_key,
)
from penstock.groups.state import Group, GroupState
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.delete_groups import DeletableGroupResult
from penstock.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from penstock.wire.messages.list_groups import ListGroupsRequest
from penstock.wire.messages.offset_commit import OffsetCommitRequest
from penstock.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from penstock.wire.messages.offset_fetch import OffsetFetchRequestGroup
from penstock.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

NOBODY = RequestContext(0, "", "")
"""The context of what no client has asked for: alarms, loading."""


class GroupShard:
    __slots__ = ("_groups", "_metadata", "_new_id", "_offsets", "_options", "_topics")

    def __init__(self, *, options: GroupOptions, topics: Topics, new_id: Callable[[], str]) -> None:
        self._options = options
        self._topics = topics
        self._new_id = new_id
        # Hard: changed by replay alone.
        self._metadata: dict[str, GroupMetadata] = {}
        self._offsets: dict[str, dict[tuple[str, int], CommittedOffset]] = {}
        # Soft: groups that have members, or ids given out to members to be.
        self._groups: dict[str, Group] = {}

    # ── the form ────────────────────────────────────────────────────────────────────────────────────────────

    def replay(self, key: bytes, value: bytes | None, producer_id: int = NO_PRODUCER_ID) -> None:
        name = read_key(key)
        if isinstance(name, OffsetKey):
            if value is not None:
                committed = read_offset(value)
                self._offsets.setdefault(name.group, {})[name.topic, name.partition] = committed
            elif name.group in self._offsets:
                self._offsets[name.group].pop((name.topic, name.partition), None)
                if not self._offsets[name.group]:
                    del self._offsets[name.group]
        elif name is not None:
            if value is not None:
                self._metadata[name.group] = read_group(value)
            else:
                self._metadata.pop(name.group, None)

    def hard_state(self) -> object:
        return (self._metadata, self._offsets)

    def on_loaded(self, now_ms: int) -> Outcome:
        """Members that were there before the restart have one session to be heard of again."""
        turn = self._turn(NOBODY, now_ms)
        for group_id, metadata in self._metadata.items():
            if not metadata.members:
                continue
            group = self._groups[group_id] = Group.from_metadata(group_id, metadata)
            for member in group.members.values():
                expect_life(turn, group, member)
            if len(group.members) > self._options.max_size:
                prepare_rebalance(turn, group)
        return turn.outcome

    def on_alarm(self, key: AlarmKey, now_ms: int) -> Outcome:
        turn = self._turn(NOBODY, now_ms)
        group = self._groups.get(key[1])
        if group is not None:
            if key[0] == "session":
                on_session_alarm(turn, group, key[2])
            elif key[0] == "join":
                on_join_alarm(turn, group)
            elif key[0] == "sync":
                on_sync_alarm(turn, group)
            self._settle(group)
        return turn.outcome

    def on_topic_deleted(self, topic: str) -> Outcome:
        """Its offsets mean nothing any more, least of all to a topic of the same name made later."""
        outcome = Outcome()
        for group_id, committed in self._offsets.items():
            offsets.forget_all(outcome, group_id, [place for place in committed if place[0] == topic])
        return outcome

    def on_unload(self) -> Outcome:
        turn = self._turn(NOBODY, 0)
        for group in self._groups.values():
            for member in group.members.values():
                refuse_join(turn, member, ErrorCode.NOT_COORDINATOR)
                refuse_sync(turn, member, ErrorCode.NOT_COORDINATOR)
        self._groups.clear()
        return turn.outcome

    # ── membership ──────────────────────────────────────────────────────────────────────────────────────────

    def join_group(
        self, request: JoinGroupRequest, context: RequestContext, ticket: Ticket, now_ms: int
    ) -> Outcome:
        turn = self._turn(context, now_ms)
        group: Group | None = None
        try:
            check_request(request, context.client_id, self._options)
            known = self._find(request.group_id)
            if known is None and request.member_id:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
            group = known or Group(request.group_id, now_ms)
            join(turn, group, request, ticket)
            if group.group_id not in self._metadata:
                # The first of its records, so that it outlives a restart even if no join is ever completed.
                turn.outcome.record(write_group_key(group.group_id), write_group(new_group(now_ms)))
            self._groups[group.group_id] = group
        except ApiError as refusal:
            full = refusal.code is ErrorCode.GROUP_MAX_SIZE_REACHED
            member_id = "" if full else request.member_id
            turn.outcome.reply(ticket, JoinGroupResponse(error_code=refusal.code, member_id=member_id))
        if group is not None:
            self._settle(group)
        return turn.outcome

    def sync_group(
        self, request: SyncGroupRequest, context: RequestContext, ticket: Ticket, now_ms: int
    ) -> Outcome:
        turn = self._turn(context, now_ms)
        try:
            sync(turn, self._known(request.group_id, ErrorCode.UNKNOWN_MEMBER_ID), request, ticket)
        except ApiError as refusal:
            turn.outcome.reply(ticket, SyncGroupResponse(error_code=refusal.code))
        return turn.outcome

    def heartbeat(
        self, request: HeartbeatRequest, context: RequestContext, ticket: Ticket, now_ms: int
    ) -> Outcome:
        turn = self._turn(context, now_ms)
        try:
            error = heartbeat(turn, self._known(request.group_id, ErrorCode.UNKNOWN_MEMBER_ID), request)
        except ApiError as refusal:
            error = refusal.code
        turn.outcome.reply(ticket, HeartbeatResponse(error_code=error))
        return turn.outcome

    def leave_group(
        self, request: LeaveGroupRequest, context: RequestContext, ticket: Ticket, now_ms: int
    ) -> Outcome:
        turn = self._turn(context, now_ms)
        if not request.group_id:
            turn.outcome.reply(ticket, LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
            return turn.outcome
        group = self._find(request.group_id)
        turn.outcome.reply(ticket, leave(turn, group, request))
        if group is not None:
            self._settle(group)
        return turn.outcome

    # ── offsets ─────────────────────────────────────────────────────────────────────────────────────────────

    def commit_offsets(
        self, request: OffsetCommitRequest, context: RequestContext, ticket: Ticket, now_ms: int
    ) -> Outcome:
        turn = self._turn(context, now_ms)
        if len(request.group_id.encode()) > NAME_MAX_BYTES:
            response = offsets.refuse_commit(request, ErrorCode.INVALID_GROUP_ID)
        else:
            response = offsets.commit(turn, self._find(request.group_id), request, self._topics)
        turn.outcome.reply(ticket, response)
        return turn.outcome

    def fetch_offsets(
        self, request: OffsetFetchRequestGroup, context: RequestContext, ticket: Ticket
    ) -> Outcome:
        """One group of an OffsetFetch; the reply is its `OffsetFetchResponseGroup`."""
        found = offsets.fetch(
            self._offsets_of(request.group_id), request, self._topics, api_version=context.api_version
        )
        outcome = Outcome()
        outcome.reply(ticket, found)
        return outcome

    def delete_offsets(self, request: OffsetDeleteRequest, ticket: Ticket) -> Outcome:
        outcome = Outcome()
        try:
            group = self._known(request.group_id, ErrorCode.GROUP_ID_NOT_FOUND)
            response = offsets.delete(outcome, group, self._offsets_of(request.group_id), request)
        except ApiError as refusal:
            response = OffsetDeleteResponse(error_code=refusal.code)
        outcome.reply(ticket, response)
        return outcome

    # ── whole groups ────────────────────────────────────────────────────────────────────────────────────────

    def list_groups(self, request: ListGroupsRequest, ticket: Ticket) -> Outcome:
        """The reply is a list of `ListedGroup`."""
        names = dict.fromkeys((*self._metadata, *self._offsets, *self._groups))
        groups = (self._find(name) for name in names)
        shown = (describe.listed(group) for group in groups if group is not None)
        outcome = Outcome()
        outcome.reply(ticket, [group for group in shown if describe.is_asked_for(group, request)])
        return outcome

    def describe_group(self, group_id: str, context: RequestContext, ticket: Ticket) -> Outcome:
        """The reply is a `DescribedGroup`."""
        group = self._find(group_id)
        outcome = Outcome()
        if group is None:
            outcome.reply(ticket, describe.described_unknown(group_id, api_version=context.api_version))
        else:
            outcome.reply(ticket, describe.described(group))
        return outcome

    def delete_group(self, group_id: str, ticket: Ticket) -> Outcome:
        """The reply is a `DeletableGroupResult`."""
        outcome = Outcome()
        group = self._find(group_id)
        error = ErrorCode.NONE
        if group is None:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        elif group.state is not GroupState.EMPTY:
            error = ErrorCode.NON_EMPTY_GROUP
        else:
            offsets.forget_all(outcome, group_id, list(self._offsets_of(group_id)))
            outcome.record(write_group_key(group_id), None)
            for member_id in group.pending_members:
                outcome.alarm(session_alarm(group_id, member_id), None)
            self._groups.pop(group_id, None)
        outcome.reply(ticket, DeletableGroupResult(group_id=group_id, error_code=error))
        return outcome

    # ── within ──────────────────────────────────────────────────────────────────────────────────────────────

    def _turn(self, context: RequestContext, now_ms: int) -> Turn:
        return Turn(now_ms, self._options, Outcome(), context, self._new_id)

    def _find(self, group_id: str) -> Group | None:
        """The group as it lives, or as it is recorded; one that has only offsets is an empty one."""
        group = self._groups.get(group_id)
        if group is not None:
            return group
        metadata = self._metadata.get(group_id)
        if metadata is not None:
            return Group.from_metadata(group_id, metadata)
        return Group(group_id, 0) if group_id in self._offsets else None

    def _known(self, group_id: str, otherwise: ErrorCode) -> Group:
        if not group_id and otherwise is ErrorCode.UNKNOWN_MEMBER_ID:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        group = self._find(group_id)
        if group is None:
            raise ApiError(otherwise)
        return group

    def _offsets_of(self, group_id: str) -> GroupOffsets:
        return self._offsets.get(group_id, {})

    def _settle(self, group: Group) -> None:
        """An empty group that nobody is about to join need not be kept alive: its record says all."""
        if group.state is GroupState.EMPTY and not group.pending_members:
            self._groups.pop(group.group_id, None)
