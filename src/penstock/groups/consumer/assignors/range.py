"""The range assignor: for each topic its subscribers stand in line and get a run of partitions each.

Static members stand first, by instance id, so that a new member id does not change their place; the others by member id. Of
seven partitions and three members they get 3, 2 and 2. It is not sticky: who comes or goes shifts those behind.
"""

from collections.abc import Mapping

from penstock.groups.consumer.assignors.spec import MemberSpec


def assign_range(
    members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]
) -> dict[str, dict[bytes, frozenset[int]]]:
    line = sorted(members, key=lambda member_id: _place(member_id, members[member_id]))
    targets: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in line}
    for topic_id in sorted(partition_counts):
        subscribers = [member_id for member_id in line if topic_id in members[member_id].topic_ids]
        if not subscribers:
            continue
        share, extra = divmod(partition_counts[topic_id], len(subscribers))
        start = 0
        for place, member_id in enumerate(subscribers):
            end = start + share + (place < extra)
            if start < end:
                targets[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return targets


def _place(member_id: str, spec: MemberSpec) -> tuple[bool, str]:
    return (spec.instance_id is None, member_id if spec.instance_id is None else spec.instance_id)
