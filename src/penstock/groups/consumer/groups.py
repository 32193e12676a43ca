"""ConsumerGroups: the consumer groups of one shard, from request to outcome.

`GroupShard` finds out whose a request is; what is for a consumer group, or makes one, comes here. A refused request leaves
no record and no alarm behind.
"""

from collections.abc import Iterable

from penstock.coordination.form import AlarmKey, Outcome, Ticket
from penstock.groups.classic.rebalance import Turn
from penstock.groups.consumer import classic_members
from penstock.groups.consumer.convert import give_up_classic, upgraded
from penstock.groups.consumer.draft import Draft
from penstock.groups.consumer.fence import fence
from penstock.groups.consumer.heartbeat import (
    check_request,
    heartbeat,
    leave_for_a_while,
    leaving_member,
    unknown_member,
)
from penstock.groups.consumer.records import GROUP, read_key, read_value
from penstock.groups.consumer.scene import REBALANCE, REJOIN, RESYNC, SESSION, Scene
from penstock.groups.consumer.state import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroup,
    MemberState,
)
from penstock.groups.state import Group
from penstock.groups.topics import Topics
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from penstock.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.wire.messages.leave_group import LeaveGroupRequest
from penstock.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class ConsumerGroups:
    __slots__ = ("_checked", "_classic_groups", "_groups", "_rejoining", "_topics", "_topics_version")

    def __init__(self, *, topics: Topics, classic_groups: dict[str, Group]) -> None:
        self._topics = topics
        self._classic_groups = classic_groups
        # Hard: changed by replay alone.
        self._groups: dict[str, ConsumerGroup] = {}
        # Soft.
        self._topics_version = 1
        self._checked: dict[str, int] = {}
        """Which version of the topics the groups were last compared with."""
        self._rejoining: set[tuple[str, str]] = set()

    # ── the form ────────────────────────────────────────────────────────────────────────────────────────────

    def get(self, group_id: str) -> ConsumerGroup | None:
        return self._groups.get(group_id)

    def all(self) -> list[ConsumerGroup]:
        return list(self._groups.values())

    def ids(self) -> Iterable[str]:
        return self._groups

    def replay(self, key: bytes, value: bytes | None) -> None:
        name = read_key(key)
        group = self._groups.get(name.group)
        if value is not None:
            read = read_value(name.kind, value)
            if group is None:
                group = self._groups[name.group] = ConsumerGroup(name.group)
            group.put(name, read)
        elif group is not None:
            group.drop(name)
            if name.kind == GROUP:
                del self._groups[name.group]
                self._checked.pop(name.group, None)

    def hard_state(self) -> object:
        return {group_id: group.hard_state() for group_id, group in self._groups.items()}

    def on_loaded(self, turn: Turn) -> None:
        self._topics_version = max(turn.now_ms, 1)
        self.expect_life(turn)

    def expect_life(self, turn: Turn) -> None:
        """Everybody has one session to be heard of again."""
        scene = self._scene(turn)
        for group in self._groups.values():
            session_ms = scene.options_of(group).consumer_session_timeout_ms
            for member in group.members.values():
                scene.set_alarm(SESSION, group.group_id, member.member_id, session_ms)
                if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
                    scene.set_alarm(REBALANCE, group.group_id, member.member_id, member.rebalance_timeout_ms)

    def on_alarm(self, turn: Turn, group: ConsumerGroup, key: AlarmKey) -> None:
        scene = self._scene(turn)
        if key[0] == REJOIN:
            self._rejoining.discard((key[1], key[2]))
        member = group.members.get(key[2]) if len(key) == 3 else None
        if member is None:
            return
        is_revoking = member.state is MemberState.UNREVOKED_PARTITIONS and member.member_epoch >= 0
        if key[0] in (SESSION, REJOIN, RESYNC) or (key[0] == REBALANCE and is_revoking):
            fence(scene, group, [member])

    def on_topics_changed(self, now_ms: int) -> None:
        """Groups look at it with the next heartbeat of any of their members."""
        self._topics_version = max(now_ms, self._topics_version + 1)

    # ── requests of the newer protocol ──────────────────────────────────────────────────────────────────────

    def heartbeat(
        self, turn: Turn, request: ConsumerGroupHeartbeatRequest, ticket: Ticket, classic: Group | None
    ) -> Outcome:
        """`classic`: the classic group of that id, if there is one."""
        try:
            turn.outcome.reply(ticket, self._heartbeat(turn, request, classic))
        except ApiError as refusal:
            response = ConsumerGroupHeartbeatResponse(
                error_code=refusal.code, error_message=refusal.detail or None
            )
            return _refused(ticket, response)
        return turn.outcome

    def _heartbeat(
        self, turn: Turn, request: ConsumerGroupHeartbeatRequest, classic: Group | None
    ) -> ConsumerGroupHeartbeatResponse:
        check_request(request, turn.context.api_version, turn.options)
        scene = self._scene(turn)
        group = self._groups.get(request.group_id)
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return _leave(scene, _known(group, request.group_id, classic), request)
        if group is None and classic is not None and request.member_epoch > JOIN_EPOCH:
            # It was put out, and then the group changed back. Kafka says GROUP_ID_NOT_FOUND, which ends a client for good;
            # so it joins again, as one that was put out does.
            raise unknown_member(classic, request.member_id)
        if request.member_epoch != JOIN_EPOCH:
            draft = Draft(_known(group, request.group_id, classic))
        elif group is None and classic is not None:
            draft = upgraded(scene, classic)
        else:
            draft = Draft(group or ConsumerGroup(request.group_id))
        is_checked = self._checked.get(request.group_id) == self._topics_version
        response = heartbeat(scene, draft, request, is_checked=is_checked)
        turn.outcome.records += draft.records
        self._checked[request.group_id] = self._topics_version
        if group is None and classic is not None:
            give_up_classic(scene, classic)
        return response

    # ── requests of the classic protocol ────────────────────────────────────────────────────────────────────

    def join(self, turn: Turn, group: ConsumerGroup, request: JoinGroupRequest, ticket: Ticket) -> Outcome:
        is_checked = self._checked.get(group.group_id) == self._topics_version
        try:
            response = classic_members.join(self._scene(turn), group, request, is_checked=is_checked)
        except ApiError as refusal:
            is_full = refusal.code is ErrorCode.GROUP_MAX_SIZE_REACHED
            member_id = "" if is_full else request.member_id
            return _refused(ticket, JoinGroupResponse(error_code=refusal.code, member_id=member_id))
        turn.outcome.reply(ticket, response)
        return turn.outcome

    def sync(self, turn: Turn, group: ConsumerGroup, request: SyncGroupRequest, ticket: Ticket) -> Outcome:
        try:
            turn.outcome.reply(ticket, classic_members.sync(self._scene(turn), group, request))
        except ApiError as refusal:
            return _refused(ticket, SyncGroupResponse(error_code=refusal.code))
        return turn.outcome

    def classic_heartbeat(
        self, turn: Turn, group: ConsumerGroup, request: HeartbeatRequest, ticket: Ticket
    ) -> Outcome:
        try:
            error = classic_members.heartbeat(self._scene(turn), group, request)
        except ApiError as refusal:
            error = refusal.code
        turn.outcome.reply(ticket, HeartbeatResponse(error_code=error))
        return turn.outcome

    def leave(self, turn: Turn, group: ConsumerGroup, request: LeaveGroupRequest, ticket: Ticket) -> Outcome:
        turn.outcome.reply(ticket, classic_members.leave(self._scene(turn), group, request))
        return turn.outcome

    def _scene(self, turn: Turn) -> Scene:
        return Scene(turn, self._topics, self._topics_version, self._classic_groups, self._rejoining)


def _known(group: ConsumerGroup | None, group_id: str, classic: Group | None) -> ConsumerGroup:
    if group is not None:
        return group
    why = "is not a consumer group" if classic is not None else "not found"
    raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {why}.")


def _leave(
    scene: Scene, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    member = leaving_member(group, request)
    if request.member_epoch == STATIC_LEAVE_EPOCH:
        draft = Draft(group)
        leave_for_a_while(scene, draft, member)
        scene.turn.outcome.records += draft.records
    else:
        fence(scene, group, [member])
    return ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=request.member_epoch)


def _refused(ticket: Ticket, response: object) -> Outcome:
    """Nothing but the refusal: what had been decided before it came is dropped."""
    outcome = Outcome()
    outcome.reply(ticket, response)
    return outcome


def tombstones(group: ConsumerGroup) -> list[tuple[bytes, bytes | None]]:
    """What deletes a group: it is empty, or a classic group takes its place."""
    draft = Draft(group)
    draft.drop_group()
    return draft.records
