"""Which process is hurt next, how and for how long; all from a seed."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

OVERLAP_CHANCE = 0.25  # of a step that hurts a broker and ZooKeeper at the same time
ZOOKEEPER_CHANCE = 0.2  # of a step that hurts ZooKeeper only
SYNC_CHANCE = 0.5  # of waiting until all replicas are in sync before the next step
MANY_CHANCE = 0.4  # of more than one broker in a step, where that is allowed
REST_S = (0.5, 4.0)


class FaultKind(StrEnum):
    KILL = "kill -9 of a broker"
    RESTART = "SIGTERM and restart of a broker"
    SHORT_PAUSE = "SIGSTOP of a broker, shorter than its session"
    LONG_PAUSE = "SIGSTOP of a broker, longer than its session"
    ZOOKEEPER_KILL = "kill -9 of ZooKeeper's leader"
    ZOOKEEPER_PAUSE = "SIGSTOP of ZooKeeper's leader"


@dataclass(frozen=True)
class Fault:
    kind: FaultKind
    broker_id: int | None  # None for ZooKeeper
    lasts_s: float


@dataclass(frozen=True)
class Step:
    """Faults that begin together; then a rest."""

    faults: Sequence[Fault]
    rest_s: float
    waits_for_sync: bool


def steps(
    seed: int, *, broker_ids: Sequence[int], session_timeout_s: float, severe: bool = False
) -> Iterator[Step]:
    """Without end. Unless `severe`, no step hurts more than one broker."""
    chance = random.Random(seed)
    while True:
        faults: list[Fault] = []
        only_zookeeper = chance.random() < ZOOKEEPER_CHANCE
        if not only_zookeeper:
            many = severe and chance.random() < MANY_CHANCE
            count = chance.randint(2, len(broker_ids)) if many else 1
            faults += [
                _broker_fault(chance, each, session_timeout_s) for each in chance.sample(broker_ids, count)
            ]
        if only_zookeeper or chance.random() < OVERLAP_CHANCE:
            faults.append(_zookeeper_fault(chance, session_timeout_s))
        yield Step(faults, chance.uniform(*REST_S), chance.random() < SYNC_CHANCE)


def _broker_fault(chance: random.Random, broker_id: int, session_timeout_s: float) -> Fault:
    kinds = (FaultKind.KILL, FaultKind.RESTART, FaultKind.SHORT_PAUSE, FaultKind.LONG_PAUSE)
    kind = chance.choices(kinds, weights=(4, 2, 2, 2))[0]
    if kind is FaultKind.SHORT_PAUSE:
        lasts_s = chance.uniform(0.1, 0.7 * session_timeout_s)
    elif kind is FaultKind.LONG_PAUSE:
        lasts_s = chance.uniform(1.2, 2.0) * session_timeout_s
    else:
        lasts_s = chance.uniform(0.0, 1.5 * session_timeout_s)
    return Fault(kind, broker_id, lasts_s)


def _zookeeper_fault(chance: random.Random, session_timeout_s: float) -> Fault:
    kind = chance.choice((FaultKind.ZOOKEEPER_KILL, FaultKind.ZOOKEEPER_PAUSE))
    return Fault(kind, None, chance.uniform(0.5, 1.5 * session_timeout_s))
