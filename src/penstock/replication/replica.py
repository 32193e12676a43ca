"""One replica of a partition: what this broker is for it, how far its log is committed and stable, who waits for that, and
when the log must be flushed. Pure: something happens, `Progress` says what follows, and the host makes it known.

A leader without followers moves the high watermark with each append, or with the flush that must come first. With followers
it moves when the last member of the in-sync set has fetched past it, which that member's next fetch says; then those who wait
for a commit are answered. They are answered in the order of their offsets.

Example: leader 1, in-sync set (1, 2), the log ends at 10, the high watermark is 7. Somebody waits for 10. Follower 2 fetches
from 9: Progress(committed_from=7, committed_to=9). It fetches from 10: Progress(9, 10, told=[(the one who waits, NONE)]).
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, cast

from penstock.metadata import image
from penstock.model.errors import ApiError, ErrorCode
from penstock.replication.follower import EpochEnd, truncation_offset
from penstock.replication.leader import Leadership


class OpenTransactions(Protocol):
    first_undecided_offset: int | None
    """Where the oldest open transaction begins."""


class FlushOptions(Protocol):
    flush_messages: int


class LogOffsets(Protocol):
    """The log, as far as it matters here."""

    @property
    def start_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def recovery_point(self) -> int:
        """Everything below is on the device."""
        ...

    @property
    def producers(self) -> OpenTransactions: ...
    @property
    def options(self) -> FlushOptions: ...


class Awaited:
    """Somebody waits until all before an offset is committed, or until it is deleted everywhere."""

    __slots__ = ("is_cancelled", "offset")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.is_cancelled = False


class Progress(NamedTuple):
    """What happened."""

    committed_from: int
    committed_to: int
    """The high watermark before and after."""
    told: Sequence[tuple[Awaited, ErrorCode]] = ()
    """Who waits no longer: NONE, or why it will not be known here."""
    is_new_role: bool = False
    """Whoever waits for records should look again."""


# As in `coordination.form`: the same without a Python-level __new__, as every append makes one.
_new_progress = cast(Callable[[type[Progress], tuple[int, int, tuple[()], bool]], Progress], tuple.__new__)


class Replica:
    __slots__ = (
        "_commits",
        "_deletions",
        "_told_stable_offset",
        "_unreplicated_markers",
        "high_watermark",
        "is_leader",
        "isr",
        "leader_epoch",
        "leader_id",
        "leadership",
        "log",
        "min_insync_replicas",
        "partition_epoch",
        "replicas",
    )

    def __init__(self, log: LogOffsets, *, leader_epoch: int, high_watermark: int | None = None) -> None:
        """Leads alone from the beginning; with a high watermark (as it was written down) it has no role yet."""
        self.log = log
        self.leader_epoch = leader_epoch
        self.partition_epoch = 0
        self.is_leader = high_watermark is None
        self.leader_id: int = image.NO_LEADER
        self.replicas: tuple[int, ...] = ()
        self.isr: frozenset[int] = frozenset()
        self.leadership: Leadership | None = None
        """Of a leader with followers."""
        self.min_insync_replicas = 1
        self.high_watermark = log.end_offset
        if high_watermark is not None:
            self.high_watermark = max(min(high_watermark, log.end_offset), log.start_offset)
        self._commits: deque[Awaited] = deque()
        self._deletions: list[Awaited] = []
        self._told_stable_offset: int | None = None  # of a follower: its leader's
        self._unreplicated_markers: deque[tuple[int, int]] = deque()

    # --- how far

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

    @property
    def low_watermark(self) -> int:
        """Where the log begins on all in-sync replicas."""
        start_offset = self.log.start_offset
        if self.leadership is None:
            return start_offset
        return self.leadership.low_watermark(start_offset=start_offset)

    @property
    def is_committed(self) -> bool:
        return self.high_watermark == self.log.end_offset

    @property
    def waiting(self) -> tuple[int, int]:
        """How many wait for a commit, and for a deletion."""
        return len(self._commits), len(self._deletions)

    @property
    def must_flush(self) -> bool:
        """Whether as many records as flush.messages says are not on the device. Until they are, nothing more is confirmed: a
        leader does not count its own log for the high watermark, a follower does not fetch past it.
        """
        log = self.log
        return log.end_offset - log.recovery_point >= log.options.flush_messages

    def check_leader(self, current_leader_epoch: int) -> None:
        """ApiError when we do not lead, or when who asks knows an older or a newer leadership than ours."""
        self.check_epoch(current_leader_epoch)
        if not self.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def check_epoch(self, current_leader_epoch: int) -> None:
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    # --- roles

    def leads_in(self, leader_epoch: int) -> bool:
        return self.is_leader and leader_epoch == self.leader_epoch

    def lead(self, placed: image.PartitionRegistration, own_id: int, *, now_ms: int) -> Progress:
        """Begin a leadership, or continue with it when only the replicas or the in-sync set changed."""
        goes_on = self.leads_in(placed.leader_epoch)
        told: list[tuple[Awaited, ErrorCode]] = []
        if not goes_on:
            if (
                not self.is_leader
            ):  # else a new epoch of ours: the log stays, whoever waits for a commit continues waiting
                told = self._end_role()
            if self._told_stable_offset is not None and not self.is_committed:
                self._unreplicated_markers.append((self.log.end_offset - 1, self._told_stable_offset))
            self._told_stable_offset = None
            self.is_leader = True
        self._take(placed)
        if len(placed.replicas) == 1 and placed.replicas[0] == own_id:
            self.leadership = None
        elif self.leadership is None or not goes_on:
            self.leadership = Leadership(
                own_id,
                replicas=placed.replicas,
                isr=placed.isr,
                epoch_start_offset=self.log.end_offset,
                now_ms=now_ms,
            )
        else:
            self.leadership.set_replicas(placed.replicas)
            self.leadership.settle(placed.isr)
        return self._move(told, is_new_role=not goes_on)

    def follow(self, placed: image.PartitionRegistration) -> Progress:
        """Another broker leads, or nobody does."""
        ends = self.is_leader or placed.leader_epoch != self.leader_epoch
        told = self._end_role() if ends else ()
        self._take(placed)
        return Progress(self.high_watermark, self.high_watermark, told, is_new_role=ends)

    def have_no_leader(self) -> Progress:
        """In the same epoch: we lead no more, and do not know of another who does."""
        ends = self.is_leader
        told = self._end_role() if ends else ()
        self.leader_id = image.NO_LEADER
        return Progress(self.high_watermark, self.high_watermark, told, is_new_role=ends)

    def leave(self) -> Progress:
        """The partition is no longer ours."""
        return Progress(self.high_watermark, self.high_watermark, self._end_role(), is_new_role=True)

    def _take(self, placed: image.PartitionRegistration) -> None:
        self.leader_id = placed.leader
        self.leader_epoch = placed.leader_epoch
        self.partition_epoch = placed.partition_epoch
        self.replicas = placed.replicas
        self.isr = frozenset(placed.isr)

    def _end_role(self) -> list[tuple[Awaited, ErrorCode]]:
        self.is_leader = False
        self.leadership = None
        self._unreplicated_markers.clear()
        waiting = [*self._commits, *self._deletions]
        self._commits.clear()
        self._deletions.clear()
        return [(awaited, ErrorCode.NOT_LEADER_OR_FOLLOWER) for awaited in waiting]

    # --- the in-sync set

    def settle_isr(self, isr: frozenset[int], partition_epoch: int) -> Progress:
        """The controller has taken a change of the in-sync set, ours or one of its own."""
        self.isr = isr
        self.partition_epoch = partition_epoch
        if self.leadership is not None:
            self.leadership.settle(isr)
        return self._move()

    def withdraw_isr(self) -> Progress:
        """The controller has refused the set that was proposed: its members hold the high watermark back no more."""
        if self.leadership is not None:
            self.leadership.withdraw()
        return self._move()

    @property
    def has_too_few_in_sync(self) -> bool:
        """Whether too few would have a record that is to be on all of the in-sync replicas."""
        leadership = self.leadership
        return leadership is not None and len(leadership.isr) < min(
            self.min_insync_replicas, len(self.replicas)
        )

    def without_laggards(self, *, now_ms: int, max_lag_ms: int) -> frozenset[int] | None:
        """The in-sync set without those who have not caught up for so long, when that is to be proposed."""
        leadership = self.leadership
        if leadership is None or len(leadership.isr) < 2:
            return None
        return leadership.staying(end_offset=self.log.end_offset, now_ms=now_ms, max_lag_ms=max_lag_ms)

    # --- a leader's steps

    def appended(self, *, marker: tuple[int, int] | None = None) -> Progress:
        """The log has grown. With a marker: its offset, and the last stable offset before it."""
        log = self.log
        if self.leadership is None and log.end_offset - log.recovery_point < log.options.flush_messages:
            if not self._commits and not self._unreplicated_markers:
                before = self.high_watermark
                self.high_watermark = end_offset = log.end_offset
                return _new_progress(Progress, (before, end_offset, (), False))
            return self._move()
        if marker is not None:
            self._unreplicated_markers.append(marker)
        return self._move()

    def flushed(self) -> Progress:
        """More of the log is on the device."""
        return self._move()

    def flush_failed(self) -> Progress:
        """Whoever waits for a commit is told so: it may never come."""
        told = [(awaited, ErrorCode.KAFKA_STORAGE_ERROR) for awaited in self._commits]
        self._commits.clear()
        return Progress(self.high_watermark, self.high_watermark, told)

    def follower_fetched(
        self, replica_id: int, offset: int, *, start_offset: int, broker_epoch: int, now_ms: int
    ) -> tuple[Progress, frozenset[int] | None]:
        """A follower has all before an offset, as far as its log begins before it. Also the in-sync set with it, when that is
        to be proposed.
        """
        leadership = self.leadership
        if leadership is None or not leadership.has(replica_id):
            raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)  # it knows of a change that has not reached us
        has_moved = leadership.fetched(
            replica_id, offset, end_offset=self.log.end_offset, now_ms=now_ms, broker_epoch=broker_epoch
        )
        leadership.followers[replica_id].start_offset = start_offset
        if has_moved or self._deletions:
            progress = self._move()
        else:
            progress = Progress(self.high_watermark, self.high_watermark)
        if replica_id in leadership.isr:
            return progress, None
        return progress, leadership.joining(replica_id, high_watermark=self.high_watermark)

    def _move(
        self, told: list[tuple[Awaited, ErrorCode]] | None = None, *, is_new_role: bool = False
    ) -> Progress:
        """Move a leader's high watermark as far as it may go, and say who waits no longer."""
        told = told or []
        before = self.high_watermark
        if self.is_leader:
            end_offset = self.log.recovery_point if self.must_flush else self.log.end_offset
            leadership = self.leadership
            target = end_offset if leadership is None else leadership.high_watermark(end_offset=end_offset)
            if target > before:
                self.high_watermark = target
                self._told_of_commits(told)
            if self._deletions:
                self._told_of_deletions(told)
        return Progress(before, self.high_watermark, told, is_new_role)

    def _told_of_commits(self, told: list[tuple[Awaited, ErrorCode]]) -> None:
        high_watermark = self.high_watermark
        markers, commits = self._unreplicated_markers, self._commits
        while markers and markers[0][0] < high_watermark:
            markers.popleft()
        if commits and commits[0].offset <= high_watermark:
            error = self._commit_error
            while commits and commits[0].offset <= high_watermark:
                told.append((commits.popleft(), error))

    @property
    def _commit_error(self) -> ErrorCode:
        if self.has_too_few_in_sync:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    # --- who waits

    def await_commit(self, awaited: Awaited) -> ErrorCode | None:
        """The answer, or None: then a later `Progress` tells it. Offsets must not go down within one leadership: ask for the
        end of the log.
        """
        if not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.high_watermark >= awaited.offset:
            return self._commit_error
        while self._commits and self._commits[0].is_cancelled:  # else they pile up while nothing is committed
            self._commits.popleft()
        self._commits.append(awaited)
        return None

    def await_deletion(self, awaited: Awaited) -> ErrorCode | None:
        """As `await_commit`, until no in-sync replica has anything before the offset."""
        if not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.low_watermark >= awaited.offset:
            return ErrorCode.NONE
        self._deletions = [each for each in self._deletions if not each.is_cancelled]
        self._deletions.append(awaited)
        return None

    def _told_of_deletions(self, told: list[tuple[Awaited, ErrorCode]]) -> None:
        low_watermark = self.low_watermark
        for deletion in self._deletions:
            if deletion.offset <= low_watermark:
                told.append((deletion, ErrorCode.NONE))
        self._deletions = [each for each in self._deletions if each.offset > low_watermark]

    # --- a follower's steps

    def told_by_leader(self, *, high_watermark: int, last_stable_offset: int) -> Progress:
        """With its records, which are in the log by now."""
        before = self.high_watermark
        self.high_watermark = max(before, min(high_watermark, self.log.end_offset))
        self._told_stable_offset = last_stable_offset
        return Progress(before, self.high_watermark)

    def truncation_offset(self, epoch_end: EpochEnd, *, leader_epoch: int, leader_end_offset: int) -> int:
        """Where to cut the log, as the leader has nothing more of an epoch than to an offset."""
        return truncation_offset(
            epoch_end,
            leader_epoch=leader_epoch,
            leader_end_offset=leader_end_offset,
            high_watermark=self.high_watermark,
            end_offset=self.log.end_offset,
        )

    def truncated(self) -> None:
        """The log was cut, or begins again."""
        log = self.log
        self.high_watermark = max(min(self.high_watermark, log.end_offset), log.start_offset)
