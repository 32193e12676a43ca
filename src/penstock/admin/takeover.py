"""A broker's partitions taken over by another, and compared before the first one is released.

Three steps, each of which can be interrupted, run again, or undone as long as the old broker runs:

    [1, 2]  →  beside  →  [1, 2, 4]  →  compared  →  instead  →  [4, 2]

*Beside*: the new broker gets a copy of all that the old one keeps. *Compared*: the committed records of both, batch by batch
(last offset and CRC), from the partition's start to where it ended when the step began. Compacted topics are left out of that:
each broker compacts for itself. There a copy counts as whole when it is in the in-sync set, as in every other move. *Instead*:
the new one takes the old one's place in the order of replicas, so it leads what that one led. The way back is the same with both
exchanged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from penstock.admin.configs import topics_configs
from penstock.admin.health import PartitionState, partition_states
from penstock.admin.moves.following import PARTITIONS_AT_ONCE, Show, carry_out
from penstock.admin.moves.model import Assignment
from penstock.admin.moves.plans import Racks, UnknownBroker
from penstock.admin.offsets import spans
from penstock.admin.replica_verification import Difference, ReplicaVerification
from penstock.client.clients import Connection
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import UserError
from penstock.model.ids import TopicPartition

COMPARED_AT_ONCE = 50
"""Partitions whose records are fetched and compared together."""
STALL_TIMEOUT_S = 120.0
PAUSE_S = 0.2
"""After a round that brought nothing: a broker that refuses at once is not asked as fast as it can refuse."""
NAMED_AT_MOST = 5
Tell = Callable[[str], None]


class Pair(NamedTuple):
    old: int
    new: int


class Compared(NamedTuple):
    partitions: int
    records: int
    """That both have, with the same content."""
    not_compared: list[str]
    """Compacted topics."""


def parse_pair(text: str) -> Pair:
    """1:4 is "what broker 1 keeps, to broker 4"."""
    old, colon, new = text.partition(":")
    if not colon or not old.isdigit() or not new.isdigit() or int(old) == int(new):
        raise UserError(f"'{text}' is no pair of brokers: 1:4 gives to broker 4 what broker 1 keeps")
    return Pair(int(old), int(new))


def check_pairs(pairs: Iterable[Pair], live: Iterable[int]) -> None:
    """UserError where one broker has two parts, or a new one does not run."""
    known = set(live)
    seen: set[int] = set()
    for pair in pairs:
        for broker in pair:
            if broker in seen:
                raise UserError(f"broker {broker} is named twice: each broker has one part in a takeover")
            seen.add(broker)
        if pair.new not in known:
            raise UserError(f"broker {pair.new} is not in the cluster: start it first (penstock join)")


def beside(states: list[PartitionState], racks: Racks, pair: Pair) -> Assignment:
    """A copy on the new broker of each partition that the old one has."""
    _check_known(states, racks, pair.old)
    return {
        state.partition: [*state.replicas, pair.new]
        for state in states
        if pair.old in state.replicas and pair.new not in state.replicas
    }


def instead(states: list[PartitionState], pair: Pair) -> Assignment:
    """The new broker in the old one's place. What the new one has no copy of stays as it is."""
    plan: Assignment = {}
    for state in states:
        if pair.old in state.replicas and pair.new in state.replicas:
            others = [one for one in state.replicas if one != pair.new]
            plan[state.partition] = [pair.new if one == pair.old else one for one in others]
    return plan


def copy(
    connection: Connection,
    pair: Pair,
    *,
    throttle: int | None = None,
    at_once: int = PARTITIONS_AT_ONCE,
    show: Show | None = None,
) -> int:
    """The first step; how many partitions were copied."""
    return carry_out(
        connection,
        lambda states, racks: beside(states, racks, pair),
        throttle=throttle,
        at_once=at_once,
        show=show,
    )


