"""Whether what is acknowledged survives the loss of a broker."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.advice.doctor.facts import Facts, PartitionFacts, TopicFacts
from penstock.advice.doctor.finding import Finding, Severity, listed
from penstock.advice.doctor.limits import USUAL_REPLICATION
from penstock.advice.doctor.words import commands, count, ids, word

MIN_ISR = "min.insync.replicas"


def _factor(parts: list[PartitionFacts]) -> int:
    """Of the partition that has fewest."""
    return min((len(one.replicas) for one in parts), default=0)


def _wanted_factor(facts: Facts) -> int:
    return min(USUAL_REPLICATION, len(facts.brokers))


def replication_factor(facts: Facts) -> Iterator[Finding]:
    """Topics with one copy of each record."""
    single = [topic.name for topic, parts in facts.of_users() if _factor(parts) == 1]
    if not single:
        return
    wanted = _wanted_factor(facts)
    evidence = listed([f"{name}: replication factor 1" for name in single])
    if wanted < 2:
        yield Finding(
            Severity.NOTE,
            f"{count(len(single), 'topic')} with one replica, on a cluster of one broker",
            evidence,
            "What its disk loses is lost. That suits a laptop; a service wants three brokers.",
            "penstock up --brokers 3 --data ./penstock-data",
        )
        return
    yield Finding(
        Severity.WARNING,
        f"{count(len(single), 'topic')} with one replica",
        evidence,
        f"When its broker is away nobody can write or read them, and what its disk loses is lost. Give them {wanted} replicas.",
        commands(f"penstock topics alter {word(name)} --replication-factor {wanted}" for name in single),
    )


def internal_topics(facts: Facts) -> Iterator[Finding]:
    """Groups' offsets and transactions' states with one copy, or that one broker's absence stops."""
    wanted = _wanted_factor(facts)
    if wanted < 2:
        return
    for name, parts in sorted(facts.partitions_by_topic().items()):
        topic = facts.topic(name)
        if topic.is_internal and _factor(parts) < min(2, wanted):
            yield Finding(
                Severity.WARNING,
                f"{name} has one replica in a cluster of {len(facts.brokers)} brokers",
                (
                    f"{count(len(parts), 'partition')}, kept by brokers "
                    f"{ids(sorted({one for part in parts for one in part.replicas}))}",
                ),
                "When one of these brokers is away, its groups stop and their offsets may be lost.",
                f"penstock topics alter {name} --replication-factor {wanted}",
            )
        minimum = topic.number(MIN_ISR)
        if topic.is_internal and minimum is not None and 1 < _factor(parts) <= minimum:
            yield Finding(
                Severity.WARNING,
                f"{name} cannot be written when one of its brokers is away",
                (f"min.insync.replicas={minimum}, replication factor {_factor(parts)}",),
                "One less than the replicas is as safe and lets a broker restart.",
                f"penstock configs set --topic {name} {MIN_ISR}={_factor(parts) - 1}",
            )


