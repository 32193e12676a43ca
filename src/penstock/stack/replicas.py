"""What a rolling restart of brokers asks of the cluster: whose replicas are behind, who is the controller, who leads."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from penstock.admin.elections import ELECTIONS, elect_leaders
from penstock.admin.health import PartitionState, partition_states
from penstock.client.clients import Connection
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import Refused, Unreachable
from penstock.model.ids import TopicPartition

NAMED_PARTITIONS = 3


def behind(connection: Connection, away: Collection[int]) -> str | None:
    """Which partitions have a replica that is not in sync; None when there is none."""
    try:
        with ClusterClient(connection) as client:
            states = partition_states(client.metadata())
    except (Unreachable, Refused) as error:
        return str(error).rstrip(".")
    late = [state.partition for state in not_in_sync(states, away)]
    return _not_so(late, "in sync", of=len(states)) if late else None


def not_in_sync(states: Iterable[PartitionState], away: Collection[int]) -> list[PartitionState]:
    """Those with a replica that could be in sync, and is not, or without a leader though one could lead. `away` are brokers
    that are not waited for."""
    late = []
    for state in states:
        due = set(state.replicas).difference(away)
        if due and (not due.issubset(state.isr) or state.leader < 0):
            late.append(state)
    return late


def controller(connection: Connection) -> int:
    with ClusterClient(connection) as client:
        return client.metadata([]).controller_id


def restore_leaders(connection: Connection, away: Collection[int]) -> list[str]:
    """The preferred replicas lead again; where they cannot, the cluster does it later by itself. What is to be said."""
    with ClusterClient(connection) as client:
        results = elect_leaders(client, ELECTIONS["PREFERRED"], None)
    left = sorted(partition for partition, error in results.items() if error is not None)
    sentences = ["all replicas are in sync"]
    if away:
        numbers = ", ".join(map(str, sorted(away)))
        sentences[0] += f", but for those of brokers that do not run: {numbers}"
    if left:
        which = _not_so(left, "led by the preferred replica")
        return [*sentences, f"{which}: the cluster sees to it when that one can lead"]
    return [*sentences, "the preferred replicas lead"]


def _not_so(partitions: list[TopicPartition], what: str, *, of: int | None = None) -> str:
    """`2 of 6 partitions are not in sync (orders-0, orders-3)`"""
    total = len(partitions) if of is None else of
    counted = f"{len(partitions)} of {total}" if of is not None else str(total)
    noun = "partition" if total == 1 else "partitions"
    are = "is" if len(partitions) == 1 else "are"
    named = ", ".join(map(str, partitions[:NAMED_PARTITIONS]))
    more = ", …" if len(partitions) > NAMED_PARTITIONS else ""
    return f"{counted} {noun} {are} not {what} ({named}{more})"
