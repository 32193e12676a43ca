"""Which topics and partitions a running plan has. Pure.

A subtopology has as many partitions as the largest of the topics that it reads. Task `i` of `n` has the partitions `p` of every
subtopology with `p % n == i`, always: who writes to which changelog does not depend on who is alive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.streams.kernel.topology import Subtopology, partition_counts
from penstock.streams.plan import nodes

CHANGELOG: Final = "changelog"
SEGMENT_BYTES: Final = 50 * 1024 * 1024
JOINS: Final = (nodes.StreamStreamJoin, nodes.StreamTableJoin, nodes.TableTableJoin)

Cut = Callable[[], Sequence[Subtopology]]


class CannotRun(ValueError):
    """The topics do not fit the plan."""


@dataclass(frozen=True, slots=True)
class InternalTopic:
    name: str
    partitions: int
    configs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A subtopology with the names that its topics have in the cluster."""

    number: int
    partitions: int
    topics: tuple[str, ...]  # it reads these
    internal: tuple[str, ...]  # those of them that the plan has made
    globals: tuple[str, ...]  # it reads all partitions of these
    changelogs: tuple[tuple[str, str], ...]  # store → topic
    replayed: tuple[tuple[str, str], ...]  # store → topic that is read, for one without a changelog


@dataclass(frozen=True, slots=True)
class Layout:
    application_id: str
    parts: tuple[Part, ...]
    internal: tuple[InternalTopic, ...]
    partitions: tuple[tuple[str, int], ...]  # of the topics that are read and are not internal

    def topic_name(self, name: str) -> str:
        """In the cluster: internal topics have the application's name in front."""
        internal = f"{self.application_id}-{name}"
        return internal if any(each.name == internal for each in self.internal) else name

    @property
    def largest(self) -> int:
        return max(part.partitions for part in self.parts)

    def inputs(self) -> list[tuple[str, int]]:
        """Every partition that is read and whose offset is committed."""
        counts = {**dict(self.partitions), **{each.name: each.partitions for each in self.internal}}
        topics = dict.fromkeys(topic for part in self.parts for topic in part.topics)
        return [(topic, number) for topic in topics for number in range(counts[topic])]


def read_topics(subtopologies: Sequence[Subtopology]) -> tuple[str, ...]:
    """Topics of the cluster that the plan reads and did not make."""
    return tuple(
        dict.fromkeys(topic for each in subtopologies for topic in (*each.topics, *each.global_topics))
    )


def arrange(
    application_id: str, subtopologies: Sequence[Subtopology], partitions: Mapping[str, int | None]
) -> Layout:
    """`partitions`: of the topics that are read; None for one that is not there. CannotRun says what does not fit."""
    for topic, count in partitions.items():
        if count is None:
            raise CannotRun(f"the topic {topic} does not exist")
    outside = {topic: count for topic, count in partitions.items() if count is not None}
    counts = {**outside, **partition_counts(subtopologies, outside)}
    for each in subtopologies:
        _check_copartitioned(each, counts)
    parts = tuple(_part(application_id, each, counts) for each in subtopologies)
    internal = [
        InternalTopic(f"{application_id}-{name}", counts[name], _REPARTITION_CONFIGS)
        for each in subtopologies
        for name in each.internal
    ]
    for part, each in zip(parts, subtopologies, strict=True):
        named = dict(part.changelogs)
        internal += [
            InternalTopic(named[spec.name], part.partitions, _CHANGELOG_CONFIGS)
            for spec in each.stores
            if spec.name in named
        ]
    return Layout(application_id, parts, tuple(dict.fromkeys(internal)), tuple(outside.items()))


def owned(partitions: int, task: int, tasks: int) -> range:
    return range(task, partitions, tasks)


def _check_copartitioned(subtopology: Subtopology, counts: Mapping[str, int]) -> None:
    """A join finds its other side in the partition of the same number."""
    is_joined = any(
        isinstance(node, JOINS) and not getattr(node, "is_global", False) for node in subtopology.nodes
    )
    if not is_joined:
        return
    first, *others = (*subtopology.topics, *subtopology.internal)
    for other in others:
        if counts[other] != counts[first]:
            raise CannotRun(
                f"the topics {first} and {other} are joined, so they must have equally many partitions: they have "
                f"{counts[first]} and {counts[other]}"
            )


def _part(application_id: str, each: Subtopology, counts: Mapping[str, int]) -> Part:
    internal = tuple(f"{application_id}-{name}" for name in each.internal)
    replayed = {
        spec.name: spec.source_topic
        for spec in each.stores
        if not spec.is_logged and spec.source_topic is not None
    }
    return Part(
        each.number,
        max(counts[topic] for topic in (*each.topics, *each.internal)),
        (*each.topics, *internal),
        internal,
        each.global_topics,
        tuple(
            (spec.name, f"{application_id}-{spec.name}-{CHANGELOG}")
            for spec in each.stores
            if spec.name not in replayed
        ),
        tuple(replayed.items()),
    )


# Records go when they are processed, and not because they are old: their times are those of the input.
_REPARTITION_CONFIGS: Final = (
    ("cleanup.policy", "delete"),
    ("retention.ms", "-1"),
    ("retention.bytes", "-1"),
    ("segment.bytes", str(SEGMENT_BYTES)),
    ("message.timestamp.type", "CreateTime"),
)


# Also those of windows: the kernel deletes what is over, by stream time. The broker would go by its own clock, and records that
# are read again years later would lose their state at once.
_CHANGELOG_CONFIGS: Final = (("cleanup.policy", "compact"), ("message.timestamp.type", "CreateTime"))
