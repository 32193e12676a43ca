"""Which lies a seed tells, and how often. Whatever is here a real cluster may do, at a bad moment.

A request is lied to by its API and its number among those of that API, so one client's lies hardly depend on how fast others are.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, Final, NamedTuple

from penstock.model.api_keys import ApiKey
from simulation.liar.partitions import FORMS
from simulation.liar.refusals import AFTER, BEFORE, coordination

DELAY: Final = "delayed"
CUT_BEFORE: Final = "cut before the work"
CUT_AFTER: Final = "cut after the work"
SILENCE: Final = "not answered"
LATE: Final = "cut, and done later"
REFUSE: Final = "refused"
REFUSE_AFTER: Final = "refused after the work"
EMPTY: Final = "records held back"
SHORTEN: Final = "records cut"
MOVE: Final = "leader or coordinator moved"
FORGET: Final = "topic forgotten"
FREEZE: Final = "metadata outdated"
DOWN: Final = "node down"
KINDS: Final = (
    DELAY, CUT_BEFORE, CUT_AFTER, SILENCE, LATE, REFUSE, REFUSE_AFTER, EMPTY, SHORTEN, MOVE, FORGET, FREEZE, DOWN,
)  # fmt: skip

# How often at most, of the requests that it can be told to.
_MOST: Final = {
    DELAY: 0.4, CUT_BEFORE: 0.15, CUT_AFTER: 0.15, SILENCE: 0.01, LATE: 0.2, REFUSE: 0.35, REFUSE_AFTER: 0.3,
    EMPTY: 0.5, SHORTEN: 0.8, MOVE: 0.2, FORGET: 0.1, FREEZE: 0.3, DOWN: 0.03,
}  # fmt: skip
_LONGEST_S: Final = 2.5
_NEVER: Final = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
_TOPICS: Final = frozenset({ApiKey.METADATA, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.PRODUCE})


class Plan(NamedTuple):
    """What one seed does."""

    seed: int
    lying_s: float
    rates: dict[str, float]  # by kind

    @classmethod
    def drawn(cls, seed: int, *, only: frozenset[str] | None = None) -> Plan:
        chance = random.Random(f"{seed}/plan")
        kinds = [kind for kind in KINDS if only is None or kind in only]
        chosen = chance.sample(kinds, chance.randint(min(2, len(kinds)), len(kinds)))
        strength = chance.choice((0.4, 0.7, 1.0))
        rates = {kind: strength * _MOST[kind] * chance.uniform(0.3, 1.0) for kind in chosen}
        return cls(seed, chance.uniform(0.5, _LONGEST_S), rates)


class Lie:
    """About one request: `REFUSE in lie`."""

    def __init__(self, kinds: frozenset[str], chance: random.Random) -> None:
        self._kinds = kinds
        self.chance = chance

    def __contains__(self, kind: str) -> bool:
        return kind in self._kinds

    @property
    def delay_s(self) -> float:
        return self.chance.uniform(0.0, 0.08) if DELAY in self._kinds else 0.0


TRUTH: Final = Lie(frozenset(), random.Random(0))


class Lies:
    """The lies of a plan, request by request."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.told: Counter[str] = Counter()
        self._asked: Counter[int] = Counter()

    def about(self, api_key: int, request: Any | None) -> Lie:
        self._asked[api_key] += 1
        chance = random.Random(f"{self.plan.seed}/{api_key}/{self._asked[api_key]}")
        kinds = frozenset(
            kind
            for kind, rate in self.plan.rates.items()
            # Drawn for each, whether it is possible or not: else one kind more would change all others.
            if chance.random() < rate and _is_possible(kind, api_key, request)
        )
        return Lie(kinds, chance)

    def note(self, kind: str) -> None:
        self.told[kind] += 1


def _is_possible(kind: str, api_key: int, request: Any | None) -> bool:
    if kind in (DELAY, DOWN):
        return True
    if api_key in _NEVER or request is None:
        return False
    if kind == LATE:
        return api_key == ApiKey.PRODUCE
    if kind == REFUSE:
        return api_key in BEFORE
    if kind == REFUSE_AFTER:
        return api_key in AFTER
    if kind in (EMPTY, SHORTEN):
        return api_key == ApiKey.FETCH
    if kind == MOVE:
        return api_key in FORMS or coordination(request) is not None
    if kind == FORGET:
        return api_key in _TOPICS
    if kind == FREEZE:
        return api_key == ApiKey.METADATA
    return True
