"""A plan carried out: some partitions at a time, each batch until its new replicas are in sync.

The plan is made anew from the cluster's state before each batch, and whatever is being reassigned already is waited
for first. So a run that was interrupted is taken up by the next one, and nothing is remembered outside the cluster.
What cannot get on (`watching`) is not waited for: the plan may send it elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from penstock.admin.configs import Change
from penstock.admin.health import PartitionState, partition_states
from penstock.admin.moves import cluster
from penstock.admin.moves.model import Assignment, Reassignment
from penstock.admin.moves.plans import Racks, UnknownBroker
from penstock.admin.moves.throttles import (
    FOLLOWER_RATE,
    LEADER_RATE,
    REPLICATION_RATES,
    TOPIC_THROTTLES,
    brokers_of,
    proposed_moves,
    topic_throttles,
)
from penstock.admin.moves.watching import Progress, Show, Watch
from penstock.client.clients import Connection
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import Refused, UserError
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition

PARTITIONS_AT_ONCE = 50
METADATA_TIMEOUT_S = 30.0
METADATA_PAUSE_S = 0.05
NAMED_PARTITIONS = 5

Plan = Callable[[list[PartitionState], Racks], Assignment]
Moving = Mapping[TopicPartition, Reassignment]

__all__ = ["PARTITIONS_AT_ONCE", "Plan", "Progress", "Show", "carry_out"]


def carry_out(
    connection: Connection,
    plan: Plan,
    *,
    throttle: int | None = None,
    at_once: int = PARTITIONS_AT_ONCE,
    show: Show | None = None,
) -> int:
    """How many partitions were moved. UserError at the end if some could not be; Unreachable, and UserError before the
    end, leave what is under way as it is."""
    tell = show or (lambda progress: None)
    run = _Run(plan, throttle, at_once, tell)
    watch = Watch(connection, tell)
    while True:
        found, stuck = watch.finish(run.done, run.total)
        with ClusterClient(connection) as client:
            run.settle(client, found, stuck)
            if not run.start_batch(client, stuck):
                clear_throttles(client)
                run.complain()
                return run.done


class _Run:
    """What one run knows of its progress."""

    def __init__(self, plan: Plan, throttle: int | None, at_once: int, show: Show) -> None:
        self._plan = plan
        self._throttle = throttle
        self._at_once = at_once
        self._show = show
        self.done = 0
        self.total: int | None = None
        self._batch: Assignment = {}
        self._took_part: set[int] = set()
        self._leaderless: list[PartitionState] = []
        self._refused: dict[TopicPartition, Refused] = {}

    def settle(self, client: ClusterClient, found: Moving, stuck: Moving) -> None:
        """Counts what has arrived, and waits until the broker that is asked knows it, too."""
        self._took_part.update(broker for one in found.values() for broker in one.replicas)
        arrived = {partition: one.target for partition, one in found.items()} | self._batch
        arrived = {partition: replicas for partition, replicas in arrived.items() if partition not in stuck}
        self.done += len(self._batch.keys() & arrived.keys())
        self._batch = {}
        _wait_until_known(client, arrived)

    def start_batch(self, client: ClusterClient, stuck: Moving) -> bool:
        """False when there is nothing left to do."""
        described = client.metadata()
        racks = {one.node_id: one.rack for one in described.brokers}
        states = {state.partition: state for state in partition_states(described)}
        wanted = self._wanted(client, states, racks, stuck)
        # Where nobody leads there is nothing to copy from: the controller would take the move, and never end it.
        self._leaderless = [states[one] for one in wanted if states[one].leader not in racks]
        without = self._refused.keys() | {state.partition for state in self._leaderless}
        wanted = {partition: replicas for partition, replicas in wanted.items() if partition not in without}
        if not wanted:
            return False
        self._batch = dict(islice(wanted.items(), self._at_once))
        self.total = self.done + len(wanted)
        self._show(Progress(self.done, self.total, len(self._batch), 0))
        current = {partition: states[partition].replicas for partition in self._batch}
        self._took_part.update(broker for replicas in current.values() for broker in replicas)
        if self._throttle is not None:
            _set_throttle(client, stuck, self._batch, current, self._throttle)
        try:
            refused = cluster.start(client, dict(self._batch))
        except Refused:
            clear_throttles(client)  # nothing was started
            raise
        self._refused |= refused
        for partition in refused:
            del self._batch[partition]
        return True

    def _wanted(
        self,
        client: ClusterClient,
        states: Mapping[TopicPartition, PartitionState],
        racks: Racks,
        stuck: Moving,
    ) -> Assignment:
        try:
            return self._plan(list(_considered(states.values(), stuck)), racks)
        except UnknownBroker as error:
            if error.broker in self._took_part:
                return {}  # it was there as long as it kept something
            raise
        except UserError:
            if self._throttle is not None:
                clear_throttles(client)
            raise

    def complain(self) -> None:
        """Of what could not be moved."""
        complaints = []
        if self._leaderless:
            holders = sorted({broker for state in self._leaderless for broker in state.isr})
            complaints.append(
                f"without a leader, and not moved: {_named(state.partition for state in self._leaderless)}; "
                f"start {_brokers(holders)}, or let kafka-leader-election --election-type unclean choose among the "
                "replicas that are there, then run this again"
            )
        # A topic that was deleted in the meantime has nothing left to be moved.
        refused = {
            partition: error
            for partition, error in self._refused.items()
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        }
        if refused:
            reason = next(iter(refused.values()))
            complaints.append(f"cannot be moved: {_named(refused)}: {reason}")
        if complaints:
            raise UserError("; ".join(complaints))


def _considered(states: Iterable[PartitionState], stuck: Moving) -> Iterable[PartitionState]:
    """A move that cannot get on is looked at both ways: as it would end, because that may be what the plan is to change,
    and as it was before, because the plan may have better ends for it. The latter comes last, and so prevails."""
    for state in states:
        move = stuck.get(state.partition)
        if move is None:
            yield state
        else:
            yield state._replace(replicas=move.target)
            yield state._replace(replicas=move.origin)


def _wait_until_known(client: ClusterClient, arrived: Assignment) -> None:
    """A broker hears of the end of a reassignment a little later than the controller: the next plan must know it."""
    deadline_s = time.monotonic() + METADATA_TIMEOUT_S
    while arrived and time.monotonic() < deadline_s:
        known = cluster.known_replicas(client, {one.topic for one in arrived})
        # A topic that is not known any more was deleted.
        if all(set(known.get(one, replicas)) == set(replicas) for one, replicas in arrived.items()):
            return
        time.sleep(METADATA_PAUSE_S)


def _set_throttle(
    client: ClusterClient, stuck: Moving, batch: Assignment, current: Assignment, throttle: int
) -> None:
    replaced = {partition: move for partition, move in stuck.items() if partition in batch}
    moves = proposed_moves(replaced, batch, current)
    changes = {topic: Change(added, []) for topic, added in topic_throttles(moves).items()}
    cluster.alter_topics(client, changes, skips_unknown=True)
    rates = Change({LEADER_RATE: str(throttle), FOLLOWER_RATE: str(throttle)}, [])
    cluster.alter_brokers(client, dict.fromkeys(brokers_of(moves), rates))


def clear_throttles(client: ClusterClient) -> None:
    """Wherever there are some: what a run before this one left behind is not known. The topics are the last, so that a run
    that is interrupted here is taken up, too."""
    topics = cluster.throttled_topics(client)
    brokers = [node.node_id for node in client.nodes()] if topics else cluster.throttled_brokers(client)
    cluster.alter_brokers(client, dict.fromkeys(brokers, Change({}, REPLICATION_RATES)))
    cluster.alter_topics(client, dict.fromkeys(topics, Change({}, TOPIC_THROTTLES)), skips_unknown=True)


def _named(partitions: Iterable[TopicPartition]) -> str:
    names = [str(partition) for partition in partitions]
    more = len(names) - NAMED_PARTITIONS
    return ", ".join(names[:NAMED_PARTITIONS]) + (f" and {more} more" if more > 0 else "")


def _brokers(brokers: list[int]) -> str:
    return f"{'broker' if len(brokers) == 1 else 'brokers'} {', '.join(map(str, brokers))}"
