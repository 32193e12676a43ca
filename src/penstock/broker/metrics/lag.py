"""How far behind a reader is, in seconds: how long ago the record that it reads next was written.

The end of a partition is looked at now and then. Between two looks the offsets are taken to have come evenly:

    looks: at 100 s the end was 50, at 110 s it was 70        committed: 60, the end now: 90, the time now: 130 s
    record 60 came at 105 s, so the lag is 25 s

Of what came before the first look the pace of all looks is taken. Where nothing has come since, the first look is the best that
is known, and the lag at least what is said.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

MOST_LOOKS: Final = 64
"""Of one partition. Where there are more, every second one of the older half is forgotten: what is long ago is known roughly."""


class Looks:
    """When the end of a partition was where. Made and added to by the loop; a thread may read `points()`."""

    __slots__ = ("_ends", "_times")

    def __init__(self) -> None:
        self._times = array("d")  # arrays: lists of 100,000 partitions would take half a gigabyte
        self._ends = array("q")

    def add(self, at: float, end_offset: int) -> None:
        times, ends = self._times, self._ends
        if ends and (end_offset < ends[-1] or at < times[-1]):
            del (
                times[:],
                ends[:],
            )  # its topic was made anew, or its tail is lost: what was before says nothing
        if len(ends) >= 2 and ends[-1] == ends[-2] == end_offset:
            times[-1] = at  # it stood still: since when, and until when
            return
        times.append(at)
        ends.append(end_offset)
        if len(times) > MOST_LOOKS:
            del times[1 : MOST_LOOKS // 2 : 2]
            del ends[1 : MOST_LOOKS // 2 : 2]

    def points(self) -> tuple[tuple[float, ...], tuple[int, ...]]:
        return tuple(self._times), tuple(self._ends)


def lag_seconds(
    times: Sequence[float], ends: Sequence[int], *, committed: int, end_offset: int, now: float
) -> float:
    """`times` and `ends` are those of the looks, in their order; `end_offset` is where the end is now."""
    if committed >= end_offset or not times:
        return 0.0
    after = bisect_right(ends, committed)  # the first look at which the record was there
    if after == 0:
        rise, seconds = end_offset - ends[0], now - times[0]
        came = times[0] - (ends[0] - committed) * seconds / rise if rise > 0 else times[0]
    else:
        until, until_end = (times[after], ends[after]) if after < len(times) else (now, end_offset)
        since, since_end = times[after - 1], ends[after - 1]
        came = since + (until - since) * (committed - since_end) / max(until_end - since_end, 1)
    return max(now - came, 0.0)
