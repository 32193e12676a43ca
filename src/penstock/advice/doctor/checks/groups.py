"""Groups that fall behind, and groups that nobody reads for any more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.advice.doctor.facts import Facts, GroupFacts, PartitionFacts
from penstock.advice.doctor.finding import Finding, Severity, listed
from penstock.advice.doctor.limits import LATE_RECORDS, LATE_S
from penstock.advice.doctor.words import commands, count, duration, word
from penstock.model.ids import TopicPartition

CONSOLE_PREFIX = "console-consumer-"


class _Course(NamedTuple):
    """A group's lag at both looks, over the partitions of which everything is known."""

    lag_before: int
    lag: int
    written: int
    read: int


def _read(group: GroupFacts) -> dict[TopicPartition, int]:
    """What it has committed, but for marks that programs keep as offsets in topics of their own."""
    return {
        partition: offset
        for partition, offset in sorted(group.committed.items())
        if not partition.topic.startswith("__")
    }


def _lag(group: GroupFacts, parts: dict[TopicPartition, PartitionFacts]) -> int:
    total = 0
    for partition, offset in _read(group).items():
        end = parts[partition].end_offset if partition in parts else None
        total += max(0, end - offset) if end is not None else 0
    return total


def _course(group: GroupFacts, parts: dict[TopicPartition, PartitionFacts]) -> _Course | None:
    before = group.committed_before
    if before is None:
        return None
    lags, starts, written, read = 0, 0, 0, 0
    for partition, offset in _read(group).items():
        part = parts.get(partition)
        if part is None or part.end_offset is None or part.end_before is None or partition not in before:
            continue
        lags += max(0, part.end_offset - offset)
        starts += max(0, part.end_before - before[partition])
        written += part.written
        read += max(0, offset - before[partition])
    return _Course(starts, lags, written, read)


def lag(facts: Facts) -> Iterator[Finding]:
    """Groups with members whose lag was more than a commit's worth at the first look, and more at the second."""
    if facts.between_s <= 0:
        return
    parts = {one.partition: one for one in facts.partitions}
    for group in facts.groups:
        course = None if group.is_empty else _course(group, parts)
        if course is None or course.lag <= course.lag_before:
            continue
        rate = course.written / facts.between_s
        if course.lag_before < max(LATE_RECORDS, LATE_S * rate):
            continue
        behind = f"about {duration(course.lag / rate)} of records" if rate > 0 else ""
        yield Finding(
            Severity.ERROR if course.read == 0 else Severity.WARNING,
            f"group {group.id} {'does not move' if course.read == 0 else 'falls behind'}: its lag grows",
            (
                f"lag {course.lag_before:,} → {course.lag:,} in {facts.between_s:.1f} s ({behind})",
                f"written {rate:,.0f}/s, read {course.read / facts.between_s:,.0f}/s",
                f"state {group.state}, {count(len(group.committed), 'partition')}",
            ),
            "A consumer hangs or fails again and again: look at its log, and at the record where it stands."
            if course.read == 0
            else "Start more consumers, up to one for each partition; beyond that the topic needs more partitions, or "
            "the work on each record must get quicker.",
            f"penstock groups lag {word(group.id)} --by-partition",
        )


def idle_groups(facts: Facts) -> Iterator[Finding]:
    """Groups without members that have something left to read: forgotten ones, or programs that are down."""
    parts = {one.partition: one for one in facts.partitions}
    idle = [(group, _lag(group, parts)) for group in facts.groups if group.is_empty]
    behind = sorted(((left, group.id) for group, left in idle if left > 0), reverse=True)
    forgotten = [name for _, name in behind if name.startswith(CONSOLE_PREFIX)]
    expected = [(left, name) for left, name in behind if not name.startswith(CONSOLE_PREFIX)]
    if expected:
        yield Finding(
            Severity.WARNING,
            f"{count(len(expected), 'group')} with lag and no members",
            listed([f"{name}: {count(left, 'record')} to read, nobody there" for left, name in expected]),
            "Start its program if it should run. Delete the group if nobody needs it any more: its offsets are then forgotten.",
            commands(f"penstock groups describe {word(name)}" for _, name in expected),
        )
    if forgotten:
        yield Finding(
            Severity.NOTE,
            f"{count(len(forgotten), 'group')} left behind by console consumers",
            listed(forgotten),
            "Each run of a console consumer makes one. They go by themselves after offsets.retention.minutes.",
            "penstock groups delete " + " ".join(map(word, forgotten[:10])),
        )


def deleted_under(facts: Facts) -> Iterator[Finding]:
    """Committed offsets below the log's start, or beyond its end: the group will jump by its auto.offset.reset."""
    parts = {one.partition: one for one in facts.partitions}
    lost: list[tuple[str, TopicPartition, int, PartitionFacts]] = []
    for group in facts.groups:
        for partition, offset in _read(group).items():
            part = parts.get(partition)
            if part is None or part.start_offset is None or part.end_offset is None:
                continue
            if offset < part.start_offset or offset > part.end_offset:
                lost.append((group.id, partition, offset, part))
    if lost:
        yield Finding(
            Severity.WARNING,
            f"{count(len({name for name, *_ in lost}), 'group')} whose next record is not there",
            listed(
                [
                    f"{name}: {partition} at {offset:,}, the log has {part.start_offset:,} to {part.end_offset:,}"
                    for name, partition, offset, part in lost
                ]
            ),
            "Records were deleted before they were read, or the topic was made anew. The group jumps as auto.offset.reset says; "
            "reset it where it shall go on.",
            commands(
                dict.fromkeys(
                    f"penstock groups reset {word(name)} --topic {word(partition.topic)} --to earliest --dry-run"
                    for name, partition, _, _ in lost
                )
            ),
        )
