"""How far a group is: committed offsets beside the ends of the logs, and who reads each partition."""

from __future__ import annotations

from typing import NamedTuple

from penstock.cli.groups.model import LATEST, Committed, Description, Groups, Member
from penstock.model.ids import TopicPartition


class Progress(NamedTuple):
    partition: TopicPartition
    committed: Committed | None
    end_offset: int | None
    member: Member | None

    @property
    def lag(self) -> int | None:
        if self.committed is None or self.end_offset is None:
            return None
        return self.end_offset - self.committed.offset


def progress(groups: Groups, description: Description) -> list[Progress]:
    """Members with the most partitions first, each one's in order; then what was committed and nobody reads now."""
    committed = groups.committed(description.group_id)
    owners: list[tuple[Member | None, list[TopicPartition]]] = [
        (member, sorted(member.assignment))
        for member in sorted(description.members, key=lambda member: -len(member.assignment))
        if member.assignment
    ]
    owned = {partition for _, partitions in owners for partition in partitions}
    owners.append((None, sorted(committed.keys() - owned)))
    ends = groups.log_offsets(owned | committed.keys(), LATEST)
    return [
        Progress(partition, committed.get(partition), ends.get(partition), member)
        for member, partitions in owners
        for partition in partitions
    ]
