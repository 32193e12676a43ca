"""What a running cluster does now, from the doctor's facts of it, as something to plan with. Pure."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from penstock.advice.doctor.facts import Facts, PartitionFacts
from penstock.advice.plan.model import DAY_S, Wanted


class TopicLoad(NamedTuple):
    """One topic, between the looks."""

    name: str
    partitions: int
    replication: int
    bytes_per_s: float
    """From producers: of the leaders' copies."""
    records_per_s: float
    stored_bytes: int
    """Of all copies."""
    retention_s: float | None
    """None: for ever, or compacted."""
    busiest_bytes_per_s: float
    """Of its busiest partition."""


class Measured(NamedTuple):
    topics: tuple[TopicLoad, ...]
    brokers: int
    groups: int
    """That have members."""
    replicas_of: tuple[tuple[int, int], ...]
    """Broker, and how many it keeps."""
    disks_of: tuple[tuple[int, float, float], ...]
    """Broker, size of its disks, what is free; only of those who tell."""
    seconds: float

    @property
    def bytes_per_s(self) -> float:
        return sum(one.bytes_per_s for one in self.topics)

    @property
    def records_per_s(self) -> float:
        return sum(one.records_per_s for one in self.topics)

    @property
    def partitions(self) -> int:
        return sum(one.partitions for one in self.topics)


def measure(facts: Facts) -> Measured:
    """Facts of two looks; with one look the rates are 0."""
    sizes = {(one.broker, one.partition): one for one in facts.replicas}
    stored: Counter[str] = Counter()
    for copy in facts.replicas:
        stored[copy.partition.topic] += copy.size_bytes

    def bytes_of(part: PartitionFacts) -> float:
        copy = sizes.get((part.leader, part.partition))
        if copy is None or facts.between_s <= 0:
            return 0.0
        grown = copy.size_bytes - (copy.size_before if copy.size_before is not None else copy.size_bytes)
        kept = (part.end_offset or 0) - (part.start_offset or 0)
        if grown <= 0 and part.written and kept > 0:
            grown = round(part.written * copy.size_bytes / kept)
        return max(0, grown) / facts.between_s

    topics = []
    for topic, parts in facts.of_users():
        rates = [bytes_of(part) for part in parts]
        retention_ms = topic.number("retention.ms")
        keeps = (
            retention_ms is None
            or retention_ms < 0
            or "delete" not in (topic.setting("cleanup.policy") or "delete")
        )
        topics.append(
            TopicLoad(
                topic.name,
                len(parts),
                max((len(part.replicas) for part in parts), default=1),
                sum(rates),
                sum(part.written for part in parts) / facts.between_s if facts.between_s > 0 else 0.0,
                stored[topic.name],
                None if keeps or retention_ms is None else retention_ms / 1000,
                max(rates, default=0.0),
            )
        )
    kept = Counter(broker for part in facts.partitions for broker in part.replicas)
    disks: dict[int, tuple[float, float]] = {}
    for place in facts.directories:
        if place.total_bytes and place.usable_bytes is not None:
            total, free = disks.get(place.broker, (0.0, 0.0))
            disks[place.broker] = (total + place.total_bytes, free + place.usable_bytes)
    return Measured(
        tuple(topics),
        len(facts.brokers),
        sum(not group.is_empty for group in facts.groups),
        tuple(sorted(kept.items())),
        tuple((broker, *both) for broker, both in sorted(disks.items())),
        facts.between_s,
    )


def as_wanted(measured: Measured, given: Wanted) -> Wanted:
    """`given` with what was measured in place of throughput, size of records, retention, groups and what is there; no fewer
    replicas than are given, nor than most topics have."""
    busy = [one for one in measured.topics if one.bytes_per_s > 0]
    total = measured.bytes_per_s
    retained = [(one.retention_s, one.bytes_per_s) for one in busy if one.retention_s is not None]
    weight = sum(each for _, each in retained)
    factors = Counter(one.replication for one in measured.topics)
    return given._replace(
        bytes_per_s=total,
        record_bytes=max(1.0, total / measured.records_per_s)
        if measured.records_per_s and total
        else given.record_bytes,
        retention_s=sum(span * each for span, each in retained) / weight if weight else 7 * DAY_S,
        replication=max(given.replication, factors.most_common(1)[0][0] if factors else 1),
        groups=max(given.groups, measured.groups),
        partitions_now=measured.partitions,
        brokers_now=measured.brokers,
        broker_disk_bytes=given.broker_disk_bytes
        or (min(each for _, each, _ in measured.disks_of) if measured.disks_of else None),
    )