def min_isr(facts: Facts) -> Iterator[Finding]:
    """min.insync.replicas beside the replication factor."""
    unsafe: list[tuple[TopicFacts, int]] = []
    stopping: list[tuple[TopicFacts, int, int]] = []
    impossible: list[tuple[TopicFacts, int, int]] = []
    for topic, parts in facts.of_users():
        minimum, factor = topic.number(MIN_ISR), _factor(parts)
        if minimum is None or factor == 0:
            continue
        if minimum > factor:
            impossible.append((topic, minimum, factor))
        elif factor > 1 and minimum == factor:
            stopping.append((topic, minimum, factor))
        elif factor > 2 and minimum == 1:
            unsafe.append((topic, factor))
    if impossible:
        yield Finding(
            Severity.ERROR,
            f"{count(len(impossible), 'topic')} with min.insync.replicas above the number of replicas: acks=all never succeeds",
            listed(
                [
                    f"{topic.name}: {MIN_ISR}={minimum}, {count(factor, 'replica')}"
                    for topic, minimum, factor in impossible
                ]
            ),
            "Lower the one or raise the other.",
            commands(_minimum(topic, max(1, factor - 1)) for topic, _, factor in impossible),
        )
    if stopping:
        yield Finding(
            Severity.WARNING,
            f"{count(len(stopping), 'topic')} with min.insync.replicas equal to the number of replicas",
            listed(
                [
                    f"{topic.name}: {MIN_ISR}={minimum}, {count(factor, 'replica')}"
                    for topic, minimum, factor in stopping
                ]
            ),
            "As soon as one broker is away, also for a restart, writes with acks=all are refused. One less is usual.",
            commands(
                _minimum(topic, factor - 1)
                if factor > 2
                else f"penstock topics alter {word(topic.name)} --replication-factor {max(3, factor)}"
                if len(facts.brokers) > 2
                else _minimum(topic, 1)
                for topic, _, factor in stopping
            ),
        )
    if unsafe:
        yield Finding(
            Severity.WARNING,
            f"{count(len(unsafe), 'topic')} with min.insync.replicas=1: acks=all may mean one broker",
            listed([f"{topic.name}: {MIN_ISR}=1, {count(factor, 'replica')}" for topic, factor in unsafe]),
            "While the other replicas are behind, a record is acknowledged that only the leader has; if it dies "
            "then, the record is "
            "lost. With three replicas 2 is usual.",
            commands(_minimum(topic, factor - 1) for topic, factor in unsafe),
        )


def _minimum(topic: TopicFacts, minimum: int) -> str:
    return f"penstock configs set --topic {word(topic.name)} {MIN_ISR}={minimum}"


def racks(facts: Facts) -> Iterator[Finding]:
    """Partitions of which all replicas are in one rack, where there are several."""
    rack_of = {one.id: one.rack for one in facts.brokers if one.rack}
    if len(set(rack_of.values())) < 2:
        return
    together = [
        one
        for one in facts.partitions
        if len(one.replicas) > 1
        and all(broker in rack_of for broker in one.replicas)
        and len({rack_of[broker] for broker in one.replicas}) == 1
    ]
    if together:
        yield Finding(
            Severity.WARNING,
            f"{count(len(together), 'partition')} with all replicas in one rack",
            listed(
                [
                    f"{one.partition}: brokers {ids(one.replicas)}, rack {rack_of[one.replicas[0]]}"
                    for one in together
                ]
            ),
            "The loss of that rack takes all copies. Move a replica to another rack.",
            "kafka-reassign-partitions --generate --topics-to-move-json-file topics.json --broker-list "
            + ids(sorted(rack_of)),
        )


def settings(facts: Facts) -> Iterator[Finding]:
    """Defaults of brokers, and configs of topics, that trade records for availability or surprise later."""
    unclean = [
        topic.name for topic in facts.topics if topic.setting("unclean.leader.election.enable") == "true"
    ]
    if unclean:
        yield Finding(
            Severity.WARNING,
            f"{count(len(unclean), 'topic')} where a replica that is behind may lead",
            listed([f"{name}: unclean.leader.election.enable=true" for name in unclean]),
            "When no replica in sync is left, records that were acknowledged are dropped without a word.",
            commands(
                f"penstock configs set --topic {word(name)} unclean.leader.election.enable=false"
                for name in unclean
            ),
        )
    if len(facts.brokers) >= USUAL_REPLICATION:
        single = [one.id for one in facts.brokers if one.setting("default.replication.factor") == "1"]
        if single:
            yield Finding(
                Severity.NOTE,
                "new topics get one replica unless somebody says otherwise",
                (f"default.replication.factor=1 on brokers {ids(single)}",),
                f"Set default.replication.factor={USUAL_REPLICATION} in the brokers' files, or with penstock up "
                "--set, and restart them.",
                f"penstock configs describe --broker {single[0]} --all",
            )
