"""ConsumerGroupHeartbeat: join, stay, leave. A member says what has changed about it, and learns what has changed for it.

The member's epoch says where it is: 0 joins, -1 leaves, -2 leaves for a while (static members). Any other must be the one
that we know. The one before is taken, too, if the member owns nothing that it should not: then our last answer was lost.
"""

from typing import Final

from penstock.groups.consumer.assign import update_targets
from penstock.groups.consumer.assignors import offered_assignors
from penstock.groups.consumer.draft import Draft
from penstock.groups.consumer.reconcile import Goal, Owned, reconciled
from penstock.groups.consumer.scene import REBALANCE, SESSION, Scene
from penstock.groups.consumer.state import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    NO_PARTITIONS,
    NO_TARGET,
    STATIC_LEAVE_EPOCH,
    ConsumerGroup,
    Member,
    MemberState,
    Partitions,
)
from penstock.groups.consumer.subscribe import update_member
from penstock.groups.options import GroupOptions
from penstock.groups.state import Group
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

CLIENT_CHOOSES_ID_FROM: Final = 1
NAME_MAX_BYTES: Final = 32_000
"""Keys and values of records have strings of 32,767 bytes at most."""


def check_request(request: ConsumerGroupHeartbeatRequest, api_version: int, options: GroupOptions) -> None:
    """What can be refused without looking at the group."""
    epoch = request.member_epoch
    must_have_id = api_version >= CLIENT_CHOOSES_ID_FROM or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH
    if must_have_id and not request.member_id.strip():
        raise _invalid("MemberId can't be empty.")
    for text, name in (
        (request.group_id, "GroupId"),
        (request.instance_id, "InstanceId"),
        (request.rack_id, "RackId"),
    ):
        if text is not None and not text.strip():
            raise _invalid(f"{name} can't be empty.")
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
            )
    elif epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    offered = offered_assignors(options.consumer_assignors)
    if request.server_assignor is not None and request.server_assignor not in offered:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(offered)}.",
        )
    names = (request.group_id, request.member_id, request.instance_id, request.rack_id)
    for text in (*names, request.subscribed_topic_regex, *(request.subscribed_topic_names or ())):
        if text is not None and len(text.encode()) > NAME_MAX_BYTES:
            raise _invalid(f"A name is longer than {NAME_MAX_BYTES} bytes.")


def _invalid(why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, why)


# ── staying ─────────────────────────────────────────────────────────────────────────────────────────────────────


def heartbeat(
    scene: Scene, draft: Draft, request: ConsumerGroupHeartbeatRequest, *, is_checked: bool
) -> ConsumerGroupHeartbeatResponse:
    """Write what comes of it into the draft. `is_checked` as in `subscribe.update_member`."""
    check_room(scene.options, draft.group, request.member_id)
    member_id = request.member_id or scene.turn.new_id()
    owned = _owned(request)
    if request.instance_id is None:
        before = dynamic_member(draft.group, member_id, may_join=request.member_epoch == JOIN_EPOCH)
        check_epoch(before, request.member_epoch, owned)
    else:
        before = _static_member(scene, draft, request, member_id, owned)
    after = _as_requested(scene, before, request)
    is_resubscribed = update_member(scene, draft, before, after, is_checked=is_checked)
    options = scene.options_of(draft.group)
    update_targets(draft, scene.topics, options, scene.now_ms)
    after = move(
        scene, draft, draft.group.members.get(member_id, after), owned, is_resubscribed=is_resubscribed
    )
    scene.set_alarm(SESSION, draft.group.group_id, member_id, options.consumer_session_timeout_ms)
    if before.classic is not None:
        scene.cancel_rebalance_alarms(draft.group.group_id, member_id)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=after.member_epoch,
        heartbeat_interval_ms=options.consumer_heartbeat_interval_ms,
    )
    if request.member_epoch == JOIN_EPOCH or _is_full(request) or after.assigned != before.assigned:
        response.assignment = _assignment(after.assigned)
    return response


def check_room(options: GroupOptions, group: ConsumerGroup, member_id: str) -> None:
    if len(group.members) >= options.consumer_max_size and member_id not in group.members:
        raise ApiError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {options.consumer_max_size} members.",
        )


def dynamic_member(group: ConsumerGroup, member_id: str, *, may_join: bool) -> Member:
    member = group.members.get(member_id)
    if member is not None:
        return member
    if not may_join:
        raise unknown_member(group, member_id)
    return Member(member_id)


