"""Whether the cluster answers, and whether everything in it is where it should be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.admin.health import PartitionState
from penstock.advice.doctor.facts import Facts
from penstock.advice.doctor.finding import Finding, Severity, listed
from penstock.advice.doctor.words import commands, count, ids, size, word

LOOPBACK = ("localhost", "127.", "::1")


def is_loopback(host: str) -> bool:
    return host.startswith(LOOPBACK)


def reachable(facts: Facts) -> Iterator[Finding]:
    """Each broker is asked at the address that it advertises, as clients do."""
    if facts.unreachable is not None:
        yield Finding(
            Severity.ERROR,
            "no broker answers",
            (facts.unreachable,),
            "Look whether the brokers run, and whether the address, the port and the login are right.",
        )
    away = [one for one in facts.brokers if one.problem is not None]
    if away:
        yield Finding(
            Severity.ERROR,
            f"{count(len(away), 'broker')} cannot be reached at the advertised address",
            listed([f"broker {one.id} advertises {one.address}: {one.problem}" for one in away]),
            "Clients learn this address from any broker and then connect to it. Set advertised.listeners of the broker to an "
            "address that clients resolve and reach, then start it again; or start the broker if it does not run.",
            commands(f"penstock configs describe --broker {one.id} --all" for one in away),
        )
    local = [one for one in facts.brokers if one.problem is None and is_loopback(one.host)]
    if local and not all(map(is_loopback, facts.bootstrap_hosts)):
        yield Finding(
            Severity.ERROR,
            f"{count(len(local), 'broker')} {'tells' if len(local) == 1 else 'tell'} clients to connect to their own machine",
            listed([f"broker {one.id} advertises {one.address}" for one in local]),
            "A client on another machine would connect to itself. Set advertised.listeners to a name or address "
            "that clients reach.",
            commands(f"penstock configs describe --broker {one.id} --all" for one in local),
        )
    ours = facts.health.cluster_id if facts.health is not None else None
    foreign = [one for one in facts.brokers if one.cluster_id and ours and one.cluster_id != ours]
    if foreign:
        yield Finding(
            Severity.ERROR,
            "an advertised address leads to another cluster",
            listed(
                [f"broker {one.id} at {one.address}: cluster {one.cluster_id}, not {ours}" for one in foreign]
            ),
            "Two brokers have the same address, or a port is forwarded to the wrong one. Correct advertised.listeners.",
            commands(f"penstock configs describe --broker {one.id} --all" for one in foreign),
        )


def replicas(facts: Facts) -> Iterator[Finding]:
    """Controller, missing brokers, and partitions that are offline, below min ISR or under-replicated."""
    health = facts.health
    if health is None:
        return
    if health.controller is None:
        yield Finding(
            Severity.ERROR,
            "there is no controller",
            (f"brokers that are there: {ids(one.id for one in health.brokers)}",),
            "Nothing can be created, moved or elected. It comes back with ZooKeeper, or with most of the controllers of KRaft.",
            "penstock status",
        )
    if health.missing_brokers:
        kept = {
            broker: sum(broker in state.replicas for state in facts.partitions)
            for broker in health.missing_brokers
        }
        yield Finding(
            Severity.ERROR,
            f"{count(len(kept), 'broker')} that should keep partitions {'is' if len(kept) == 1 else 'are'} missing",
            listed(
                [f"broker {broker} should keep {count(number, 'replica')}" for broker, number in kept.items()]
            ),
            "Start them again. If one is gone for good, put another into its place.",
            commands(f"penstock cluster replace {broker} --with ID" for broker in health.missing_brokers),
        )
    if health.offline:
        yield Finding(
            Severity.ERROR,
            f"{count(len(health.offline), 'partition')} without a leader: nobody can write or read them",
            listed(_states(health.offline)),
            "Start a broker of their replicas, best the one that was in sync last. An unclean election takes any "
            "replica: records "
            "may be lost.",
            "penstock status",
        )
    below = [state for state in health.below_min_isr if state not in health.offline]
    if below:
        yield Finding(
            Severity.ERROR,
            f"{count(len(below), 'partition')} below min ISR: writes with acks=all are refused",
            listed(_states(below)),
            "Bring the missing replicas back. Lower min.insync.replicas only to write for a while at the risk of loss.",
            "penstock status",
        )
    known = {state.partition for state in (*health.offline, *health.below_min_isr)}
    under = [state for state in health.under_replicated if state.partition not in known]
    if under:
        yield Finding(
            Severity.WARNING,
            f"{count(len(under), 'partition')} under-replicated",
            listed(_states(under)),
            "A broker is away, or too slow to keep up. When none is missing, look at its disk and network.",
            "penstock status",
        )


def _states(states: Sequence[PartitionState]) -> list[str]:
    return [
        f"{state.partition}: leader {state.leader if state.leader >= 0 else 'none'}, replicas {ids(state.replicas)}, "
        f"in sync {ids(state.isr)}"
        for state in states
    ]


def brokers(facts: Facts) -> Iterator[Finding]:
    """What brokers tell of themselves: failed directories, damaged logs, no session, another view of the cluster."""
    if facts.health is None:
        return
    told = facts.health.told
    if told.failed_directories:
        yield Finding(
            Severity.ERROR,
            f"{count(len(told.failed_directories), 'log directory', 'log directories')} failed",
            listed([f"broker {one.broker}, {one.path}: {one.cause}" for one in told.failed_directories]),
            "What was in it has leaders elsewhere if there are replicas. Mend or replace the disk, then restart the broker.",
            "penstock status",
        )
    if told.damaged:
        yield Finding(
            Severity.ERROR,
            f"{count(len(told.damaged), 'log')} damaged",
            listed(
                [
                    f"{one.partition} on broker {one.broker} at offset {one.offset}: {one.cause}"
                    for one in told.damaged
                ]
            ),
            "Readers stop there. Stop the broker and check its files; with replicas the damaged log can be copied anew.",
            "penstock log verify --help",
        )
    if told.without_session:
        yield Finding(
            Severity.ERROR,
            f"{count(len(told.without_session), 'broker')} without a session with ZooKeeper",
            listed([f"broker {broker}: {trouble}" for broker, trouble in told.without_session]),
            "It will lose what it leads. Look at ZooKeeper and at the network between them.",
            "penstock status",
        )
    if told.disagreeing:
        yield Finding(
            Severity.ERROR,
            "brokers disagree about who is there",
            listed(
                [
                    f"broker {view.broker} knows the controller {view.controller} and the brokers {ids(view.brokers)}"
                    for view in told.disagreeing
                ]
            ),
            "A broker that is cut off goes on telling what it knew. Look at its connection with ZooKeeper and the controller.",
            "penstock status",
        )


def strays(facts: Facts) -> Iterator[Finding]:
    """Logs on disks that the cluster's metadata does not place there."""
    if facts.health is None:
        return
    if facts.health.lost:
        yield Finding(
            Severity.ERROR,
            f"{count(len(facts.health.lost), 'topic')} of which there are only strays: the metadata may be lost",
            listed(
                [
                    f"{one.name}: partitions {ids(one.lost)} on brokers {ids(one.brokers)}"
                    for one in facts.health.lost
                ]
            ),
            "Make topics of them again, or remove them if somebody deleted the topics.",
            "penstock log strays restore --all",
        )
    lost = {topic.topic_id for topic in facts.health.lost}
    unused = [stray for stray in facts.health.told.strays if stray.topic_id not in lost]
    if unused:
        yield Finding(
            Severity.NOTE,
            f"{count(len(unused), 'stray')} on disks: logs of partitions that are kept elsewhere",
            listed(
                [
                    f"broker {one.broker}: {one.topic}-{one.partition}, {size(one.size_bytes)}"
                    for one in unused
                ]
            ),
            "They only take space. Brokers of Penstock set them aside and delete nothing by themselves.",
            "penstock log strays list",
        )


def services(facts: Facts) -> Iterator[Finding]:
    """Members of a stack that died, or that do not answer as they should."""
    for one in facts.services:
        if one.problem is not None:
            yield Finding(
                Severity.ERROR,
                f"{one.name} of the stack: {one.problem}",
                (f"its log: penstock logs {one.name} --data {word(one.data)}",),
                "Start it again; its log says why it ended.",
                f"penstock up --only {word(one.name)} --data {word(one.data)}",
            )


def permissions(facts: Facts) -> Iterator[Finding]:
    """What this login may not see: checks that need it found nothing because they could not look."""
    if facts.unseen:
        yield Finding(
            Severity.WARNING,
            "not everything could be looked at",
            listed(facts.unseen),
            "Ask again with a login that may describe the cluster, its topics and groups.",
        )
