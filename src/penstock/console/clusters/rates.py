"""Per second, from one look to the next ◇."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Rates(Generic[K]):
    """Of counters that only grow. One that shrank began anew: it has no rate until the look after."""

    def __init__(self) -> None:
        self._before: Mapping[K, float] = {}
        self._at_s = 0.0

    def look(self, now: Mapping[K, float], at_s: float) -> dict[K, float]:
        """The rates of those that were known before, too. `now` must not be changed afterwards."""
        passed_s = at_s - self._at_s
        before = self._before
        self._before, self._at_s = now, at_s
        if passed_s <= 0:
            return {}
        found = {}
        for key, value in now.items():
            earlier = before.get(key)
            if earlier is not None and value >= earlier:
                found[key] = (value - earlier) / passed_s
        return found


def total(values: Mapping[K, float]) -> float | None:
    """None where nothing is known."""
    return sum(values.values()) if values else None
