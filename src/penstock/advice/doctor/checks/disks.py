"""Disks that fill, and topics that are set to fill them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from penstock.advice.doctor.facts import Facts, PartitionFacts, ReplicaFacts, TopicFacts
from penstock.advice.doctor.finding import Finding, Severity, listed
from penstock.advice.doctor.limits import (
    DISK_FULL_LATER_S,
    DISK_FULL_SOON_S,
    DISK_USED_ERROR,
    DISK_USED_WARNING,
)
from penstock.advice.doctor.words import count, duration, size, word


def disk(facts: Facts) -> Iterator[Finding]:
    """Directories that are nearly full now."""
    full = [
        (1 - one.usable_bytes / one.total_bytes, one)
        for one in facts.directories
        if one.total_bytes and one.usable_bytes is not None
    ]
    full = sorted(((used, one) for used, one in full if used > DISK_USED_WARNING), reverse=True)
    if full:
        yield Finding(
            Severity.ERROR if full[0][0] > DISK_USED_ERROR else Severity.WARNING,
            f"{count(len(full), 'disk')} nearly full",
            listed(
                [
                    f"broker {one.broker}, {one.path}: {used:.0%} of {size(one.total_bytes or 0)} used, "
                    f"{size(one.usable_bytes or 0)} free"
                    for used, one in full
                ]
            ),
            "A broker whose disk is full stops. Shorten the retention of large topics, move partitions away, or add space.",
            "penstock topics list",
        )


class Growth(NamedTuple):
    """What one copy of a partition takes, by its rate now."""

    topic: str
    bytes_per_s: float
    left_bytes: float
    """Until retention deletes as much as is written; infinite where nothing bounds it."""


def growth(topic: TopicFacts, part: PartitionFacts, copy: ReplicaFacts, between_s: float) -> Growth:
    """The rate by records that were written, and their mean size, where the file shrank or did not tell."""
    grown = copy.size_bytes - (copy.size_before if copy.size_before is not None else copy.size_bytes)
    records = (part.end_offset or 0) - (part.start_offset or 0)
    if grown <= 0 and part.written and records > 0:
        grown = round(part.written * copy.size_bytes / records)
    rate = max(0, grown) / between_s
    return Growth(topic.name, rate, max(0.0, final_bytes(topic, rate) - copy.size_bytes))


def final_bytes(topic: TopicFacts, bytes_per_s: float) -> float:
    """What a partition has when it deletes as much as it gets. A compacted topic is taken as it is: keys are not counted here."""
    policy = topic.setting("cleanup.policy") or "delete"
    if "delete" not in policy:
        return 0.0
    retention_ms, retention_bytes = topic.number("retention.ms"), topic.number("retention.bytes")
    bounds = [math.inf]
    if retention_ms is not None and retention_ms >= 0:
        bounds.append(bytes_per_s * retention_ms / 1000)
    if retention_bytes is not None and retention_bytes >= 0:
        bounds.append(float(retention_bytes))
    return min(bounds)


def filling(facts: Facts) -> Iterator[Finding]:
    """Disks that fill before retention deletes as much as is written, at the rate between the looks."""
    if facts.between_s <= 0:
        return
    parts = {one.partition: one for one in facts.partitions}
    for place in facts.directories:
        if place.usable_bytes is None or not place.total_bytes:
            continue
        grown = [
            growth(facts.topic(copy.partition.topic), parts[copy.partition], copy, facts.between_s)
            for copy in facts.replicas
            if (copy.broker, copy.directory) == (place.broker, place.path) and copy.partition in parts
        ]
        until_s = full_after_s(grown, place.usable_bytes)
        if until_s is None or until_s > DISK_FULL_LATER_S:
            continue
        by_topic: dict[str, float] = {}
        for one in grown:
            by_topic[one.topic] = by_topic.get(one.topic, 0.0) + one.bytes_per_s
        largest = sorted(by_topic, key=lambda name: -by_topic[name])
        needed = sum(one.left_bytes for one in grown if one.bytes_per_s > 0)
        first = facts.topic(largest[0])
        yield Finding(
            Severity.ERROR if until_s < DISK_FULL_SOON_S else Severity.WARNING,
            f"the disk of broker {place.broker} is full in {duration(until_s)}, before retention deletes anything",
            (
                f"{place.path}: {size(place.usable_bytes)} free, {size(sum(by_topic.values()))}/s written",
                f"retention lets it grow by {size(needed) if math.isfinite(needed) else 'any amount'} more",
                *(f"{name}: {size(by_topic[name])}/s on this disk" for name in largest[:3] if by_topic[name]),
            ),
            "The retention is longer than the disk is large. Shorten it, bound it by retention.bytes, or add disks or brokers.",
            f"penstock configs set --topic {word(first.name)} retention.ms={_fitting_ms(first, until_s)}",
        )


def full_after_s(grown: list[Growth], usable_bytes: float) -> float | None:
    """Seconds until a disk is full; None when retention ends the growth before. Partitions stop to grow one after the other."""
    left = sorted(
        (one.left_bytes / one.bytes_per_s, one.bytes_per_s)
        for one in grown
        if one.bytes_per_s > 0 and one.left_bytes > 0
    )
    rate = sum(each for _, each in left)
    now_s, free = 0.0, float(usable_bytes)
    for until_s, own in left:
        step = (until_s - now_s) * rate
        if step >= free:
            return now_s + free / rate
        free -= step
        now_s = until_s
        rate -= own
    return None


def _fitting_ms(topic: TopicFacts, until_s: float) -> int:
    """Half of the time until the disk is full, in whole hours; never more than it is now."""
    hours = max(1, int(until_s / 2 // 3600))
    now = topic.number("retention.ms")
    fitting = hours * 3_600_000
    return min(fitting, now) if now is not None and now > 0 else fitting


def endless(facts: Facts) -> Iterator[Finding]:
    """Topics that keep everything for ever."""
    forever = [
        topic.name
        for topic, _ in facts.of_users()
        if topic.number("retention.ms") == -1
        and topic.number("retention.bytes") in (-1, None)
        and "compact" not in (topic.setting("cleanup.policy") or "")
    ]
    if forever:
        yield Finding(
            Severity.NOTE,
            f"{count(len(forever), 'topic')} kept for ever",
            listed([f"{name}: retention.ms=-1, retention.bytes=-1" for name in forever]),
            "That may be meant. If it is not, give them a retention.",
            f"penstock configs set --topic {word(forever[0])} retention.ms=604800000",
        )
