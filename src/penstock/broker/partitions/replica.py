"""A replica of a partition: its log, what this broker is for it (the leader, a follower), and who waits for it to grow.

A leader without followers moves the high watermark with each append. With followers it moves when the last member of the
in-sync set has fetched past it, which that member's next fetch says; then those who wait for a commit are answered.
"""

from collections import deque
from collections.abc import Callable

from penstock.broker.partitions.waits import FetchWait
from penstock.metadata import image
from penstock.model.errors import ApiError, ErrorCode
from penstock.replication.follower import divergence, truncation_offset
from penstock.replication.leader import Leadership
from penstock.runtime.clock import Clock
from penstock.storage.chores import Removal
from penstock.storage.log import Log
from penstock.storage.segments import Slice


class Commit:
    """Somebody waits until all before an offset is committed; told NONE then, or why that will not be known here."""

    __slots__ = ("_tell", "offset")

    def __init__(self, offset: int, tell: Callable[[ErrorCode], None]) -> None:
        self.offset = offset
        self._tell: Callable[[ErrorCode], None] | None = tell

    def cancel(self) -> None:
        self._tell = None

    @property
    def is_cancelled(self) -> bool:
        return self._tell is None

    def finish(self, error: ErrorCode) -> None:
        tell, self._tell = self._tell, None
        if tell is not None:
            tell(error)


