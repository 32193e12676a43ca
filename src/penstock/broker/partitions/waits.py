"""Parked requests: long polls, and producers that wait for followers. They cost nothing while they wait.

A fetch that found too little registers with its partitions and is woken once: by enough appended bytes, by a
partition that changed under it, or by its deadline, whichever comes first. Then it reads again and answers.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, Protocol, TypeVar

from penstock.broker.partitions.cold_reads import size_between
from penstock.model.errors import ErrorCode
from penstock.replication.replica import Awaited
from penstock.storage.log import Log

Key = TypeVar("Key")
"""What a caller knows each of its appends by."""
Tell = Callable[[ErrorCode], None]


class Readers:
    """Who waits for a partition to grow. Each is told of bytes when it may read them."""

    __slots__ = ("followers", "of_committed", "of_stable")

    def __init__(self) -> None:
        # In the order in which they came.
        self.of_committed: dict[FetchWait, None] = {}
        self.of_stable: dict[FetchWait, None] = {}  # read_committed
        self.followers: dict[FetchWait, None] = {}  # they read to the end of the log

    @property
    def count(self) -> int:
        return len(self.of_committed) + len(self.of_stable) + len(self.followers)

    def appended(self, size_bytes: int) -> None:
        for wait in tuple(self.followers):
            wait.appended(size_bytes)

    def committed(self, log: Log, from_offset: int, to_offset: int) -> None:
        if self.of_committed:
            self.committed_bytes(size_between(log, from_offset, to_offset))

    def committed_bytes(self, size_bytes: int) -> None:
        for wait in tuple(self.of_committed):
            wait.appended(size_bytes)

    def decided(self, log: Log, from_offset: int, to_offset: int) -> None:
        """The last stable offset has moved, or not."""
        if self.of_stable and to_offset > from_offset:
            size_bytes = size_between(log, from_offset, to_offset)
            for wait in tuple(self.of_stable):
                wait.appended(size_bytes)

    def wake(self) -> None:
        for wait in (*self.of_committed, *self.of_stable, *self.followers):
            wait.wake()

    def discard(self, wait: "FetchWait") -> None:
        self.of_committed.pop(wait, None)
        self.of_stable.pop(wait, None)
        self.followers.pop(wait, None)


class Watched(Protocol):
    """A partition, for who waits on it."""

    @property
    def readers(self) -> Readers: ...


class Cancellable(Protocol):
    def cancel(self) -> None: ...


class Committable(Protocol):
    """A partition, for who waits for its commits."""

    def when_committed(self, offset: int, tell: Tell) -> Cancellable | None: ...


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
            readers = partition.readers
            if as_replica:
                readers.followers[self] = None
            else:
                (readers.of_stable if only_stable else readers.of_committed)[self] = None
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
            partition.readers.discard(self)


class Commit(Awaited):
    """Told NONE when what it waits for has come, or why that will not be known here."""

    __slots__ = ("_tell",)

    def __init__(self, offset: int, tell: Tell) -> None:
        super().__init__(offset)
        self._tell = tell

    def begin(self, wait: Callable[[Awaited], ErrorCode | None]) -> "Commit | None":
        """None when the answer is known at once; then it has been told."""
        answer = wait(self)
        if answer is None:
            return self
        self.finish(answer)
        return None

    def cancel(self) -> None:
        self.is_cancelled = True

    def finish(self, error: ErrorCode) -> None:
        if not self.is_cancelled:
            self.is_cancelled = True
            self._tell(error)


class CommitWait(Generic[Key]):
    """Waits until the in-sync replicas have what one request appended: `finish` is called once, with the error of each key
    (NONE if there was no error), REQUEST_TIMED_OUT where that took too long.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        wanted: Iterable[tuple[Key, Committable, int]],
        finish: Callable[[dict[Key, ErrorCode]], None],
        *,
        timeout_ms: int,
    ) -> None:
        self._finish: Callable[[dict[Key, ErrorCode]], None] | None = finish
        self._errors: dict[Key, ErrorCode] = {}
        self._commits: list[Cancellable] = []
        keyed = list(wanted)
        self._left = {key for key, _, _ in keyed}
        self._timer = loop.call_later(max(timeout_ms, 0) / 1000, self._too_late)
        for key, partition, offset in keyed:
            commit = partition.when_committed(offset, partial(self._told, key))
            if commit is not None:
                self._commits.append(commit)

    def _told(self, key: Key, error: ErrorCode) -> None:
        self._errors[key] = error
        self._left.discard(key)
        if not self._left and self._finish is not None:
            self._end()

    def _too_late(self) -> None:
        for key in self._left:
            self._errors[key] = ErrorCode.REQUEST_TIMED_OUT
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
