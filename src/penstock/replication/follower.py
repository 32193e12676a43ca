"""What a follower does about a log that differs from its leader's.

Example: the follower has epochs 0 (from offset 0), 1 (from 100), and ends at 150; the leader has epochs 0 and 2 (from 120).
The follower fetches from 150 and says that its last epoch is 1. The leader's largest epoch not above 1 is 0, which ends at
120 there: it answers "diverging: epoch 0 ends at 120". The follower's epoch 0 ends at 100, so it cuts its log at 100 and
fetches from there.
"""

from collections.abc import Callable
from typing import Final

UNDEFINED: Final = -1

EpochEnd = Callable[[int], tuple[int, int]]
"""(the largest known epoch not above the asked one, where it ends); (-1, -1) when none is known."""


def divergence(epoch_end: EpochEnd, *, last_fetched_epoch: int, fetch_offset: int) -> tuple[int, int] | None:
    """The leader's side: (epoch, its end) when a follower's log cannot be a beginning of ours."""
    if last_fetched_epoch < 0:
        return None
    epoch, end_offset = epoch_end(last_fetched_epoch)
    if epoch == UNDEFINED or epoch < last_fetched_epoch or end_offset < fetch_offset:
        return epoch, end_offset
    return None


def truncation_offset(
    epoch_end: EpochEnd, *, leader_epoch: int, leader_end_offset: int, high_watermark: int, end_offset: int
) -> int:
    """The follower's side: where to cut. When epochs still differ afterwards, the leader says so at the next fetch."""
    if leader_end_offset == UNDEFINED:
        return min(high_watermark, end_offset)
    if leader_epoch == UNDEFINED:
        return min(leader_end_offset, end_offset)
    epoch, local_end = epoch_end(leader_epoch)
    if epoch == UNDEFINED:
        return min(leader_end_offset, end_offset)
    if epoch != leader_epoch:
        return min(local_end, end_offset)
    return min(leader_end_offset, local_end, end_offset)
