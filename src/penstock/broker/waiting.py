"""Parked fetches: a long poll costs nothing while it waits.

A fetch that found too little registers with its partitions and is woken once: by enough appended bytes, by a
partition that changed under it, or by its deadline, whichever comes first. Then it reads again and answers.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable
from typing import Protocol


class Watched(Protocol):
    """A partition, for who waits on it."""

    waits: "set[FetchWait]"
    stable_waits: "set[FetchWait]"
    """Of those who only read what is decided; they are told of bytes when those are."""


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
    ) -> None:
        self._loop = loop
        self._partitions = tuple(partitions)
        self._finish = finish
        self._missing_bytes = missing_bytes
        self._is_over = False
        for partition in self._partitions:
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
