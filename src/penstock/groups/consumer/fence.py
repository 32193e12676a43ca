"""Removes members: they left, sent no heartbeat, or did not give up their partitions in time."""

from collections.abc import Sequence

from penstock.groups.consumer.convert import can_downgrade, downgrade
from penstock.groups.consumer.draft import Draft
from penstock.groups.consumer.scene import Scene
from penstock.groups.consumer.state import ConsumerGroup, Member
from penstock.groups.consumer.topic_hash import metadata_hash


def fence(scene: Scene, group: ConsumerGroup, members: Sequence[Member]) -> None:
    """Take members out of the group. If only members of the classic protocol are left, it becomes a classic group."""
    if not members:
        return
    draft = Draft(group)
    if can_downgrade(scene.options, group, members):
        downgrade(scene, draft, leaving=members)
        return
    for member in members:
        draft.drop_member(member.member_id)
        scene.cancel_all(group.group_id, member.member_id)
    for regex in sorted(draft.group.regexes.keys() - draft.group.subscribed_regexes()):
        draft.drop_regex(regex)
    topics_hash = metadata_hash(draft.group.subscribed_topics(), scene.topics)
    draft.set_epoch(group.group_epoch + 1, topics_hash)
    scene.turn.outcome.records += draft.records
