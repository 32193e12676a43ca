"""What a scenario has to work with, and what became of it."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from simulation.liar.broker import LyingBroker
from simulation.liar.lies import Plan
from simulation.liar.world import World

T = TypeVar("T")

PAUSE_S: Final = 0.02
SHOWN_ROWS: Final = 5


class Over(BaseException):
    """Enough is known: something is wrong. No client's error, so nothing that retries takes it for one."""


class Report(NamedTuple):
    seed: int
    scenario: str
    violations: list[str]
    lies: Counter[str]  # by kind
    errors: Counter[str]  # that the clients told
    seconds: float
    trace: list[str]


class Act:
    """One seed. Use from the thread of the scenario, except where it says otherwise."""

    def __init__(self, world: World, liar: LyingBroker, plan: Plan, deadline_s: float) -> None:
        self.world = world
        self.liar = liar
        self.plan = plan
        self.name: Final = f"seed-{plan.seed}-{time.monotonic_ns() % 10**9}"
        """Of topics, groups and queries of its own."""
        self.chance: Final = random.Random(f"{plan.seed}/scenario")
        self.violations: Final[list[str]] = []
        self.errors: Final[Counter[str]] = Counter()
        self.notes: Final[list[str]] = []
        self._deadline_s = deadline_s

    def begin(self) -> None:
        """From here on the liar lies."""
        self.liar.begin(self.plan)

    def wrong(self, what: str) -> None:
        self.violations.append(what)

    def met(self, error: BaseException) -> None:
        """An error is an answer, too. From any thread."""
        self.errors[type(error).__name__] += 1
        self.notes.append(f"{type(error).__name__}: {error}"[:500])

    def is_time_left(self) -> bool:
        return time.monotonic() < self._deadline_s

    def attempt(
        self,
        work: Callable[[], T],
        *errors: type[Exception],
        may_fail: Callable[[], bool] = lambda: False,
        failures: int = 0,
    ) -> T:
        """Again after each of these errors. What is begun when the cluster is healthy must not fail, unless it `may_fail`, or
        more often than `failures`: a client may have to be thrown away after what it was told before.
        """
        while True:
            was_healthy = not self.liar.is_lying
            try:
                return work()
            except errors as error:
                self.met(error)
                failures -= was_healthy and not may_fail()
                if failures < 0:
                    self.wrong(f"fails though the cluster is healthy: {type(error).__name__}: {error}")
                    raise Over from error
                if not self.is_time_left():
                    raise Over from error
            time.sleep(PAUSE_S)

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        while not condition():
            if not self.is_time_left():
                self.wrong(f"not in time: {what}")
                raise Over
            time.sleep(PAUSE_S)


def difference(found: Counter[T], expected: Counter[T]) -> str | None:
    """In what two collections differ, in a line; None: in nothing."""
    missing, more = expected - found, found - expected
    if not missing and not more:
        return None
    return (
        f"{missing.total()} of {expected.total()} are missing {_shown(missing)}, "
        f"{more.total()} are too many {_shown(more)}"
    )


def _shown(rows: Counter[T]) -> str:
    return str(sorted(map(str, rows))[:SHOWN_ROWS]) if rows else ""
