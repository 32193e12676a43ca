"""How values are distributed, at the cost of one list increment for each: buckets that grow with the value.

A value up to 7 has a bucket of its own; above that each power of two has four, so that a quantile is off by an eighth at most.
Quantiles are those of the last minutes: there is a list for the current stretch of time and one for the stretch before it, and
`turn` begins a new one.
"""

from collections.abc import Sequence
from typing import Final

MOST: Final = (1 << 40) - 1
"""Larger values count as this one: 12 days in microseconds."""
BUCKETS: Final = 156
QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)


class Histogram:
    __slots__ = ("_before", "_now")

    def __init__(self) -> None:
        self._now = [0] * BUCKETS
        self._before: list[int] | None = None

    def note(self, value: int) -> None:
        if value < 8:
            self._now[max(value, 0)] += 1
        elif value <= MOST:
            bits = value.bit_length()
            self._now[4 * bits - 12 + (value >> (bits - 3))] += 1
        else:
            self._now[BUCKETS - 1] += 1

    def turn(self) -> None:
        self._before = self._now
        self._now = [0] * BUCKETS

    def counts(self) -> list[int]:
        """For `quantiles`, which takes longer and may be asked in a thread."""
        if self._before is None:
            return self._now.copy()
        return [now + before for now, before in zip(self._now, self._before, strict=True)]


def bounds(bucket: int) -> tuple[int, int]:
    """The first value of a bucket, and of the next one."""
    if bucket < 8:
        return bucket, bucket + 1
    bits = (bucket + 8) // 4
    top = bucket + 12 - 4 * bits
    return top << (bits - 3), (top + 1) << (bits - 3)


def quantiles(counts: Sequence[int], wanted: Sequence[float] = QUANTILES) -> list[float]:
    """Of the values that were noted, with the values of a bucket spread evenly over it; zeros where there are none."""
    total = sum(counts)
    found: list[float] = []
    bucket, below = 0, 0
    for quantile in wanted:
        rank = quantile * total
        while bucket < len(counts) - 1 and below + counts[bucket] < rank:
            below += counts[bucket]
            bucket += 1
        low, high = bounds(bucket)
        here = counts[bucket]
        # A bucket of one value has no inside.
        found.append(
            low if high - low == 1 else low + (high - low) * min((rank - below) / here, 1.0) if here else 0.0
        )
    return found
