"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of members who speak the classic protocol in a consumer group.

To such a member every change of its assignment is a rebalance of one: its heartbeat tells it to join again, JoinGroup
moves it one step towards its target and is answered at once (nobody is waited for, there is no leader), SyncGroup hands
out what it has. Its generation is its member epoch.
"""

from typing import Final

from penstock.groups.classic.leave import leaving_members
from penstock.groups.consumer.assign import update_targets
from penstock.groups.consumer.convert import can_downgrade, downgrade
from penstock.groups.consumer.draft import Draft
from penstock.groups.consumer.fence import fence
from penstock.groups.consumer.heartbeat import (
    check_room,
    dynamic_member,
    known_static_member,
    move,
    replace_static,
)
from penstock.groups.consumer.reconcile import Owned
from penstock.groups.consumer.scene import RESYNC, SESSION, Scene
from penstock.groups.consumer.state import NO_TARGET, ClassicSide, ConsumerGroup, Member, MemberState
from penstock.groups.consumer.subscribe import update_member
from penstock.groups.consumer_protocol import read_subscription, write_assignment
from penstock.groups.state import CONSUMER_PROTOCOL_TYPE
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from penstock.wire.messages.heartbeat import HeartbeatRequest
from penstock.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from penstock.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

MEMBER_ID_REQUIRED_FROM: Final = 4
LEAVE_BATCH_FROM: Final = 3

# ── JoinGroup ───────────────────────────────────────────────────────────────────────────────────────────────────


def join(
    scene: Scene, group: ConsumerGroup, request: JoinGroupRequest, *, is_checked: bool
) -> JoinGroupResponse:
    """Decide, or refuse with an ApiError that changes nothing."""
    if not scene.options.allows_classic_members:
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "The migration of groups is disabled.")
    member_id = request.member_id or scene.turn.new_id()
    check_room(scene.options, group, member_id)
    subscription = _check_protocols(group, request)
    is_dynamic = request.group_instance_id is None
    if not request.member_id and is_dynamic and scene.turn.context.api_version >= MEMBER_ID_REQUIRED_FROM:
        return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
    draft = Draft(group)
    replaced = group.static_member(request.group_instance_id)
    before = _joining_member(scene, draft, request, member_id)
    after = _as_requested(scene, before, request, subscription)
    is_resubscribed = update_member(scene, draft, before, after, is_checked=is_checked)
    owned = _owned(scene, subscription)
    becomes_classic = (
        replaced is not None and replaced.classic is None and can_downgrade(scene.options, draft.group, ())
    )
    if becomes_classic:
        is_stale = draft.group.assignment_epoch < draft.group.group_epoch
        if not is_stale:
            after = move(scene, draft, draft.group.members[member_id], owned, is_resubscribed=is_resubscribed)
        downgrade(scene, draft, must_rebalance=is_stale)
    else:
        update_targets(draft, scene.topics, scene.options_of(draft.group), scene.now_ms)
        after = move(scene, draft, draft.group.members[member_id], owned, is_resubscribed=is_resubscribed)
        scene.turn.outcome.records += draft.records
        scene.cancel_rejoin(group.group_id, member_id)
        scene.set_alarm(SESSION, group.group_id, member_id, request.session_timeout_ms)
        scene.set_alarm(RESYNC, group.group_id, member_id, after.rebalance_timeout_ms)
    return JoinGroupResponse(
        generation_id=after.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=request.protocols[0].name,
        member_id=member_id,
    )


def _check_protocols(group: ConsumerGroup, request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    """One of its protocols must be known to all other classic members: the group may have to become classic again. Returns
    the subscription of the one it likes best."""
    names = {protocol.name for protocol in request.protocols}
    for member in group.classic_members():
        assert member.classic is not None
        names.intersection_update(name for name, _ in member.classic.protocols)
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not names:
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "The member's protocols are not supported.")
    try:
        first, *_ = [read_subscription(bytes(protocol.metadata)) for protocol in request.protocols]
    except ValueError as error:
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(error)) from None
    return first


def _joining_member(scene: Scene, draft: Draft, request: JoinGroupRequest, member_id: str) -> Member:
    if request.group_instance_id is None:
        return dynamic_member(draft.group, member_id, may_join=True)
    if request.member_id:
        return known_static_member(draft.group, request.group_instance_id, member_id)
    known = draft.group.static_member(request.group_instance_id)
    if known is None:
        return Member(member_id)
    return replace_static(scene, draft, known, member_id)


def _as_requested(
    scene: Scene, member: Member, request: JoinGroupRequest, subscription: ConsumerProtocolSubscription
) -> Member:
    timeout_ms = request.rebalance_timeout_ms
    protocols = tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols)
    return member._replace(
        instance_id=request.group_instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=timeout_ms if timeout_ms >= 0 else request.session_timeout_ms,
        client_id=scene.turn.context.client_id,
        client_host=scene.turn.context.client_host,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        classic=ClassicSide(request.session_timeout_ms, protocols),
    )


def _owned(scene: Scene, subscription: ConsumerProtocolSubscription) -> Owned:
    owned = {}
    for part in subscription.owned_partitions:
        topic_id = scene.topics.topic_id(part.topic)
        if topic_id is not None:
            owned[topic_id] = part.partitions
    return owned


# ── SyncGroup, Heartbeat ────────────────────────────────────────────────────────────────────────────────────────


def sync(scene: Scene, group: ConsumerGroup, request: SyncGroupRequest) -> SyncGroupResponse:
    member, classic = _check_member(group, request)
    name, subscription = classic.protocols[0]
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or request.protocol_name not in (
        None,
        name,
    ):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.assignment_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        scene.expect_rejoin(group.group_id, member.member_id, member.rebalance_timeout_ms)
        return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    scene.cancel_alarm(RESYNC, group.group_id, member.member_id)
    scene.set_alarm(SESSION, group.group_id, member.member_id, classic.session_timeout_ms)
    has = {topic_id: frozenset(epochs) for topic_id, epochs in member.assigned.items()}
    return SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=write_assignment(has, scene.topics, like=subscription),
    )


def heartbeat(scene: Scene, group: ConsumerGroup, request: HeartbeatRequest) -> ErrorCode:
    member, classic = _check_member(group, request)
    scene.set_alarm(SESSION, group.group_id, member.member_id, classic.session_timeout_ms)
    if (
        member.member_epoch < group.assignment_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and not _waits_for_others(group, member))
    ):
        scene.expect_rejoin(group.group_id, member.member_id, member.rebalance_timeout_ms)
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _check_member(
    group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest
) -> tuple[Member, ClassicSide]:
    if request.group_instance_id is None:
        member = dynamic_member(group, request.member_id, may_join=False)
    else:
        member = known_static_member(group, request.group_instance_id, request.member_id)
    if member.classic is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, "The member does not use the classic protocol.")
    if request.generation_id != member.member_epoch:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    return member, member.classic


def _waits_for_others(group: ConsumerGroup, member: Member) -> bool:
    """Whether something of its target still belongs to another; if not, it had better ask for it."""
    for topic_id, partitions in group.targets.get(member.member_id, NO_TARGET).items():
        assigned = member.assigned.get(topic_id, {})
        if any(index not in assigned and (topic_id, index) in group.owners for index in partitions):
            return True
    return False


# ── LeaveGroup ──────────────────────────────────────────────────────────────────────────────────────────────────


def leave(scene: Scene, group: ConsumerGroup, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Members of both protocols may be made to leave this way, the newer ones by an operator."""
    results, leaving = [], {}
    for identity in leaving_members(request, scene.turn.context.api_version):
        error = ErrorCode.NONE
        try:
            member = _leaving_member(group, identity)
            leaving[member.member_id] = member
        except ApiError as refusal:
            error = refusal.code
        results.append(
            MemberResponse(
                member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error
            )
        )
    fence(scene, group, list(leaving.values()))
    if scene.turn.context.api_version < LEAVE_BATCH_FROM:
        return LeaveGroupResponse(error_code=results[0].error_code)
    return LeaveGroupResponse(members=results)


def _leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> Member:
    if identity.group_instance_id is None:
        return dynamic_member(group, identity.member_id, may_join=False)
    member_id = identity.member_id or group.static_members.get(identity.group_instance_id, "")
    return known_static_member(group, identity.group_instance_id, member_id)
