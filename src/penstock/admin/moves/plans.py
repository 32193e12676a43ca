"""Where replicas should go instead: plans for a broker that leaves or is replaced, and for more or fewer copies. Pure.

A replica that takes another's place is put on the live broker that has fewest replicas then (for a preferred leader:
that leads fewest by preference), if possible in a rack that the partition does not use yet. The others stay where they
are, so as little as possible is copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from penstock.admin.health import PartitionState
from penstock.admin.moves.model import Assignment
from penstock.client.errors import UserError

Racks = Mapping[int, str | None]
"""The live brokers and their racks."""


class UnknownBroker(UserError):
    """The cluster neither has the broker nor misses it."""

    def __init__(self, broker: int) -> None:
        super().__init__(f"there is no broker {broker}: it is not in the cluster, and keeps nothing")
        self.broker = broker


class _Load:
    """How much each live broker would have to keep."""

    def __init__(self, states: Iterable[PartitionState], racks: Racks) -> None:
        self._racks = racks
        self._replicas: Counter[int] = Counter()
        self._leaders: Counter[int] = Counter()
        for state in states:
            self._replicas.update(state.replicas)
            self._leaders.update(state.replicas[:1])

    def take(self, others: list[int], *, avoid: set[int], leads: bool) -> int | None:
        """The broker for one more replica beside the others; None when there is none left."""
        used = {self._racks.get(broker) for broker in others}
        candidates = [broker for broker in self._racks if broker not in others and broker not in avoid]
        if not candidates:
            return None

        def cost(broker: int) -> tuple[bool, int, int, int]:
            rack = self._racks[broker]
            return (
                rack is not None and rack in used,
                self._leaders[broker] if leads else 0,
                self._replicas[broker],
                broker,
            )

        chosen = min(candidates, key=cost)
        self._replicas[chosen] += 1
        self._leaders[chosen] += leads
        return chosen


def without_broker(states: list[PartitionState], racks: Racks, broker: int) -> Assignment:
    """Every replica that the broker has, on another one."""
    _check_known(states, racks, broker)
    load = _Load(states, racks)
    plan: Assignment = {}
    for state in states:
        if broker in state.replicas:
            place = state.replicas.index(broker)
            others = [one for one in state.replicas if one != broker]
            chosen = load.take(others, avoid={broker}, leads=place == 0)
            if chosen is None:
                raise UserError(
                    f"{state.partition} has {len(state.replicas)} replicas, and without broker {broker} only "
                    f"{_brokers(len([one for one in racks if one != broker]))} would be left: add a broker, or lower "
                    f"its number with penstock topics alter {state.partition.topic} --replication-factor"
                )
            plan[state.partition] = [*others[:place], chosen, *others[place:]]
    return plan


def with_broker_replaced(
    states: list[PartitionState], racks: Racks, broker: int, substitute: int
) -> Assignment:
    """Every replica that the broker has, on the substitute; on a third where the substitute has one already."""
    if substitute == broker:
        raise UserError(f"broker {broker} cannot take its own place: --with names another broker")
    _check_known(states, racks, broker)
    if substitute not in racks:
        raise UserError(f"broker {substitute} is not in the cluster: start it first")
    load = _Load(states, racks)
    plan: Assignment = {}
    for state in states:
        if broker in state.replicas:
            chosen: int | None = substitute
            if substitute in state.replicas:
                others = [one for one in state.replicas if one != broker]
                chosen = load.take(others, avoid={broker}, leads=state.replicas[0] == broker)
            if chosen is None:
                raise UserError(
                    f"broker {substitute} has {state.partition} already, and there is no third broker to take the "
                    f"copy of broker {broker}"
                )
            plan[state.partition] = [chosen if one == broker else one for one in state.replicas]
    return plan


def with_factor(states: list[PartitionState], racks: Racks, topic: str, factor: int) -> Assignment:
    """So many replicas of each partition of the topic. `states` are those of all topics."""
    if factor > len(racks):
        raise UserError(f"{factor} replicas need {factor} brokers, and there are {len(racks)}")
    load = _Load(states, racks)
    plan: Assignment = {}
    for state in states:
        if state.partition.topic == topic and len(state.replicas) != factor:
            plan[state.partition] = _grown(state, load, factor) or _shrunk(state, racks, factor)
    return plan


def _check_known(states: list[PartitionState], racks: Racks, broker: int) -> None:
    if broker not in racks and not any(broker in state.replicas for state in states):
        raise UnknownBroker(broker)


def _grown(state: PartitionState, load: _Load, factor: int) -> list[int]:
    replicas = list(state.replicas)
    while len(replicas) < factor:
        chosen = load.take(replicas, avoid=set(), leads=False)
        if chosen is None:  # a replica is on a broker that is gone
            raise UserError(f"{state.partition} cannot have {factor} replicas: too few brokers are there")
        replicas.append(chosen)
    return replicas if len(replicas) > len(state.replicas) else []


def _shrunk(state: PartitionState, racks: Racks, factor: int) -> list[int]:
    """Copies go that are of least use: on brokers that are gone, then not in sync, then the last."""
    by_use = sorted(
        enumerate(state.replicas),
        key=lambda one: (one[1] not in racks, one[1] not in state.isr, one[0]),
    )
    kept = {broker for _, broker in by_use[:factor]}
    return [broker for broker in state.replicas if broker in kept]


def _brokers(count: int) -> str:
    return "1 broker" if count == 1 else f"{count} brokers"
