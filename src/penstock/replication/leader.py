"""What the leader of a partition knows of its followers, and what follows from it."""

from collections.abc import Collection, Iterable
from typing import Final

UNKNOWN: Final = -1


class Follower:
    """A replica elsewhere. `caught_up_ms`: when it last had everything that the leader had.

    It fetches from an offset on, so it has all before. A follower that fetches in a busy partition never has the very end;
    it counts as caught up at the time of its previous fetch when it has by now what was the end then.
    """

    __slots__ = (
        "broker_epoch",
        "caught_up_ms",
        "end_at_last_fetch",
        "end_offset",
        "last_fetch_ms",
        "start_offset",
    )

    def __init__(self, *, caught_up_ms: int) -> None:
        self.start_offset = UNKNOWN
        self.end_offset = UNKNOWN
        self.caught_up_ms = caught_up_ms
        self.last_fetch_ms = 0
        self.end_at_last_fetch = 0
        self.broker_epoch = UNKNOWN


class Leadership:
    """One epoch of leadership: made when it begins, thrown away with it."""

    __slots__ = ("_own_id", "epoch_start_offset", "followers", "isr", "proposed")

    def __init__(
        self,
        own_id: int,
        *,
        replicas: Iterable[int],
        isr: Collection[int],
        epoch_start_offset: int,
        now_ms: int,
    ) -> None:
        self._own_id = own_id
        self.epoch_start_offset = epoch_start_offset
        # Members of the set have a whole lag time to fetch for the first time; others must catch up before they count.
        self.followers = {
            replica: Follower(caught_up_ms=now_ms if replica in isr else 0)
            for replica in replicas
            if replica != own_id
        }
        self.isr = frozenset(isr)
        self.proposed: frozenset[int] | None = None
        """What the controller was asked for and has not answered yet; it may be in force already."""

    def has(self, replica_id: int) -> bool:
        return replica_id in self.followers

    def set_replicas(self, replicas: Iterable[int]) -> None:
        """Replicas come and go in a reassignment, within one epoch of leadership."""
        wanted = [replica for replica in replicas if replica != self._own_id]
        self.followers = {
            replica: self.followers.get(replica) or Follower(caught_up_ms=0) for replica in wanted
        }

    def fetched(
        self, replica_id: int, offset: int, *, end_offset: int, now_ms: int, broker_epoch: int = UNKNOWN
    ) -> bool:
        """A follower asks for what begins at an offset, while the log ends at `end_offset`. Whether it has got more since."""
        follower = self.followers[replica_id]
        if offset >= end_offset:
            follower.caught_up_ms = max(follower.caught_up_ms, now_ms)
        elif offset >= follower.end_at_last_fetch:
            follower.caught_up_ms = max(follower.caught_up_ms, follower.last_fetch_ms)
        follower.last_fetch_ms = now_ms
        follower.end_at_last_fetch = end_offset
        follower.broker_epoch = broker_epoch
        if offset == follower.end_offset:
            return False
        follower.end_offset = offset
        return True

    def high_watermark(self, *, end_offset: int) -> int:
        """What every member has, also those that may have become members: UNKNOWN while one has not fetched yet."""
        members = self.isr if self.proposed is None else self.isr | self.proposed
        lowest = end_offset
        for member in members:
            if member != self._own_id:
                follower = self.followers.get(member)
                if follower is not None and follower.end_offset < lowest:
                    lowest = follower.end_offset
        return lowest

    def low_watermark(self, *, start_offset: int) -> int:
        """Where the log begins for every member of the set: what was deleted before it cannot come back with another leader.
        UNKNOWN while one has not fetched yet.
        """
        lowest = start_offset
        for member in self.isr:
            follower = self.followers.get(member)
            if follower is not None and follower.start_offset < lowest:
                lowest = follower.start_offset
        return lowest

    def joining(self, replica_id: int, *, high_watermark: int) -> frozenset[int] | None:
        """The set with this replica, if it is to be proposed now: it has all that is committed, and has begun with what this
        leadership wrote, so that it cannot hold anything that another leader wrote instead.
        """
        if self.proposed is not None or replica_id in self.isr:
            return None
        end_offset = self.followers[replica_id].end_offset
        if end_offset < high_watermark or end_offset < self.epoch_start_offset:
            return None
        return self.isr | {replica_id}

    def staying(self, *, end_offset: int, now_ms: int, max_lag_ms: int) -> frozenset[int] | None:
        """The set without those that have not caught up for so long, if that is to be proposed now."""
        if self.proposed is not None:
            return None
        staying = {
            member
            for member in self.isr
            if member == self._own_id
            or self.followers[member].end_offset == end_offset
            or now_ms - self.followers[member].caught_up_ms <= max_lag_ms
        }
        return frozenset(staying) if len(staying) < len(self.isr) else None

    def settle(self, isr: Collection[int]) -> None:
        """The controller said what the set is."""
        self.isr = frozenset(isr)
        self.proposed = None

    def withdraw(self) -> None:
        """The controller refused, and told so."""
        self.proposed = None
