"""When a task that has failed is started again: after pauses that grow, unless it is turned off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from penstock.client.patience import Backoff
from penstock.connect.errors import Hopeless, InvalidConfig
from penstock.connect.settings import Kind
from penstock.connect.tasks.settings import value_of

ENABLE: Final = "errors.restart.enable"
DELAY: Final = "errors.restart.delay.initial.ms"
DELAY_MAX: Final = "errors.restart.delay.max.ms"
ATTEMPTS_MAX: Final = "errors.restart.max.attempts"
WELL_AFTER_S: Final = 60.0
"""A task that ran for so long begins with the first pause again; for longer where its pauses have grown longer."""
JITTER: Final = 0.2


class Restarting(NamedTuple):
    is_enabled: bool = True
    first_s: float = 1.0
    max_s: float = 300.0
    max_attempts: int = -1
    """-1: without end."""

    @classmethod
    def of(cls, config: Mapping[str, str], worker: Mapping[str, str]) -> Restarting:
        """The connector's configuration, and the worker's properties where it says nothing."""
        given = {**worker, **config}
        return cls(
            value_of(given, ENABLE, Kind.BOOLEAN, True),
            value_of(given, DELAY, Kind.LONG, 1000) / 1000,
            value_of(given, DELAY_MAX, Kind.LONG, 300_000) / 1000,
            value_of(given, ATTEMPTS_MAX, Kind.INT, -1),
        )

    def delay_s(self, failures: int, error: BaseException, chance: float) -> float | None:
        """The pause after so many failures in a row, from 1; None: only somebody who asks for it starts the task again.
        `chance` is a number from 0 up to 1."""
        if not self.is_enabled or isinstance(error, Hopeless | InvalidConfig):
            return None
        if 0 <= self.max_attempts < failures:
            return None
        backoff = Backoff(self.first_s, factor=2, max_s=self.max_s, jitter=JITTER)
        return backoff.delay_s(failures, lambda: chance)

    def is_well_after(self, ran_s: float, failures: int) -> bool:
        """Whether a task that ran for so long, after so many failures in a row, counts as healthy."""
        paused_s = min(self.first_s * 2.0 ** min(failures, 32), self.max_s)
        return ran_s >= max(WELL_AFTER_S, paused_s)
