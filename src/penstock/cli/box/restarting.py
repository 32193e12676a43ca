"""A rolling restart: one broker at a time, the next one only when every replica is in sync again.

The controller's broker is the last, so that its office moves once. Interrupted, it leaves at most one broker stopped;
the next run starts that one first. Brokers that are not chosen and do not run stay so: their replicas are not waited for.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from penstock.cli.box import processes
from penstock.cli.box.composition import Box, Member
from penstock.cli.box.starting import Tell, bring_up, check_zookeeper_serves, sees_all, wait_until_ready
from penstock.cli.box.stopping import STOP_TIMEOUT_S, bring_down
from penstock.cli.clients import Connection
from penstock.cli.cluster_client import ClusterClient
from penstock.cli.cluster_health import PartitionState, partition_states
from penstock.cli.failures import Refused, Unreachable, UserError
from penstock.cli.kafka.leader_election import ELECTIONS, elect_leaders
from penstock.model.ids import TopicPartition

IN_SYNC_TIMEOUT_S = 600.0
PAUSE_S = 0.2
NAMED_PARTITIONS = 3


def restart_rolling(
    box: Box, chosen: list[Member], *, tell: Tell, waiting: Tell, timeout_s: float = IN_SYNC_TIMEOUT_S
) -> None:
    """`timeout_s` bounds each wait for replicas to be in sync."""
    check_zookeeper_serves(box)
    bring_up(box, _stopped(box, chosen), tell=tell, waiting=waiting)
    away = {member.number for member in _stopped(box, box.brokers)}
    wait_until_in_sync(box, away, waiting=waiting, timeout_s=timeout_s)
    controller = _controller(box)
    for member in sorted(chosen, key=lambda one: (one.number == controller, one.number)):
        bring_down(box, [member], tell=tell, waiting=waiting, timeout_s=STOP_TIMEOUT_S)
        processes.check_port_is_free(box, member)
        processes.start(box, member)
        wait_until_ready(box, [member], sees_all, tell=tell, waiting=waiting)
        wait_until_in_sync(box, away, waiting=waiting, timeout_s=timeout_s)
    if away:
        tell(f"all replicas are in sync, but for those of brokers that do not run: {_listed(sorted(away))}")
    else:
        tell("all replicas are in sync")
    left = restore_leaders(box)
    if left:
        tell(
            f"{_not_so(left, 'led by the preferred replica')}: the cluster sees to it when that one can lead"
        )
    else:
        tell("the preferred replicas lead")


def _stopped(box: Box, members: Iterable[Member]) -> list[Member]:
    return [member for member in members if processes.running_pid(box, member) is None]


def are_in_sync(box: Box, *, waiting: Tell, timeout_s: float) -> bool:
    """Whether the replicas of all brokers that run are, within this time."""
    away = {member.number for member in _stopped(box, box.brokers)}
    if len(away) == len(box.brokers):
        return True
    try:
        wait_until_in_sync(box, away, waiting=waiting, timeout_s=timeout_s)
    except UserError:
        return False
    return True


def wait_until_in_sync(box: Box, away: Collection[int], *, waiting: Tell, timeout_s: float) -> None:
    """`away` are brokers that are not waited for."""
    deadline_s = time.monotonic() + timeout_s
    while True:
        try:
            with ClusterClient(Connection(box.bootstrap)) as client:
                states = partition_states(client.metadata())
            behind = not_in_sync(states, away)
            if not behind:
                return
            problem = _not_so([state.partition for state in behind], "in sync")
            waiting(f"waiting for {len(behind)} of {len(states)} partitions to be in sync")
        except (Unreachable, Refused) as error:
            problem = str(error).rstrip(".")
            waiting("waiting for a broker that answers")
        if time.monotonic() > deadline_s:
            raise UserError(
                f"after {timeout_s:g} s: {problem}. The restart goes no further; penstock status --data {box.directory} "
                "shows more"
            )
        time.sleep(PAUSE_S)


def not_in_sync(states: Iterable[PartitionState], away: Collection[int]) -> list[PartitionState]:
    """Those with a replica that could be in sync, and is not, or without a leader though one could lead."""
    behind = []
    for state in states:
        due = set(state.replicas).difference(away)
        if due and (not due.issubset(state.isr) or state.leader < 0):
            behind.append(state)
    return behind


def _controller(box: Box) -> int:
    with ClusterClient(Connection(box.bootstrap)) as client:
        return client.metadata([]).controller_id


def restore_leaders(box: Box) -> list[TopicPartition]:
    """The preferred replicas lead again, but for these: there the cluster does it later by itself."""
    with ClusterClient(Connection(box.bootstrap)) as client:
        results = elect_leaders(client, ELECTIONS["PREFERRED"], None)
    return sorted(partition for partition, error in results.items() if error is not None)


def _not_so(partitions: list[TopicPartition], what: str) -> str:
    """`2 partitions are not in sync (orders-0, orders-3)`"""
    counted = "1 partition is" if len(partitions) == 1 else f"{len(partitions)} partitions are"
    more = ", …" if len(partitions) > NAMED_PARTITIONS else ""
    return f"{counted} not {what} ({_listed(partitions[:NAMED_PARTITIONS])}{more})"


def _listed(things: Iterable[object]) -> str:
    return ", ".join(map(str, things))
