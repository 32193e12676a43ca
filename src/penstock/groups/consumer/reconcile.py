"""Moves a member one step from its current assignment towards its target.

First the member is told which partitions to give up, and stays in its epoch until it reports that it has done so. Then it moves
to the epoch of the target and gets the free partitions of the target. It gets the others with later heartbeats.

    assigned {0 1 2}, target {2 3}   epoch 5: assigned {2}, pending revocation {0 1}      UNREVOKED_PARTITIONS
    it reports {2}; 3 is another's   epoch 6: assigned {2}                                UNRELEASED_PARTITIONS
    3 has been released              epoch 6: assigned {2 3}                              STABLE
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from penstock.groups.consumer.state import (
    NO_PARTITIONS,
    ConsumerGroup,
    Member,
    MemberState,
    Partitions,
    Target,
)
from penstock.groups.topics import Topics
from penstock.model.errors import ApiError, ErrorCode

Owned = Mapping[bytes, Iterable[int]]
"""What a member reports to own."""


class Goal(NamedTuple):
    """Where a member is to go."""

    assignment_epoch: int
    target: Target
    owned: Owned | None
    """None: it has not said."""
    is_resubscribed: bool
    """It has just changed what it subscribes to; what it no longer wants is taken from it at once."""


def reconciled(group: ConsumerGroup, member: Member, goal: Goal, topics: Topics) -> Member:
    """The member as it should be from now on; it must be in the group already. ApiError if it has to begin again."""
    if not goal.is_resubscribed and member.is_reconciled_to(goal.assignment_epoch):
        return member
    wanted = _topic_ids(group.topics_of(member), topics)
    if member.state is MemberState.STABLE and member.member_epoch == goal.assignment_epoch:
        return _without_unwanted(member, goal, wanted)
    if member.state is MemberState.UNREVOKED_PARTITIONS and _owns_any(goal.owned, member.pending_revocation):
        return _without_unwanted(member, goal, wanted) if goal.is_resubscribed else member
    if member.state is MemberState.UNKNOWN and (goal.owned is None or any(goal.owned.values())):
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in an unknown state and must rejoin without partitions.",
        )
    return _next(group, member, goal, wanted)


def _topic_ids(names: Iterable[str], topics: Topics) -> set[bytes]:
    ids = (topics.topic_id(name) for name in names)
    return {topic_id for topic_id in ids if topic_id is not None}


def _owns_any(owned: Owned | None, partitions: Partitions) -> bool:
    """Whether it still owns one of them; a member that does not say may own them all."""
    if owned is None:
        return True
    return any(
        partition in partitions.get(topic_id, ())
        for topic_id, indexes in owned.items()
        for partition in indexes
    )


def _without_unwanted(member: Member, goal: Goal, wanted: set[bytes]) -> Member:
    """Between two targets a member loses at once what it has unsubscribed from."""
    unwanted = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in wanted}
    if not unwanted:
        return member
    kept = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id in wanted}
    pending = dict(member.pending_revocation)
    for topic_id, epochs in unwanted.items():
        pending[topic_id] = {**pending.get(topic_id, {}), **epochs}
    moved = member.moved_to(member.member_epoch)._replace(assigned=kept)
    if _owns_any(goal.owned, pending):
        return moved._replace(state=MemberState.UNREVOKED_PARTITIONS, pending_revocation=pending)
    return moved


def _next(group: ConsumerGroup, member: Member, goal: Goal, wanted: set[bytes]) -> Member:
    assigned: dict[bytes, Mapping[int, int]] = {}
    revoked: dict[bytes, Mapping[int, int]] = {}
    added: dict[bytes, Mapping[int, int]] = {}
    waits = False
    for topic_id in sorted(goal.target.keys() | member.assigned.keys()):
        target = goal.target.get(topic_id, frozenset()) if topic_id in wanted else frozenset()
        current = member.assigned.get(topic_id, {})
        kept = {partition: epoch for partition, epoch in current.items() if partition in target}
        lost = {partition: epoch for partition, epoch in current.items() if partition not in target}
        missing = [partition for partition in target if partition not in current]
        free = {
            partition: goal.assignment_epoch
            for partition in missing
            if group.owners.get((topic_id, partition), member.member_id) == member.member_id
        }
        waits = waits or len(free) < len(missing)
        for parts, into in ((kept, assigned), (lost, revoked), ({**kept, **free}, added)):
            if parts:
                into[topic_id] = parts
    if revoked and _owns_any(goal.owned, revoked):
        return member.moved_to(member.member_epoch)._replace(
            state=MemberState.UNREVOKED_PARTITIONS, assigned=assigned, pending_revocation=revoked
        )
    return member.moved_to(goal.assignment_epoch)._replace(
        state=MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE,
        assigned=added,
        pending_revocation=NO_PARTITIONS,
    )
