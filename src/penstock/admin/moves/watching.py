"""Moves that are under way, watched until none is left that can get on.

A move cannot get on while its partition has no leader to copy from, or a broker that it needs is away. Brokers that
restart come back: only when it has lasted is such a move no longer waited for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from penstock.admin.health import NO_LEADER, partition_states
from penstock.admin.moves import cluster
from penstock.admin.moves.model import Reassignment
from penstock.client.clients import Connection
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.model.ids import TopicPartition

POLL_PAUSE_S = 0.5
STALL_TIMEOUT_S = 600.0
UNREACHABLE_TIMEOUT_S = 60.0
RETURN_TIMEOUT_S = 15.0

Moving = dict[TopicPartition, Reassignment]


class Progress(NamedTuple):
    done: int
    total: int
    moving: int
    moved_bytes: int


Show = Callable[[Progress], None]


class Watch:
    def __init__(self, connection: Connection, show: Show) -> None:
        self._connection = connection
        self._show = show
        self._hopeless_since_s: dict[TopicPartition, float] = {}

    def finish(self, done: int, total: int | None) -> tuple[Moving, Moving]:
        """Waits until nothing is being reassigned that can get on. Returns what was in the beginning, and what still is."""
        first: Moving | None = None
        seen: tuple[int, int] | None = None
        changed_s = reached_s = time.monotonic()
        while True:
            try:
                with ClusterClient(self._connection) as client:
                    moving = cluster.ongoing(client)
                    stuck = self._stuck(client, moving)
                    moved_bytes = cluster.bytes_at_destination(client, moving)
                reached_s = time.monotonic()
            except (Unreachable, Refused):
                # Brokers come and go while replicas move; only a cluster that stays away is an error.
                if time.monotonic() - reached_s > UNREACHABLE_TIMEOUT_S:
                    raise
                time.sleep(POLL_PAUSE_S)
                continue
            first = moving if first is None else first
            able = {partition: move for partition, move in moving.items() if partition not in stuck}
            if not able:
                return first, stuck
            finished = max(0, len(first) - len(moving))
            self._show(Progress(done + finished, total or done + len(first), len(able), moved_bytes))
            if (len(able), moved_bytes) != seen:
                seen, changed_s = (len(able), moved_bytes), time.monotonic()
            elif time.monotonic() - changed_s > STALL_TIMEOUT_S:
                raise UserError(_stalled(able))
            time.sleep(POLL_PAUSE_S)

    def _stuck(self, client: ClusterClient, moving: Moving) -> Moving:
        """Those that could not get on for a while."""
        now_s = time.monotonic()
        hopeless = _hopeless(client, moving)
        self._hopeless_since_s = {one: self._hopeless_since_s.get(one, now_s) for one in hopeless}
        return {
            partition: move
            for partition, move in hopeless.items()
            if now_s - self._hopeless_since_s[partition] >= RETURN_TIMEOUT_S
        }


def _hopeless(client: ClusterClient, moving: Moving) -> Moving:
    if not moving:
        return {}
    described = client.metadata(sorted({partition.topic for partition in moving}))
    live = {one.node_id for one in described.brokers}
    leaders = {state.partition: state.leader for state in partition_states(described)}
    return {
        partition: move
        for partition, move in moving.items()
        if leaders.get(partition, NO_LEADER) not in live
        or not live.issuperset(move.adding)
        or live.isdisjoint(move.target)
    }


def _stalled(able: Mapping[TopicPartition, Reassignment]) -> str:
    partition, move = next(iter(able.items()))
    awaited = ", ".join(map(str, move.adding or move.target))
    return (
        f"nothing has moved for {STALL_TIMEOUT_S:g} s: {partition} waits for {awaited} to be in sync; look at those "
        "brokers, then run this again, or end the move with kafka-reassign-partitions --cancel"
    )
