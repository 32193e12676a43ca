"""One partition in a follower's fetcher: the offset that the leader was asked for, and whether it is left out for a while."""

from asyncio import TimerHandle
from typing import Final

from penstock.broker.partitions.partition import Partition

FIRST_REST_SECONDS: Final = 0.02
"""After a refusal; doubled at each further one, up to replica.fetch.backoff.ms."""

Key = tuple[bytes, int]
"""Topic id, index."""


class Followed:
    """One partition that a fetcher keeps up to date."""

    __slots__ = (
        "asked_offset",
        "is_behind",
        "key",
        "leader_epoch",
        "partition",
        "rest_seconds",
        "resting",
        "told_start_offset",
    )

    def __init__(self, partition: Partition, topic_id: bytes) -> None:
        self.partition = partition
        self.key: Key = (topic_id, partition.index)
        self.leader_epoch = partition.leader_epoch
        self.asked_offset = -1
        """From where the leader was asked in this leadership; an answer to what was asked before it is not taken."""
        self.rest_seconds = FIRST_REST_SECONDS
        self.resting: TimerHandle | None = None
        self.is_behind = True
        """Whether it lacks something committed, as far as we know."""
        self.told_start_offset = -1
        """Where the leader thinks that our log begins."""

    @property
    def is_current(self) -> bool:
        """Whether what was asked in this leadership still matters."""
        partition = self.partition
        return not (partition.is_leader or partition.is_gone) and partition.leader_epoch == self.leader_epoch

    @property
    def can_take(self) -> bool:
        """Whether an answer is to what we asked, and we are where we were then."""
        return self.is_current and self.resting is None and self.asked_offset == self.partition.log.end_offset
