"""What one shard has decided but must not tell yet, because its records are not on all in-sync replicas.

A shard follows its log at once. Others may see the result only when the log is committed, because a new leader may not have
uncommitted records. So answers and errands are parked with the log end offset of their time, and leave in the order of the
decisions. This is also true for answers without records: they may show something that is not committed.

An answer waits for a limited time. Then its client is told to try again. The decision stays: it may still be committed. Errands
wait as long as this broker is the leader.

`Released` says what may happen now, and the host does it, as with an `Outcome`.
"""

from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from penstock.coordination.form import Ticket
from penstock.model.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from penstock.broker.partitions.partition import Partition

MAX_UNCOMMITTED: Final = 10_000
"""Outcomes of one shard that wait; whoever asks then is told to try again."""
TOO_LATE_EVERY_SECONDS: Final = 0.1
"""Between two looks for answers that have waited for too long."""

Replies = Sequence[tuple[Ticket, object]]


class _Parked:
    __slots__ = ("deadline", "errands", "offset", "replies")

    def __init__(self, offset: int, deadline: float, replies: Replies, errands: Sequence[object]) -> None:
        self.offset = offset
        self.deadline = deadline
        self.replies = replies
        self.errands = errands


class Released:
    """What may happen now, because it is committed, or because nobody waits for that any longer."""

    __slots__ = ("errands", "is_lost", "refusals", "replies")

    def __init__(self, *, is_lost: bool = False) -> None:
        self.replies: list[tuple[Ticket, object]] = []
        self.refusals: list[tuple[Ticket, ErrorCode]] = []
        self.errands: list[object] = []
        self.is_lost = is_lost
        """This broker leads the partition no more: the shard is to be given up."""

    def refuse(self, parked: _Parked, error: ErrorCode) -> None:
        self.refusals += [(ticket, error) for ticket, _ in parked.replies]
        parked.replies = ()


class Uncommitted:
    __slots__ = (
        "_act",
        "_has_too_few_replicas",
        "_is_closed",
        "_is_looking",
        "_is_watched",
        "_loop",
        "_parked",
        "_timeout_s",
        "_timer",
        "_watched_offset",
        "partition",
    )

    def __init__(
        self,
        loop: AbstractEventLoop,
        partition: "Partition",
        timeout_s: float,
        act: Callable[[Released], None],
    ) -> None:
        self._act = act
        self._loop = loop
        self.partition = partition
        self._timeout_s = timeout_s
        self._parked: deque[_Parked] = deque()
        self._timer: TimerHandle | None = None
        self._watched_offset = -1
        self._is_watched = True
        self._is_looking = False
        self._has_too_few_replicas = False
        self._is_closed = False

    @property
    def is_clear(self) -> bool:
        """Whether an answer may leave at once: all is committed, and nobody is before it."""
        return not self._parked and self.partition.is_committed

    @property
    def is_full(self) -> bool:
        return len(self._parked) >= MAX_UNCOMMITTED

    def check_room(self, *, to_write: bool) -> None:
        """COORDINATOR_NOT_AVAILABLE when too many wait, or when too few replicas are in sync to record what may follow. To be
        asked before anything is decided, because a shard knows no way back.
        """
        if self.is_full:
            raise ApiError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, "too many requests wait for the coordinator's followers"
            )
        if to_write:
            try:
                self.partition.check_insync_replicas()
            except ApiError as refusal:
                raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, refusal.detail) from refusal

    def park(self, replies: Replies, errands: Sequence[object]) -> None:
        offset = self.partition.log.end_offset
        self._parked.append(_Parked(offset, self._loop.time() + self._timeout_s, replies, errands))
        if offset != self._watched_offset:
            self._watch(offset)
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout_s, self._on_timer)

    def give_up(self, error: ErrorCode) -> Released:
        """All who wait are refused; their errands are left to whoever loads the shard next."""
        self._is_closed = True
        released = Released()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._parked:
            released.refuse(self._parked.popleft(), error)
        return released

    # --- commits

    def _watch(self, offset: int) -> None:
        self._watched_offset = offset
        self.partition.when_committed(offset, self._told)

    def _told(self, error: ErrorCode) -> None:
        """By the partition, in the middle of its own work: what follows may append to it, so it has a step of its own."""
        if error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
            self._has_too_few_replicas = True
        elif error:
            self._is_watched = False
        if not self._is_looking and not self._is_closed:
            self._is_looking = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        self._is_looking = False
        if self._is_closed:
            return
        if not self.partition.is_leader:
            self._act(Released(is_lost=True))
            return
        self._act(self._release())
        if not self._is_watched:
            # A new epoch of the same leader: what is not committed is still in its log.
            self._is_watched = True
            for offset in dict.fromkeys(parked.offset for parked in self._parked):
                self._watch(offset)

    def _release(self) -> Released:
        released = Released()
        has_too_few, self._has_too_few_replicas = self._has_too_few_replicas, False
        parked = self._parked
        while parked and parked[0].offset <= self.partition.high_watermark:
            first = parked.popleft()
            if has_too_few:
                # As with acks=all: committed, but not as safely as the topic's owner wants it to be told of.
                released.refuse(first, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            released.replies += first.replies
            released.errands += first.errands
        return released

    # --- time

    def _on_timer(self) -> None:
        self._timer = None
        now = self._loop.time()
        released = Released()
        for parked in self._parked:
            if parked.deadline > now:
                wait_s = max(parked.deadline - now, TOO_LATE_EVERY_SECONDS)
                self._timer = self._loop.call_later(wait_s, self._on_timer)
                break
            released.refuse(parked, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._act(released)
