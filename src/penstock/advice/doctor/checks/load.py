"""How the work is spread: partitions, leaders, bytes, and what is hot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from penstock.advice.doctor.facts import Facts
from penstock.advice.doctor.finding import Finding, Severity, listed
from penstock.advice.doctor.limits import (
    HOT_PARTITION,
    HOT_RECORDS_PER_S,
    NOT_PREFERRED_SHARE,
    PARTITIONS_PER_CLUSTER,
    REPLICAS_PER_BROKER,
    SKEW,
    SKEW_BYTES,
    SKEW_REPLICAS,
)
from penstock.advice.doctor.words import count, ids, size, word

ELECT = "kafka-leader-election --election-type preferred --all-topic-partitions"
GENERATE = "kafka-reassign-partitions --generate --topics-to-move-json-file topics.json --broker-list "


def partition_count(facts: Facts) -> Iterator[Finding]:
    """More partitions than brokers usually keep."""
    kept = Counter(broker for one in facts.partitions for broker in one.replicas)
    many = {broker: number for broker, number in sorted(kept.items()) if number > REPLICAS_PER_BROKER}
    if many:
        yield Finding(
            Severity.WARNING,
            f"{count(len(many), 'broker')} with more than {REPLICAS_PER_BROKER:,} replicas",
            listed([f"broker {broker}: {count(number, 'replica')}" for broker, number in many.items()]),
            "Starts, changes of leaders and clients' metadata take long. Add brokers, or use fewer partitions for new topics.",
            f"penstock plan --from-cluster --consumers 1 --replication {_usual_factor(facts)}",
        )
    total = len(facts.partitions)
    if total > PARTITIONS_PER_CLUSTER:
        yield Finding(
            Severity.WARNING,
            f"{total:,} partitions in the cluster",
            (f"more than {PARTITIONS_PER_CLUSTER:,} are unusual",),
            "The controller and every client's metadata grow with them. Join topics, or make a second cluster.",
            "penstock topics list",
        )


def _usual_factor(facts: Facts) -> int:
    factors = Counter(len(one.replicas) for one in facts.partitions)
    return factors.most_common(1)[0][0] if factors else 3


def skew(facts: Facts) -> Iterator[Finding]:
    """A broker that leads, keeps or stores much more than its share."""
    there = [one.id for one in facts.brokers]
    if len(there) < 2:
        return
    replicas = Counter(dict.fromkeys(there, 0))
    preferred = Counter(dict.fromkeys(there, 0))
    stored = Counter(dict.fromkeys(there, 0))
    for part in facts.partitions:
        replicas.update(broker for broker in part.replicas if broker in replicas)
        preferred.update(part.replicas[:1])
    for copy in facts.replicas:
        if copy.broker in stored:
            stored[copy.broker] += copy.size_bytes
    everyone = ids(sorted(there))
    for what, held in (("replicas", replicas), ("preferred leaders", preferred)):
        if (worst := _worst(held, SKEW, SKEW_REPLICAS)) is not None:
            yield Finding(
                Severity.WARNING,
                f"broker {worst} has more than its share of {what}",
                tuple(f"broker {broker}: {held[broker]:,} {what}" for broker in sorted(there))[:10],
                "It works more than the others. Move partitions: name the topics in topics.json, and carry out what is proposed.",
                GENERATE + everyone,
            )
            return
    if (worst := _worst(stored, SKEW, SKEW_BYTES)) is not None:
        yield Finding(
            Severity.WARNING,
            f"broker {worst} stores more than its share",
            tuple(f"broker {broker}: {size(stored[broker])}" for broker in sorted(there))[:10],
            "Its disk fills first. Partitions differ in size: move large ones to brokers that store less.",
            GENERATE + everyone,
        )


def _worst(held: Mapping[int, int], times: float, by: int) -> int | None:
    """Who has so many times the mean, and is above it by so much."""
    mean = sum(held.values()) / len(held)
    worst = max(sorted(held), key=lambda broker: held[broker])
    return worst if held[worst] > times * mean and held[worst] - mean >= by else None


def preferred_leaders(facts: Facts) -> Iterator[Finding]:
    """Partitions that another than the first replica leads, though that one is in sync."""
    if facts.health is None or not facts.health.not_preferred:
        return
    moved = facts.health.not_preferred
    share = len(moved) / max(1, facts.health.num_partitions)
    leads = ", ".join(f"broker {one.id} leads {one.leaders}" for one in facts.health.brokers[:10])
    yield Finding(
        Severity.WARNING if share > NOT_PREFERRED_SHARE else Severity.NOTE,
        f"{count(len(moved), 'partition')} not led by the preferred replica",
        (
            f"{share:.0%} of {facts.health.num_partitions:,} partitions",
            leads,
            *listed(
                [f"{one.partition}: led by {one.leader}, preferred {one.replicas[0]}" for one in moved], 6
            ),
        ),
        "After restarts leaders stay where they went. An election gives them back; it takes a moment and loses nothing.",
        ELECT,
    )


def hot_partitions(facts: Facts) -> Iterator[Finding]:
    """One partition that gets much more than the others of its topic: keys are not spread, or one key is everywhere."""
    if facts.between_s <= 0:
        return
    hot = []
    for topic, parts in facts.of_users():
        written = sum(one.written for one in parts)
        if len(parts) < 2 or written / facts.between_s < HOT_RECORDS_PER_S:
            continue
        worst = max(parts, key=lambda one: one.written)
        if worst.written > HOT_PARTITION * written / len(parts) or (
            worst.written == written and len(parts) > 1
        ):
            hot.append((topic.name, worst, written, len(parts)))
    if hot:
        yield Finding(
            Severity.WARNING,
            f"{count(len(hot), 'topic')} with a hot partition",
            listed(
                [
                    f"{worst.partition} gets {worst.written / written:.0%} of the topic's "
                    f"{written / facts.between_s:,.0f} records/s; "
                    f"its share of {parts} partitions is {1 / parts:.0%}"
                    for _, worst, written, parts in hot
                ]
            ),
            "One broker and one consumer do the work of all. Choose a key with more values, or add something to the key that is "
            "everywhere. More partitions do not help.",
            f"penstock consume {word(hot[0][0])} -p {hot[0][1].partition.partition} -n 20",
        )


def stored_hot_partitions(facts: Facts) -> Iterator[Finding]:
    """The same from what is stored: a partition that is much larger than the others of its topic."""
    sizes: dict[str, dict[int, int]] = {}
    for copy in facts.replicas:
        held = sizes.setdefault(copy.partition.topic, {})
        held[copy.partition.partition] = max(held.get(copy.partition.partition, 0), copy.size_bytes)
    large = []
    for topic, parts in facts.of_users():
        held = sizes.get(topic.name, {})
        if len(parts) < 2 or not held:
            continue
        worst = max(held, key=lambda number: held[number])
        total = sum(held.values())
        if held[worst] > SKEW_BYTES and held[worst] > HOT_PARTITION * total / len(parts):
            large.append(
                f"{topic.name}-{worst}: {size(held[worst])} of the topic's {size(total)} in {len(parts)} partitions"
            )
    if large:
        yield Finding(
            Severity.WARNING,
            f"{count(len(large), 'topic')} with one partition much larger than the others",
            listed(large),
            "Records with few keys go to it. Its disk fills first, and its consumer is the last to finish.",
            f"penstock topics describe {word(large[0].rpartition('-')[0])}",
        )
