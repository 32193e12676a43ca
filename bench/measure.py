"""What is measured: the rows of the table, the samples of the rounds, and how much a run does."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bench.servers import KAFKA, PENSTOCK

GIGABYTE = 1_000_000_000
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Row:
    """One line of a table. `target` bounds the ratio of our value to theirs, or our value itself."""

    key: str
    label: str
    unit: str
    better: Literal["higher", "lower"]
    target: float | None
    cpu_per: str = (
        ""  # what the server's CPU seconds are divided by: "GB", "1,000 requests"; "" for not shown
    )
    bounds: Literal["ratio", "value"] = "ratio"
    sides: tuple[str, str] = (KAFKA, PENSTOCK)  # theirs and ours

    def is_met(self, bounded: float | None) -> bool | None:
        """Of the ratio or the value, as `bounds` says; None where there is no target or nothing was measured."""
        if self.target is None or bounded is None:
            return None
        return bounded >= self.target if self.better == "higher" else bounded <= self.target


@dataclass(frozen=True)
class Sample:
    """What one workload saw on one server in one round, by row key."""

    values: Mapping[str, float]
    cpu_seconds: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, float] = field(default_factory=dict)  # kept in results.json, not in the table


@dataclass(frozen=True)
class Scale:
    """How much a run does; the quick one fits into three minutes and is for noticing, not for quoting."""

    quick: bool
    karapace: Path | None = None  # its folder; without it, what is measured beside it is left out

    def pick(self, *, full: int, quick: int) -> int:
        return quick if self.quick else full


def percentile(ordered: Sequence[float], fraction: float) -> float:
    """The nearest rank: percentile([1, 2, 3, 4], 0.5) is 2."""
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)]
