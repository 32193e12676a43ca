"""GroupShard: the groups of one partition of `__consumer_offsets`.

Every request takes its ticket and the time and returns an `Outcome`; the promises are those of
`coordination`.
"""

from collections.abc import Callable

from penstock.coordination.form import NO_PRODUCER_ID, AlarmKey, Outcome, RequestContext, Ticket
from penstock.groups import admin, forget, offsets
from penstock.groups.classic.heartbeat import heartbeat
from penstock.groups.classic.join import check_request, is_too_long, join
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
)
from penstock.groups.classic.sync import sync
from penstock.groups.consumer import commits
from penstock.groups.consumer.groups import tombstones
from penstock.groups.directory import GroupDirectory
from penstock.groups.expiry import EXPIRY_ALARM, Expiry
from penstock.groups.offset_fetch import Fetch
from penstock.groups.offsets import Committer
from penstock.groups.options import GroupOptions
from penstock.groups.records import new_group, with_new_id, write_group, write_group_key
from penstock.groups.state import Group
from penstock.groups.topics import Topics
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from penstock.wire.messages.delete_groups import DeletableGroupResult
from penstock.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from penstock.wire.messages.list_groups import ListGroupsRequest
from penstock.wire.messages.offset_commit import OffsetCommitRequest
from penstock.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from penstock.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from penstock.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from penstock.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

NOBODY = RequestContext(0, "", "")
"""The context of what no client has asked for: alarms, loading."""


