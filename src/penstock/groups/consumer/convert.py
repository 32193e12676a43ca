"""Changes the protocol of a group in use. Its members notice only a rebalance.

Upgrade: a member of the newer protocol joins a classic group of consumers. The generation becomes the epoch, what members
have been assigned becomes what they own. They continue with the classic protocol (`classic_members.py`) until they are
replaced. Downgrade: the last member of the newer protocol goes, and classic ones are left. `group.consumer.migration.policy`
allows either, both or none.
"""

from collections.abc import Sequence
from typing import Final

from penstock.groups.classic.rebalance import (
    expect_life,
    join_alarm,
    prepare_rebalance,
    record_group,
    refuse_join,
    refuse_sync,
    sync_alarm,
)
from penstock.groups.consumer.draft import Draft
from penstock.groups.consumer.scene import SESSION, Scene
from penstock.groups.consumer.state import NO_TARGET, ClassicSide, ConsumerGroup, Member
from penstock.groups.consumer.topic_hash import metadata_hash
from penstock.groups.consumer_protocol import read_assignment, read_subscription, write_assignment
from penstock.groups.options import GroupOptions
from penstock.groups.records import write_group_key
from penstock.groups.state import CONSUMER_PROTOCOL_TYPE, Group, GroupState
from penstock.groups.state import Member as ClassicMember
from penstock.model.errors import ApiError, ErrorCode

WELL_KNOWN_ASSIGNORS: Final = frozenset(("range", "roundrobin", "sticky", "cooperative-sticky"))
"""What these add to an assignment is their own memory, and is not missed: librdkafka's cooperative-sticky does from the second
generation on. What any other assignor adds its members may rely on, so that their group is left as it is. (Apache Kafka
leaves both as they are.)"""

# ── classic → consumer ──────────────────────────────────────────────────────────────────────────────────────────


def upgraded(scene: Scene, classic: Group) -> Draft:
    """The classic group as a consumer group; refused (ApiError) where that cannot be. Nothing has happened to the classic
    group yet: `give_up_classic` does that once the member that came with it is accepted."""
    draft = Draft(ConsumerGroup(classic.group_id))
    draft.records.append((write_group_key(classic.group_id), None))
    if classic.state is GroupState.EMPTY:
        return draft
    _check_upgrade(scene.options, classic)
    try:
        members = [_upgraded_member(scene, classic, member) for member in classic.members.values()]
    except ValueError:
        raise _cannot_upgrade(classic, "the embedded consumer protocol is malformed") from None
    for member in members:
        draft.set_metadata(member)
    topics_hash = metadata_hash(draft.group.subscribed_topics(), scene.topics)
    draft.set_epoch(classic.generation_id, topics_hash)
    for member in members:
        target = {topic_id: frozenset(epochs) for topic_id, epochs in member.assigned.items()}
        draft.set_target(member.member_id, target)
    draft.set_target_epoch(classic.generation_id, 0)
    for member in members:
        draft.set_current(member)
    return draft


def _check_upgrade(options: GroupOptions, classic: Group) -> None:
    if not options.allows_upgrade:
        raise _cannot_upgrade(classic, "online upgrade is disabled")
    if classic.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise _cannot_upgrade(classic, "the group does not use the consumer embedded protocol")
    if len(classic.members) > options.consumer_max_size:
        raise _cannot_upgrade(classic, "the group size exceeds the consumer group maximum size")


def _cannot_upgrade(classic: Group, why: str) -> ApiError:
    return ApiError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {classic.group_id} to consumer group because {why}.",
    )


def _upgraded_member(scene: Scene, classic: Group, member: ClassicMember) -> Member:
    # Before its first generation is complete a group has chosen no protocol yet.
    chosen = classic.protocol_name if classic.protocol_name in member.protocols else None
    subscriptions = {name: read_subscription(raw) for name, raw in member.protocols.items()}
    subscription = subscriptions[chosen or next(iter(subscriptions))]
    target, has_user_data = read_assignment(member.assignment, scene.topics)
    if has_user_data and chosen not in WELL_KNOWN_ASSIGNORS:
        raise _cannot_upgrade(classic, "an unsupported custom assignor is in use")
    epoch = classic.generation_id
    return Member(
        member_id=member.member_id,
        member_epoch=epoch,
        previous_member_epoch=epoch,
        assigned={
            topic_id: dict.fromkeys(partitions, epoch)
            for topic_id, partitions in target.items()
            if partitions
        },
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=frozenset(subscription.topics),
        classic=ClassicSide(member.session_timeout_ms, tuple(member.protocols.items())),
    )


def give_up_classic(scene: Scene, classic: Group) -> None:
    """Answer who is parked, and move the alarms: from now on the members are the consumer group's."""
    turn = scene.turn
    for member in classic.members.values():
        refuse_join(turn, classic, member, ErrorCode.REBALANCE_IN_PROGRESS)
        refuse_sync(turn, member, ErrorCode.REBALANCE_IN_PROGRESS)
        scene.set_alarm(SESSION, classic.group_id, member.member_id, member.session_timeout_ms)
    for member_id in sorted(classic.pending_members):
        scene.cancel_alarm(SESSION, classic.group_id, member_id)
    turn.outcome.alarm(join_alarm(classic.group_id), None)
    turn.outcome.alarm(sync_alarm(classic.group_id), None)
    scene.classic_groups.pop(classic.group_id, None)


# ── consumer → classic ──────────────────────────────────────────────────────────────────────────────────────────


def can_downgrade(options: GroupOptions, group: ConsumerGroup, leaving: Sequence[Member]) -> bool:
    """Whether members are left without those who leave, and all of them are of the classic protocol."""
    leaving_ids = {member.member_id for member in leaving}
    staying = [member for member in group.members.values() if member.member_id not in leaving_ids]
    return (
        bool(staying)
        and all(member.classic is not None for member in staying)
        and options.allows_downgrade
        and len(staying) <= options.max_size
    )


def downgrade(
    scene: Scene, draft: Draft, *, leaving: Sequence[Member] = (), must_rebalance: bool = True
) -> None:
    """Put a classic group in the place of the draft's, and the draft's records into the outcome."""
    turn, group = scene.turn, draft.group
    leaving_ids = {member.member_id for member in leaving}
    classic = Group(group.group_id, scene.now_ms)
    classic.generation_id = group.group_epoch
    classic.protocol_type = CONSUMER_PROTOCOL_TYPE
    for member in group.members.values():
        scene.cancel_rebalance_alarms(group.group_id, member.member_id)
        if member.member_id in leaving_ids:
            scene.cancel_alarm(SESSION, group.group_id, member.member_id)
        else:
            classic.add(_downgraded_member(member))
    classic.protocol_name = classic.select_protocol()
    for one in classic.members.values():
        target = group.targets.get(one.member_id, NO_TARGET)
        one.assignment = write_assignment(target, scene.topics, like=one.protocols[classic.protocol_name])
        expect_life(turn, classic, one)
    classic.state = GroupState.STABLE
    draft.drop_group()
    turn.outcome.records += draft.records
    record_group(turn, classic)
    scene.classic_groups[classic.group_id] = classic
    if must_rebalance:
        prepare_rebalance(turn, classic)


def _downgraded_member(member: Member) -> ClassicMember:
    assert member.classic is not None
    classic = ClassicMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
    )
    classic.session_timeout_ms = member.classic.session_timeout_ms
    classic.rebalance_timeout_ms = member.rebalance_timeout_ms
    classic.protocols = dict(member.classic.protocols)
    return classic
