"""Parked requests: a long poll costs nothing while it waits, nor does a producer whose followers are still fetching.

A fetch that found too little registers with its partitions and is woken once: by enough appended bytes, by a
partition that changed under it, or by its deadline, whichever comes first. Then it reads again and answers.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, Protocol, TypeVar

from penstock.model.errors import ErrorCode

Place = TypeVar("Place")


class Watched(Protocol):
    """A partition, for who waits on it."""

    waits: "set[FetchWait]"
    stable_waits: "set[FetchWait]"
    """Of those who only read what is decided; they are told of bytes when those are."""
    replica_waits: "set[FetchWait]"
    """Of followers: they are told of bytes when those are appended, the others when they are committed."""


class Cancellable(Protocol):
    def cancel(self) -> None: ...


class Committable(Protocol):
    """A partition, for who waits for its commits."""

    def when_committed(self, offset: int, tell: Callable[[ErrorCode], None]) -> Cancellable | None: ...


class FetchWait:
    __slots__ = ("_finish", "_is_over", "_loop", "_missing_bytes", "_partitions", "_timer")

    def __init__(
        self,
        loop: AbstractEventLoop,
        partitions: Iterable[Watched],
        finish: Callable[[], None],
        *,
        missing_bytes: int,
        max_wait_ms: int,
        only_stable: bool = False,
        as_replica: bool = False,
    ) -> None:
        self._loop = loop
        self._partitions = tuple(partitions)
        self._finish = finish
        self._missing_bytes = missing_bytes
        self._is_over = False
        for partition in self._partitions:
            if as_replica:
                partition.replica_waits.add(self)
            else:
                (partition.stable_waits if only_stable else partition.waits).add(self)
        self._timer = loop.call_later(max_wait_ms / 1000, self.wake)

    def appended(self, size_bytes: int) -> None:
        self._missing_bytes -= size_bytes
        if self._missing_bytes <= 0:
            self.wake()

    def wake(self) -> None:
        if self._is_over:
            return
        self.cancel()
        # Not at once: the producer whose append woke us gets its answer first, and the other partitions of its
        # request are written before we read.
        self._loop.call_soon(self._finish)

    def cancel(self) -> None:
        """Wait no longer, and call nobody."""
        self._is_over = True
        self._timer.cancel()
        for partition in self._partitions:
            partition.waits.discard(self)
            partition.stable_waits.discard(self)
            partition.replica_waits.discard(self)


class CommitWait(Generic[Place]):
    """Waits until the in-sync replicas have what one request appended: `finish` is called once, with the error of each place
    (NONE where all is well), REQUEST_TIMED_OUT where that took too long.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        wanted: Iterable[tuple[Place, Committable, int]],
        finish: Callable[[dict[Place, ErrorCode]], None],
        *,
        timeout_ms: int,
    ) -> None:
        self._finish: Callable[[dict[Place, ErrorCode]], None] | None = finish
        self._errors: dict[Place, ErrorCode] = {}
        self._commits: list[Cancellable] = []
        places = list(wanted)
        self._left = {place for place, _, _ in places}
        self._timer = loop.call_later(max(timeout_ms, 0) / 1000, self._too_late)
        for place, partition, offset in places:
            commit = partition.when_committed(offset, partial(self._told, place))
            if commit is not None:
                self._commits.append(commit)

    def _told(self, place: Place, error: ErrorCode) -> None:
        self._errors[place] = error
        self._left.discard(place)
        if not self._left and self._finish is not None:
            self._end()

    def _too_late(self) -> None:
        for place in self._left:
            self._errors[place] = ErrorCode.REQUEST_TIMED_OUT
        self._end()

    def _end(self) -> None:
        finish = self._finish
        self.cancel()
        if finish is not None:
            finish(self._errors)

    def cancel(self) -> None:
        """Wait no longer, and call nobody."""
        self._finish = None
        self._timer.cancel()
        for commit in self._commits:
            commit.cancel()
        self._commits.clear()