def hand_over(
    connection: Connection, pair: Pair, *, at_once: int = PARTITIONS_AT_ONCE, show: Show | None = None
) -> int:
    """The third step; how many partitions the old broker keeps no more."""
    return carry_out(connection, lambda states, racks: instead(states, pair), at_once=at_once, show=show)


def compare(connection: Connection, pair: Pair, *, tell: Tell = lambda sentence: None) -> Compared:
    """The second step. UserError where the two do not hold the same, or the new one is not in sync: then nothing is released."""
    with ClusterClient(connection) as client:
        states = [
            state
            for state in partition_states(client.metadata())
            if pair.old in state.replicas and pair.new in state.replicas
        ]
        behind = [state.partition for state in states if pair.new not in state.isr]
        if behind:
            raise UserError(
                f"broker {pair.new} is not in sync in {_named(behind)}: look at that broker, then run this again"
            )
        compacted = _compacted(client, sorted({state.partition.topic for state in states}))
        partitions = [state.partition for state in states if state.partition.topic not in compacted]
        records = 0
        for first in range(0, len(partitions), COMPARED_AT_ONCE):
            part = partitions[first : first + COMPARED_AT_ONCE]
            records += _compare(client, pair, part)
            tell(f"{first + len(part)} of {len(partitions)} partitions compared")
        return Compared(len(partitions), records, sorted(compacted))


def _compare(client: ClusterClient, pair: Pair, partitions: list[TopicPartition]) -> int:
    known = spans(client, partitions)
    known = {one: span for one, span in known.items() if span.end_offset > span.start_offset}
    if not known:
        return 0
    starts = {one: span.start_offset for one, span in known.items()}
    verification = ReplicaVerification(client, dict.fromkeys(known, pair), starts)
    seen, changed_s = starts, time.monotonic()
    while True:
        differences = verification.round().differences
        if differences:
            raise UserError(_difference(differences[0]))
        reached = verification.compared
        left = [one for one, span in known.items() if reached[one] < span.end_offset]
        if not left:
            return sum(span.end_offset - span.start_offset for span in known.values())
        if reached != seen:
            seen, changed_s = reached, time.monotonic()
        elif time.monotonic() - changed_s > STALL_TIMEOUT_S:
            raise UserError(
                f"brokers {pair.old} and {pair.new} could not be compared in {_named(left)} for {STALL_TIMEOUT_S:g} s: "
                "one of them does not answer, or cannot read its log (penstock log verify)"
            )
        else:
            time.sleep(PAUSE_S)


def kept(connection: Connection, broker: int) -> int:
    """How many partitions have a replica there."""
    with ClusterClient(connection) as client:
        return sum(broker in state.replicas for state in partition_states(client.metadata()))


def live_brokers(connection: Connection) -> list[int]:
    with ClusterClient(connection) as client:
        return [node.node_id for node in client.nodes()]


def _compacted(client: ClusterClient, topics: list[str]) -> set[str]:
    found = topics_configs(client, topics, ["cleanup.policy"]) if topics else ()
    return {
        one.resource_name
        for one in found
        for config in one.configs
        if "compact" in (config.value or "").split(",")
    }


def _check_known(states: list[PartitionState], racks: Racks, broker: int) -> None:
    if broker not in racks and not any(broker in state.replicas for state in states):
        raise UnknownBroker(broker)


def _named(partitions: list[TopicPartition]) -> str:
    more = f" and {len(partitions) - NAMED_AT_MOST} more" if len(partitions) > NAMED_AT_MOST else ""
    return ", ".join(map(str, partitions[:NAMED_AT_MOST])) + more


def _difference(one: Difference) -> str:
    what = "end a batch at other offsets" if one.is_of_offsets else "have other records"
    return (
        f"{one.partition}: brokers {one.first_replica} and {one.other_replica} {what} "
        f"({one.first_offset} and {one.other_offset}); nothing is released. Compare them with penstock log verify, and take "
        f"the copy away with kafka-reassign-partitions"
    )
