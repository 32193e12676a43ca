"""The target assignment: computed again when the group's epoch has moved on, at most once in an interval.

The interval keeps a group that many members join at once from being shuffled with each of them: who comes in between has
nothing until the next heartbeat after it.
"""

from penstock.groups.consumer.assignors import ASSIGNORS, MemberSpec, offered_assignors
from penstock.groups.consumer.draft import Draft
from penstock.groups.consumer.state import NO_TARGET
from penstock.groups.options import GroupOptions
from penstock.groups.topics import Topics


def update_targets(draft: Draft, topics: Topics, options: GroupOptions, now_ms: int) -> None:
    group = draft.group
    if group.assignment_epoch >= group.group_epoch:
        return
    last_ms = group.assignment_timestamp_ms
    if last_ms and now_ms < last_ms + options.consumer_assignment_interval_ms:
        return
    counts: dict[bytes, int] = {}
    specs = {}
    for member_id, member in group.members.items():
        ids = set()
        for name in group.topics_of(member):
            topic_id = topics.topic_id(name)
            if topic_id is not None:
                ids.add(topic_id)
                counts[topic_id] = topics.partition_count(name)
        specs[member_id] = MemberSpec(
            member.instance_id, frozenset(ids), group.targets.get(member_id, NO_TARGET)
        )
    assign = ASSIGNORS[group.preferred_assignor(offered_assignors(options.consumer_assignors))]
    targets = assign(specs, counts)
    for member_id in specs:
        if group.targets.get(member_id) != targets[member_id]:
            draft.set_target(member_id, targets[member_id])
    draft.set_target_epoch(group.group_epoch, now_ms)