class Replica:
    __slots__ = (
        "__weakref__",
        "_clock",
        "_commits",
        "_deletions",
        "_told_stable_offset",
        "_unreplicated_markers",
        "high_watermark",
        "index",
        "is_gone",
        "is_leader",
        "isr",
        "leader_epoch",
        "leader_id",
        "leadership",
        "log",
        "min_insync_replicas",
        "partition_epoch",
        "replica_waits",
        "replicas",
        "stable_waits",
        "topic",
        "waits",
    )

    def __init__(
        self,
        topic: str,
        index: int,
        log: Log,
        clock: Clock,
        *,
        leader_epoch: int,
        high_watermark: int | None = None,
    ) -> None:
        """Leads alone from the beginning; with a high watermark (as it was written down) it has no role yet."""
        self.topic = topic
        self.index = index
        self.log = log
        self.leader_epoch = leader_epoch
        self.partition_epoch = 0
        self.is_leader = high_watermark is None
        self.leader_id = image.NO_LEADER
        self.replicas: tuple[int, ...] = ()
        self.isr: frozenset[int] = frozenset()
        self.leadership: Leadership | None = None
        """Of a leader with followers."""
        self.min_insync_replicas = 1
        self.high_watermark = log.end_offset
        if high_watermark is not None:
            self.high_watermark = max(min(high_watermark, log.end_offset), log.start_offset)
        self.waits: set[FetchWait] = set()
        self.stable_waits: set[FetchWait] = set()  # of read_committed readers
        self.replica_waits: set[FetchWait] = set()  # of followers, who read to the end of the log
        self.is_gone = False
        self._clock = clock
        self._commits: deque[Commit] = deque()
        self._deletions: list[Commit] = []
        self._told_stable_offset: int | None = None  # of a follower: its leader's
        self._unreplicated_markers: deque[tuple[int, int]] = deque()

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def last_stable_offset(self) -> int:
        """Up to here a read_committed reader may read: to where the first open transaction begins. Without one it is the
        high watermark.
        """
        undecided = self.log.producers.first_undecided_offset
        # A marker that a new leader may not have decides nothing yet.
        floor = self._unreplicated_markers[0][1] if self._unreplicated_markers else self._told_stable_offset
        if floor is not None:
            undecided = floor if undecided is None else min(undecided, floor)
        if undecided is None:
            return self.high_watermark
        # Its first batches may have been deleted.
        return min(max(undecided, self.log.start_offset), self.high_watermark)

    # --- roles

    def lead(self, placed: image.PartitionRegistration, own_id: int) -> None:
        """Begin a leadership, or go on with it when only the replicas or the in-sync set changed."""
        was_leader = self.is_leader and placed.leader_epoch == self.leader_epoch
        log = self.log
        if not was_leader:
            if self.is_leader:
                self.wake()  # a new epoch of ours: the log stays, and whoever waits for a commit goes on waiting
            else:
                self._end_role()
            if self._told_stable_offset is not None and self.high_watermark < log.end_offset:
                self._unreplicated_markers.append((log.end_offset - 1, self._told_stable_offset))
            self._told_stable_offset = None
            # Noted before the first batch: a follower that has nothing of this epoch can be told where it begins.
            log.leader_epochs.assign(placed.leader_epoch, log.end_offset)
            self.is_leader = True
        self._take(placed)
        if len(placed.replicas) == 1 and placed.replicas[0] == own_id:
            self.leadership = None
        elif self.leadership is None or not was_leader:
            self.leadership = Leadership(
                own_id,
                replicas=placed.replicas,
                isr=placed.isr,
                epoch_start_offset=log.end_offset,
                now_ms=self._now_ms(),
            )
        else:
            self.leadership.set_replicas(placed.replicas)
            self.leadership.settle(placed.isr)
        self._commit()
        if self._deletions:
            self._tell_deletions()

    def follow(self, placed: image.PartitionRegistration) -> None:
        """Another broker leads, or nobody does."""
        if self.is_leader or placed.leader_epoch != self.leader_epoch:
            self._end_role()
        self._take(placed)

    def have_no_leader(self) -> None:
        """In the same epoch: we lead no more, and do not know of another who does."""
        if self.is_leader:
            self._end_role()
        self.leader_id = image.NO_LEADER

    def _take(self, placed: image.PartitionRegistration) -> None:
        self.leader_id = placed.leader
        self.leader_epoch = placed.leader_epoch
        self.partition_epoch = placed.partition_epoch
        self.replicas = placed.replicas
        self.isr = frozenset(placed.isr)

    def _end_role(self) -> None:
        self.is_leader = False
        self.leadership = None
        self._unreplicated_markers.clear()
        commits = [*self._commits, *self._deletions]
        self._commits.clear()
        self._deletions.clear()
        for commit in commits:
            commit.finish(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.wake()

    def settle_isr(self, isr: frozenset[int], partition_epoch: int) -> None:
        """The controller has taken a change of the in-sync set, ours or one of its own."""
        self.isr = isr
        self.partition_epoch = partition_epoch
        if self.leadership is not None:
            self.leadership.settle(isr)
            self._commit()
            if self._deletions:
                self._tell_deletions()

    def withdraw_isr(self) -> None:
        """The controller has refused the set that was proposed: its members hold the high watermark back no more."""
        if self.leadership is not None:
            self.leadership.withdraw()
            self._commit()

    def check_leader(self, current_leader_epoch: int = -1) -> None:
        """ApiError when we do not lead, or when the client knows an older or a newer leadership than ours."""
        if current_leader_epoch >= 0:
            self.check_epoch(current_leader_epoch)
        if not self.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def check_insync_replicas(self) -> None:
        """NOT_ENOUGH_REPLICAS when too few would have a record that is to be on all of the in-sync replicas."""
        leadership = self.leadership
        if leadership is not None and len(leadership.isr) < self._needed_replicas:
            raise ApiError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {sorted(leadership.isr)} is insufficient to satisfy the min.isr "
                f"requirement of {self.min_insync_replicas} for partition {self}",
            )

    @property
    def _needed_replicas(self) -> int:
        return min(self.min_insync_replicas, len(self.replicas))

    # --- commits

    @property
    def is_committed(self) -> bool:
        return self.high_watermark == self.log.end_offset

    def when_committed(self, offset: int, tell: Callable[[ErrorCode], None]) -> Commit | None:
        """Calls `tell` once all before an offset is committed: now (then None is returned), or later, unless cancelled.
        Offsets asked for must not go down within one leadership: ask for the end of the log.
        """
        if not self.is_leader:
            tell(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return None
        if self.high_watermark >= offset:
            tell(self._commit_error())
            return None
        commit = Commit(offset, tell)
        while self._commits and self._commits[0].is_cancelled:  # else they pile up while nothing is committed
            self._commits.popleft()
        self._commits.append(commit)
        return commit

    def _commit_error(self) -> ErrorCode:
        leadership = self.leadership
        if leadership is not None and len(leadership.isr) < self._needed_replicas:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    def _commit(self) -> None:
        """Move the high watermark as far as it may go, and tell those who wait for it."""
        log = self.log
        leadership = self.leadership
        end_offset = log.end_offset
        target = end_offset if leadership is None else leadership.high_watermark(end_offset=end_offset)
        before = self.high_watermark
        if target <= before:
            return
        stable_before = self.last_stable_offset if self.stable_waits else 0
        self.high_watermark = target
        markers = self._unreplicated_markers
        while markers and markers[0][0] < target:
            markers.popleft()
        commits = self._commits
        if commits and commits[0].offset <= target:
            error = self._commit_error()
            while commits and commits[0].offset <= target:
                commits.popleft().finish(error)
        if self.waits:
            size = log.segments.size_between(from_offset=before, to_offset=target)
            for wait in tuple(self.waits):
                wait.appended(size)
        if self.stable_waits:
            size = log.segments.size_between(from_offset=stable_before, to_offset=self.last_stable_offset)
            if size:
                for wait in tuple(self.stable_waits):
                    wait.appended(size)

    # --- deletions

    @property
    def low_watermark(self) -> int:
        """Where the log begins on all in-sync replicas."""
        start_offset = self.log.start_offset
        if self.leadership is None:
            return start_offset
        return self.leadership.low_watermark(start_offset=start_offset)

    def when_deleted(self, offset: int, tell: Callable[[ErrorCode], None]) -> Commit | None:
        """Calls `tell` once no in-sync replica has anything before an offset, as `when_committed` does."""
        if not self.is_leader:
            tell(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return None
        if self.low_watermark >= offset:
            tell(ErrorCode.NONE)
            return None
        deletion = Commit(offset, tell)
        self._deletions.append(deletion)
        return deletion

    def _tell_deletions(self) -> None:
        low_watermark = self.low_watermark
        told = [deletion for deletion in self._deletions if deletion.offset <= low_watermark]
        self._deletions = [
            each for each in self._deletions if each.offset > low_watermark and not each.is_cancelled
        ]
        for deletion in told:
            deletion.finish(ErrorCode.NONE)

    # --- followers

    def without_laggards(self, max_lag_ms: int) -> frozenset[int] | None:
        """The in-sync set without those who have not caught up for so long, when that is to be proposed."""
        leadership = self.leadership
        if leadership is None or len(leadership.isr) < 2:
            return None
        return leadership.staying(
            end_offset=self.log.end_offset, now_ms=self._now_ms(), max_lag_ms=max_lag_ms
        )

    def follower_fetched(
        self, replica_id: int, offset: int, *, broker_epoch: int = -1, start_offset: int = 0
    ) -> frozenset[int] | None:
        """A follower has all before an offset, as far as its log begins before it. The in-sync set with it, when it is to be
        proposed.
        """
        leadership = self.leadership
        if leadership is None or not leadership.has(replica_id):
            raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)  # it knows of a change that has not reached us
        moved = leadership.fetched(
            replica_id,
            offset,
            end_offset=self.log.end_offset,
            now_ms=self._now_ms(),
            broker_epoch=broker_epoch,
        )
        leadership.followers[replica_id].start_offset = start_offset
        if self._deletions:
            self._tell_deletions()
        if moved:
            self._commit()
        if replica_id in leadership.isr:
            return None
        return leadership.joining(replica_id, high_watermark=self.high_watermark)

    def divergence(self, *, last_fetched_epoch: int, fetch_offset: int) -> tuple[int, int] | None:
        return divergence(
            self.log.epoch_end_offset, last_fetched_epoch=last_fetched_epoch, fetch_offset=fetch_offset
        )

    def read_as_replica(self, offset: int, max_bytes: int, *, at_least_one: bool) -> Slice | None:
        """As `read`, to the end of the log."""
        if offset == self.log.end_offset:
            return None
        found = self.log.read(offset, max_bytes, at_least_one=at_least_one)
        return found if found.size_bytes else None

    def take_fetched(
        self,
        records: memoryview | None,
        *,
        high_watermark: int,
        log_start_offset: int,
        last_stable_offset: int,
    ) -> Removal | None:
        """A follower's step with its leader's answer. What is before the leader's start is removed here too."""
        log = self.log
        before = self.high_watermark
        if records is not None:
            size = len(records)
            log.append_as_follower(records)
            for wait in tuple(self.replica_waits):
                wait.appended(size)
        self.high_watermark = max(before, min(high_watermark, log.end_offset))
        self._told_stable_offset = last_stable_offset
        if self.high_watermark > before and (self.waits or self.stable_waits):
            self.wake()
        if log_start_offset > log.start_offset:
            return log.advance_start_offset(min(log_start_offset, self.high_watermark))
        return None

    def truncate(self, leader_epoch: int, leader_end_offset: int) -> int:
        """Cut what the leader does not have; the new end of the log."""
        log = self.log
        offset = truncation_offset(
            log.epoch_end_offset,
            leader_epoch=leader_epoch,
            leader_end_offset=leader_end_offset,
            high_watermark=self.high_watermark,
            end_offset=log.end_offset,
        )
        log.truncate_to(offset)
        # Also when nothing was cut: an epoch in which we wrote nothing must not be claimed again.
        log.leader_epochs.truncate_from_end(log.end_offset)
        self.high_watermark = min(self.high_watermark, log.end_offset)
        return log.end_offset

    def start_anew(self, offset: int) -> None:
        """All that we have is before the leader's log: begin where that begins."""
        self.log.truncate_fully_and_start_at(offset)
        self.high_watermark = offset

    # --- growing

    def _advance(self, size_bytes: int, stable_before: int | None = None) -> None:
        """Batches were appended; by a marker, which may make more than itself stable, with the last stable offset before."""
        if self.replica_waits:
            for wait in tuple(self.replica_waits):
                wait.appended(size_bytes)
        if self.leadership is not None:
            self._commit()
            return
        self.high_watermark = self.log.end_offset
        if self.waits:
            for wait in tuple(self.waits):
                wait.appended(size_bytes)
        if self.stable_waits:
            self._advance_stable(size_bytes, stable_before)

    def _advance_stable(self, size_bytes: int, stable_before: int | None) -> None:
        log = self.log
        if stable_before is not None:
            stable = self.last_stable_offset
            size_bytes = log.segments.size_between(from_offset=stable_before, to_offset=stable)
        elif log.producers.first_undecided_offset is not None:
            return  # what was appended is behind an open transaction, or begins one
        if size_bytes:
            for wait in tuple(self.stable_waits):
                wait.appended(size_bytes)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """A client that knows an older or a newer leadership than ours must refresh its metadata first."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def wake(self) -> None:
        """Something other than an append changed: let the waiting fetches look."""
        for wait in (*self.waits, *self.stable_waits, *self.replica_waits):
            wait.wake()

    def leave(self) -> None:
        """The partition is no longer ours: whoever waits is told so."""
        self.is_gone = True
        self._end_role()

    def _now_ms(self) -> int:
        """Not of the wall clock: a clock that is set must not throw followers out."""
        return int(self._clock.monotonic() * 1000)
