"""A rolling restart: one broker at a time, the next one only when every replica is in sync again.

The controller's broker is the last, so that its office moves once. Interrupted, it leaves at most one broker stopped;
the next run starts that one first.
"""

from __future__ import annotations

import time

from penstock.cli.box import processes
from penstock.cli.box.composition import Box, Member
from penstock.cli.box.starting import Tell, bring_up, sees_all, wait_until_ready
from penstock.cli.box.stopping import STOP_TIMEOUT_S, bring_down
from penstock.cli.clients import Connection
from penstock.cli.cluster_client import ClusterClient
from penstock.cli.cluster_health import PartitionState, partition_states
from penstock.cli.failures import Refused, Unreachable, UserError
from penstock.cli.kafka.leader_election import ELECTIONS, elect_leaders

IN_SYNC_TIMEOUT_S = 600.0
PAUSE_S = 0.2
NAMED_PARTITIONS = 3


def restart_rolling(
    box: Box, chosen: list[Member], *, tell: Tell, waiting: Tell, timeout_s: float = IN_SYNC_TIMEOUT_S
) -> None:
    """`timeout_s` bounds each wait for replicas to be in sync."""
    bring_up(box, list(box.members), tell=tell, waiting=waiting)
    wait_until_in_sync(box, waiting=waiting, timeout_s=timeout_s)
    controller = _controller(box)
    for member in sorted(chosen, key=lambda one: (one.number == controller, one.number)):
        bring_down(box, [member], tell=tell, waiting=waiting, timeout_s=STOP_TIMEOUT_S)
        processes.check_port_is_free(box, member)
        processes.start(box, member)
        wait_until_ready(box, [member], sees_all, tell=tell, waiting=waiting)
        wait_until_in_sync(box, waiting=waiting, timeout_s=timeout_s)
    restore_leaders(box)
    tell("all replicas are in sync, and the preferred ones lead")


def wait_until_in_sync(box: Box, *, waiting: Tell, timeout_s: float) -> None:
    deadline_s = time.monotonic() + timeout_s
    behind: list[PartitionState] = []
    while True:
        try:
            with ClusterClient(Connection(box.bootstrap)) as client:
                states = partition_states(client.metadata())
            behind = [state for state in states if len(state.isr) < len(state.replicas) or state.leader < 0]
            if not behind:
                return
            waiting(f"waiting for {len(behind)} of {len(states)} partitions to be in sync")
        except (Unreachable, Refused):
            waiting("waiting for a broker that answers")
        if time.monotonic() > deadline_s:
            names = ", ".join(str(state.partition) for state in behind[:NAMED_PARTITIONS])
            raise UserError(
                f"{len(behind)} partitions are not in sync after {timeout_s:g} s ({names}…): the restart goes no "
                "further; penstock status shows them"
            )
        time.sleep(PAUSE_S)


def _controller(box: Box) -> int:
    with ClusterClient(Connection(box.bootstrap)) as client:
        return client.metadata([]).controller_id


def restore_leaders(box: Box) -> None:
    """The preferred replicas lead again; where one cannot, the cluster does it later by itself."""
    with ClusterClient(Connection(box.bootstrap)) as client:
        elect_leaders(client, ELECTIONS["PREFERRED"], None)