class GroupShard:
    __slots__ = ("_consumers", "_directory", "_expiry", "_new_id", "_options", "_options_of", "_topics")

    def __init__(
        self,
        *,
        options: GroupOptions,
        topics: Topics,
        new_id: Callable[[], str],
        options_of: Callable[[str], GroupOptions] | None = None,
    ) -> None:
        """`options_of` a group that may have a config of its own; asked each time, so that a change is in force at once."""
        self._options = options
        self._options_of = options_of or (lambda group_id: options)
        self._topics = topics
        self._new_id = new_id
        self._directory = GroupDirectory(topics)
        self._consumers = self._directory.consumers
        self._expiry = Expiry(self._directory, options)

    @property
    def directory(self) -> GroupDirectory:
        """To look at, for who counts groups; only requests and `replay` change it."""
        return self._directory

    # ── the form ────────────────────────────────────────────────────────────────────────────────────────────

    def replay(self, key: bytes, value: bytes | None, producer_id: int = NO_PRODUCER_ID) -> None:
        self._directory.replay(key, value, producer_id)

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        self._directory.offsets.end(producer_id, committed=committed)

    def hard_state(self) -> object:
        return self._directory.hard_state()

    def on_loaded(self, now_ms: int) -> Outcome:
        """Members that were there before the restart have one session to be heard of again."""
        turn = self._turn(NOBODY, now_ms)
        for group_id, metadata in self._directory.metadata.items():
            if not metadata.members:
                continue
            group = self._directory.alive[group_id] = Group.from_metadata(group_id, metadata)
            for member in group.members.values():
                expect_life(turn, group, member)
            if len(group.members) > self._options.max_size:
                prepare_rebalance(turn, group)
        self._consumers.on_loaded(turn)
        self._expiry.start(turn.outcome, now_ms)
        return turn.outcome

    def on_writable(self, now_ms: int) -> Outcome:
        """The same again for all: their sessions ran on while nobody listened."""
        turn = self._turn(NOBODY, now_ms)
        for group in self._directory.alive.values():
            for member in group.members.values():
                expect_life(turn, group, member)
        self._consumers.expect_life(turn)
        return turn.outcome

    def on_alarm(self, key: AlarmKey, now_ms: int) -> Outcome:
        if key == EXPIRY_ALARM:
            return self._expiry.step(now_ms)
        turn = self._turn(NOBODY, now_ms)
        consumer = self._consumers.get(key[1])
        if consumer is not None:
            self._consumers.on_alarm(turn, consumer, key)
            return turn.outcome
        group = self._directory.alive.get(key[1])
        if group is not None:
            if key[0] == "session":
                on_session_alarm(turn, group, key[2])
            elif key[0] == "join":
                on_join_alarm(turn, group)
            elif key[0] == "sync":
                on_sync_alarm(turn, group)
            self._directory.settle(group)
        return turn.outcome

    def on_topic_deleted(self, topic: str) -> Outcome:
        """Its offsets mean nothing any more, least of all to a topic of the same name made later."""
        outcome = Outcome()
        for group_id in self._directory.offsets.groups():
            forget.forget_offsets(outcome, group_id, self._directory.offsets, topic)
        return outcome

    def on_topics_changed(self, now_ms: int) -> Outcome:
        """Topics have come, gone or grown. Groups of the newer protocol see to it with their next heartbeat."""
        self._consumers.on_topics_changed(now_ms)
        return Outcome()

    def on_unload(self) -> Outcome:
        turn = self._turn(NOBODY, 0)
        for group in self._directory.alive.values():
            for member in group.members.values():
                refuse_join(turn, group, member, ErrorCode.NOT_COORDINATOR)
                refuse_sync(turn, member, ErrorCode.NOT_COORDINATOR)
        self._directory.alive.clear()
        return turn.outcome

    # ── membership ──────────────────────────────────────────────────────────────────────────────────────────

    def join_group(
        self, request: JoinGroupRequest, context: RequestContext, ticket: Ticket, now_ms: int
    ) -> Outcome:
        turn = self._turn(context, now_ms)
        group: Group | None = None
        try:
            check_request(request, context.client_id, self._options)
            consumer = self._consumers.get(request.group_id)
            if consumer is not None and consumer.members:
                return self._consumers.join(turn, consumer, request, ticket)
            known = self._directory.find(request.group_id)
            if known is None and request.member_id:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
            group = known or Group(request.group_id, now_ms)
            join(turn, group, request, ticket)
            self._keep_new_id(turn, group, request)
            if group.group_id not in self._directory.metadata:
                # The first of its records, so that it outlives a restart even if no join is ever completed.
                turn.outcome.record(write_group_key(group.group_id), write_group(new_group(now_ms)))
            if consumer is not None:  # an empty one makes way
                turn.outcome.records[:0] = tombstones(consumer)
            self._directory.alive[group.group_id] = group
        except ApiError as refusal:
            full = refusal.code is ErrorCode.GROUP_MAX_SIZE_REACHED
            member_id = "" if full else request.member_id
            turn.outcome.reply(ticket, JoinGroupResponse(error_code=refusal.code, member_id=member_id))
        if group is not None:
            self._directory.settle(group)
        return turn.outcome

    def _keep_new_id(self, turn: Turn, group: Group, request: JoinGroupRequest) -> None:
        """A static member that comes back during a rebalance has its new id from now on, also where the group is loaded
        from the log: its old one would make of it somebody whose place another has taken."""
        recorded = self._directory.metadata.get(group.group_id)
        instance_id = request.group_instance_id
        if recorded is None or instance_id is None or turn.outcome.records:
            return
        member_id = group.static_members.get(instance_id)
        renamed = with_new_id(recorded, instance_id, member_id) if member_id is not None else None
        if renamed is not None:
            turn.outcome.record(write_group_key(group.group_id), write_group(renamed))

    def sync_group(
        self, request: SyncGroupRequest, context: RequestContext, ticket: Ticket, now_ms: int
    ) -> Outcome:
        turn = self._turn(context, now_ms)
        consumer = self._consumers.get(request.group_id)
        if consumer is not None:
            return self._consumers.sync(turn, consumer, request, ticket)
        try:
            sync(turn, _known_member(self._directory, request.group_id), request, ticket)
        except ApiError as refusal:
            turn.outcome.reply(ticket, SyncGroupResponse(error_code=refusal.code))
        return turn.outcome

    def heartbeat(
        self, request: HeartbeatRequest, context: RequestContext, ticket: Ticket, now_ms: int
    ) -> Outcome:
        turn = self._turn(context, now_ms)
        consumer = self._consumers.get(request.group_id)
        if consumer is not None:
            return self._consumers.classic_heartbeat(turn, consumer, request, ticket)
        try:
            error = heartbeat(turn, _known_member(self._directory, request.group_id), request)
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
        consumer = self._consumers.get(request.group_id)
        if consumer is not None:
            return self._consumers.leave(turn, consumer, request, ticket)
        group = self._directory.find(request.group_id)
        turn.outcome.reply(ticket, leave(turn, group, request))
        if group is not None:
            self._directory.settle(group)
        return turn.outcome

    def consumer_group_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, context: RequestContext, ticket: Ticket, now_ms: int
    ) -> Outcome:
        turn = self._turn(context, now_ms)
        return self._consumers.heartbeat(turn, request, ticket, self._directory.find(request.group_id))

    # ── offsets ─────────────────────────────────────────────────────────────────────────────────────────────

    def commit_offsets(
        self, request: OffsetCommitRequest, context: RequestContext, ticket: Ticket, now_ms: int
    ) -> Outcome:
        turn = self._turn(context, now_ms)
        try:
            _check_length(request.group_id)
            consumer = self._consumers.get(request.group_id)
            if consumer is not None:
                commits.check_commit(consumer, request, self._topics, api_version=context.api_version)
            else:
                offsets.check_committer(turn, self._directory.find(request.group_id), Committer.of(request))
            response = offsets.commit(turn, request, self._topics)
        except ApiError as refusal:
            response = offsets.refuse_commit(request, refusal.code)
        turn.outcome.reply(ticket, response)
        return turn.outcome

    def txn_commit_offsets(
        self, request: TxnOffsetCommitRequest, context: RequestContext, ticket: Ticket, now_ms: int
    ) -> Outcome:
        """The records belong to the producer's transaction, which is known to be open and to include this shard."""
        turn = self._turn(context, now_ms)
        try:
            if not request.group_id:
                raise ApiError(ErrorCode.INVALID_GROUP_ID)
            _check_length(request.group_id)
            consumer = self._consumers.get(request.group_id)
            if consumer is not None:
                commits.check_txn_commit(consumer, request, self._topics)
            else:
                offsets.check_txn_committer(self._directory.find(request.group_id), Committer.of(request))
            response = offsets.txn_commit(turn, request, self._topics)
        except ApiError as refusal:
            response = offsets.refuse_txn_commit(request, refusal.code)
        turn.outcome.reply(ticket, response)
        return turn.outcome

    def fetch_offsets(
        self,
        request: OffsetFetchRequestGroup,
        context: RequestContext,
        ticket: Ticket,
        *,
        require_stable: bool = False,
    ) -> Outcome:
        """One group of an OffsetFetch; the reply is its `OffsetFetchResponseGroup`."""
        fetch = Fetch(
            self._directory.offsets,
            self._topics,
            request.group_id,
            api_version=context.api_version,
            require_stable=require_stable,
        )
        outcome = Outcome()
        try:
            consumer = self._consumers.get(request.group_id)
            if consumer is not None:
                commits.check_fetch(consumer, request)
            found = fetch.answer(request)
        except ApiError as refusal:
            found = OffsetFetchResponseGroup(group_id=request.group_id, error_code=refusal.code)
        outcome.reply(ticket, found)
        return outcome

    def delete_offsets(self, request: OffsetDeleteRequest, ticket: Ticket) -> Outcome:
        outcome = Outcome()
        try:
            if not request.group_id:
                raise ApiError(ErrorCode.INVALID_GROUP_ID)
            consumer = self._consumers.get(request.group_id)
            if consumer is not None:
                subscribed = consumer.subscribed_topics()
                response = forget.forget_requested(outcome, self._directory.offsets, request, subscribed)
            else:
                group = self._directory.known(request.group_id, ErrorCode.GROUP_ID_NOT_FOUND)
                response = forget.delete_offsets(outcome, group, self._directory.offsets, request)
        except ApiError as refusal:
            response = OffsetDeleteResponse(error_code=refusal.code)
        outcome.reply(ticket, response)
        return outcome

    # ── whole groups ────────────────────────────────────────────────────────────────────────────────────────

    def list_groups(self, request: ListGroupsRequest, ticket: Ticket) -> Outcome:
        """The reply is a list of `ListedGroup`."""
        outcome = Outcome()
        outcome.reply(ticket, admin.list_groups(self._directory, request))
        return outcome

    def describe_group(self, group_id: str, context: RequestContext, ticket: Ticket) -> Outcome:
        """The reply is a `DescribedGroup`."""
        outcome = Outcome()
        outcome.reply(ticket, admin.describe_group(self._directory, group_id, context.api_version))
        return outcome

    def consumer_group_describe(self, group_id: str, ticket: Ticket) -> Outcome:
        """The reply is a `DescribedGroup` of ConsumerGroupDescribe."""
        outcome = Outcome()
        described = admin.describe_consumer_group(self._directory, group_id, self._options, self._topics)
        outcome.reply(ticket, described)
        return outcome

    def delete_group(self, group_id: str, ticket: Ticket) -> Outcome:
        """The reply is a `DeletableGroupResult`."""
        outcome = Outcome()
        try:
            admin.delete_group(outcome, self._directory, group_id)
            error = ErrorCode.NONE
        except ApiError as refusal:
            error = refusal.code
        outcome.reply(ticket, DeletableGroupResult(group_id=group_id, error_code=error))
        return outcome

    # ── within ──────────────────────────────────────────────────────────────────────────────────────────────

    def _turn(self, context: RequestContext, now_ms: int) -> Turn:
        return Turn(now_ms, self._options, Outcome(), context, self._new_id, self._options_of)


def _known_member(directory: GroupDirectory, group_id: str) -> Group:
    if not group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID)
    return directory.known(group_id, ErrorCode.UNKNOWN_MEMBER_ID)


def _check_length(group_id: str) -> None:
    if is_too_long(group_id):
        raise ApiError(ErrorCode.INVALID_GROUP_ID)