def unknown_member(group: ConsumerGroup | Group, member_id: str) -> ApiError:
    return ApiError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}."
    )


def _static_member(
    scene: Scene,
    draft: Draft,
    request: ConsumerGroupHeartbeatRequest,
    member_id: str,
    owned: Owned | None,
) -> Member:
    group, instance_id = draft.group, request.instance_id or ""
    known = group.static_member(instance_id)
    if request.member_epoch != JOIN_EPOCH:
        known = known_static_member(group, instance_id, member_id)
        check_epoch(known, request.member_epoch, owned)
        return known
    if known is None:
        return dynamic_member(group, member_id, may_join=True)
    if known.classic is None and known.member_epoch != STATIC_LEAVE_EPOCH:
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
            f"instance id is owned by {known.member_id} member.",
        )
    return replace_static(scene, draft, known, member_id)


def known_static_member(group: ConsumerGroup, instance_id: str, member_id: str) -> Member:
    member = group.static_member(instance_id)
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
        )
    return member


def replace_static(scene: Scene, draft: Draft, old: Member, member_id: str) -> Member:
    """A static member comes back under a new id, and takes over what the old one has."""
    scene.cancel_all(draft.group.group_id, old.member_id)
    target = draft.group.targets.get(old.member_id, NO_TARGET)
    new = old._replace(member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=JOIN_EPOCH)
    draft.drop_member(old.member_id)
    draft.set_metadata(new)
    draft.set_target(member_id, target)
    draft.set_current(new)
    return new


def check_epoch(member: Member, member_epoch: int, owned: Owned | None) -> None:
    if member_epoch in (JOIN_EPOCH, member.member_epoch):
        return
    is_retry = member_epoch == member.previous_member_epoch and _is_within(owned, member.assigned)
    if member_epoch < member.member_epoch and is_retry:
        return
    than = "greater" if member_epoch > member.member_epoch else "smaller"
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {than} member epoch ({member_epoch}) than the one known by the group "
        f"coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin.",
    )


def _is_within(owned: Owned | None, partitions: Partitions) -> bool:
    if owned is None:
        return False
    return all(
        index in partitions.get(topic_id, ()) for topic_id, indexes in owned.items() for index in indexes
    )


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    parts = request.topic_partitions
    return None if parts is None else {part.topic_id: part.partitions for part in parts}


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether a member tells everything, as it does when it joins, and when it is not sure what we know."""
    return (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )


def _as_requested(scene: Scene, member: Member, request: ConsumerGroupHeartbeatRequest) -> Member:
    """What a request leaves out has not changed."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return member._replace(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor=request.server_assignor or member.server_assignor,
        subscribed_topic_names=member.subscribed_topic_names if names is None else frozenset(names),
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
        client_id=scene.turn.context.client_id,
        client_host=scene.turn.context.client_host,
        classic=None,
    )


def move(scene: Scene, draft: Draft, member: Member, owned: Owned | None, *, is_resubscribed: bool) -> Member:
    """One step towards the target, recorded if it is one."""
    group = draft.group
    target = group.targets.get(member.member_id, NO_TARGET)
    goal = Goal(group.assignment_epoch, target, owned, is_resubscribed)
    moved = reconciled(group, member, goal, scene.topics)
    if moved == member:
        return member
    draft.set_current(moved)
    if moved.classic is None:
        if moved.state is MemberState.UNREVOKED_PARTITIONS:
            scene.set_alarm(REBALANCE, group.group_id, member.member_id, moved.rebalance_timeout_ms)
        else:
            scene.cancel_alarm(REBALANCE, group.group_id, member.member_id)
    return moved


def _assignment(partitions: Partitions) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(partitions[topic_id]))
            for topic_id in sorted(partitions)
        ]
    )


# ── leaving ─────────────────────────────────────────────────────────────────────────────────────────────────────


def leaving_member(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> Member:
    if request.instance_id is not None:
        return known_static_member(group, request.instance_id, request.member_id)
    return dynamic_member(group, request.member_id, may_join=False)


def leave_for_a_while(scene: Scene, draft: Draft, member: Member) -> None:
    """Its session continues; what it has is kept for it till then. Commits are taken with any epoch of it from now on."""
    kept = {topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()}
    draft.set_current(
        member._replace(member_epoch=STATIC_LEAVE_EPOCH, assigned=kept, pending_revocation=NO_PARTITIONS)
    )
    scene.cancel_alarm(REBALANCE, draft.group.group_id, member.member_id)
