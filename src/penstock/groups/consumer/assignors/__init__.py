"""Server-side assignors: who gets which partitions. Pure functions of the subscriptions and the targets so far.

Every partition of every topic that somebody subscribes to goes to exactly one of its subscribers; the same input gives the
same output, whatever the order of its tables.

    uniform   as even as can be over all topics, moving as few partitions as that allows
    range     topic by topic, neighbouring partitions to neighbouring members, so that topics with as many partitions line up
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from penstock.groups.consumer.assignors.range import assign_range
from penstock.groups.consumer.assignors.spec import MemberSpec
from penstock.groups.consumer.assignors.uniform import assign_uniform

Assignor = Callable[[Mapping[str, MemberSpec], Mapping[bytes, int]], dict[str, dict[bytes, frozenset[int]]]]
"""(members by id, partition counts by topic id) → targets by member id."""

ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniform, "range": assign_range}

_CLASSES: Final = {
    f"org.apache.kafka.coordinator.group.assignor.{name.title()}Assignor": name for name in ASSIGNORS
}


def offered_assignors(configured: Iterable[str]) -> list[str]:
    """Of what `group.consumer.assignors` names, what there is; Kafka's class names are understood. Never nothing."""
    names = [_CLASSES.get(name, name) for name in configured]
    return [name for name in dict.fromkeys(names) if name in ASSIGNORS] or list(ASSIGNORS)


__all__ = ["ASSIGNORS", "Assignor", "MemberSpec", "offered_assignors"]
