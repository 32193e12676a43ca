"""A plan carried out: some partitions at a time, each batch until its new replicas are in sync.

The plan is made anew from the cluster's state before each batch, and whatever is being reassigned already is waited
for first. So a run that was interrupted is taken up by the next one, and nothing is remembered outside the cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from penstock.cli.clients import Connection
from penstock.cli.cluster_client import ClusterClient
from penstock.cli.cluster_health import PartitionState, partition_states
from penstock.cli.failures import Refused, Unreachable, UserError
from penstock.cli.moves import cluster
from penstock.cli.moves.model import Assignment, Reassignment
from penstock.cli.moves.plans import Racks
from penstock.cli.moves.throttles import (
    BROKER_THROTTLES,
    FOLLOWER_RATE,
    LEADER_RATE,
    TOPIC_THROTTLES,
    brokers_of,
    proposed_moves,
    topic_throttles,
)
from penstock.cli.settings import Change
from penstock.model.ids import TopicPartition

POLL_PAUSE_S = 0.5
STALL_TIMEOUT_S = 600.0
UNREACHABLE_TIMEOUT_S = 60.0
PARTITIONS_AT_ONCE = 50
METADATA_TIMEOUT_S = 30.0
METADATA_PAUSE_S = 0.05

Plan = Callable[[list[PartitionState], Racks], Assignment]


class Progress(NamedTuple):
    done: int
    total: int
    moving: int
    moved_bytes: int


Show = Callable[[Progress], None]


def carry_out(
    connection: Connection,
    plan: Plan,
    *,
    throttle: int | None = None,
    at_once: int = PARTITIONS_AT_ONCE,
    show: Show,
) -> int:
    """How many partitions were moved. Refused or UserError leave what is under way as it is."""
    done = 0
    found = _finish(connection, done, show)
    settled = {partition: one.target for partition, one in found.items()}
    touched = {partition.topic for partition in found}
    while True:
        with ClusterClient(connection) as client:
            _wait_until_known(client, settled)
            described = client.metadata()
            racks = {one.node_id: one.rack for one in described.brokers}
            wanted = plan(partition_states(described), racks)
            if not wanted:
                _clear_throttles(client, touched)
                return done
            batch = dict(islice(wanted.items(), at_once))
            current = cluster.replicas_of(client, {one.topic for one in batch})
            show(Progress(done, done + len(wanted), len(batch), 0))
            if throttle is not None:
                _set_throttle(client, batch, current, throttle)
            errors = cluster.start(client, dict(batch))
            if errors:
                partition, reason = next(iter(errors.items()))
                raise UserError(f"{partition} cannot be moved: {reason}")
        touched |= {one.topic for one in batch}
        _finish(connection, done, show, total=done + len(wanted))
        settled = batch
        done += len(batch)


def _finish(
    connection: Connection, done: int, show: Show, *, total: int | None = None
) -> dict[TopicPartition, Reassignment]:
    """Waits until nothing is being reassigned. Returns what was, in the beginning."""
    first: dict[TopicPartition, Reassignment] | None = None
    seen: tuple[int, int] | None = None
    changed_s = reached_s = time.monotonic()
    while True:
        try:
            with ClusterClient(connection) as client:
                moving = cluster.ongoing(client)
                moved_bytes = cluster.bytes_at_destination(client, moving)
            reached_s = time.monotonic()
        except (Unreachable, Refused):
            # Brokers come and go while replicas move; only a cluster that stays away is an error.
            if time.monotonic() - reached_s > UNREACHABLE_TIMEOUT_S:
                raise
            time.sleep(POLL_PAUSE_S)
            continue
        first = moving if first is None else first
        if not moving:
            return first
        finished = max(0, len(first) - len(moving))
        show(Progress(done + finished, total or done + len(first), len(moving), moved_bytes))
        if (len(moving), moved_bytes) != seen:
            seen, changed_s = (len(moving), moved_bytes), time.monotonic()
        elif time.monotonic() - changed_s > STALL_TIMEOUT_S:
            partition, one = next(iter(moving.items()))
            raise UserError(
                f"nothing has moved for {STALL_TIMEOUT_S:g} s: {partition} waits for {', '.join(map(str, one.adding))} "
                "to be in sync; look at those brokers, then run this again"
            )
        time.sleep(POLL_PAUSE_S)


def _wait_until_known(client: ClusterClient, settled: Assignment) -> None:
    """A broker hears of the end of a reassignment a little later than the controller: the next plan must know it."""
    deadline_s = time.monotonic() + METADATA_TIMEOUT_S
    while settled and time.monotonic() < deadline_s:
        known = cluster.replicas_of(client, {one.topic for one in settled})
        if all(set(known.get(one, ())) == set(replicas) for one, replicas in settled.items()):
            return
        time.sleep(METADATA_PAUSE_S)


def _set_throttle(client: ClusterClient, batch: Assignment, current: Assignment, throttle: int) -> None:
    moves = proposed_moves({}, batch, current)
    cluster.alter_topics(
        client, {topic: Change(added, []) for topic, added in topic_throttles(moves).items()}
    )
    rates = Change({LEADER_RATE: str(throttle), FOLLOWER_RATE: str(throttle)}, [])
    cluster.alter_brokers(client, dict.fromkeys(brokers_of(moves), rates))


def _clear_throttles(client: ClusterClient, topics: set[str]) -> None:
    """Of all brokers, as Kafka does it: who took part in a run before this one is not known."""
    if topics:
        cluster.alter_brokers(client, {node.node_id: Change({}, BROKER_THROTTLES) for node in client.nodes()})
        cluster.alter_topics(client, dict.fromkeys(sorted(topics), Change({}, TOPIC_THROTTLES)))
