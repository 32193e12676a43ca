"""The records of a task's partitions, in the order in which they are to be processed.

A kernel task that reads one topic takes its records as they come. One that reads several takes, of those that are there, the
record with the smallest timestamp, and of equal ones that of the smallest offset. A topic of which nothing is there is waited
for while the broker has more of it, and then up to `max.task.idle.ms`: the rule of Kafka Streams.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from penstock.streams.kernel.records import InputRecord
from penstock.streams.kernel.task import Task

Place = tuple[str, int]
NO_OFFSET: Final = -1


class Input:
    """One partition that is read."""

    __slots__ = ("committed", "end", "is_at_end", "is_held", "lane", "place", "position", "queue")

    def __init__(self, place: Place, lane: Lane) -> None:
        self.place = place
        self.lane = lane
        self.position = NO_OFFSET  # of the next record to process
        self.committed = NO_OFFSET
        self.queue: deque[InputRecord] = deque()
        self.is_at_end = False  # nothing more was there when it was last looked at
        self.is_held = False  # enough is waiting
        self.end = NO_OFFSET

    def reach_end(self, offset: int) -> None:
        self.is_at_end, self.end = True, offset

    def next_offset(self) -> int:
        """Behind what has been read, processed or not."""
        return self.queue[-1].offset + 1 if self.queue else self.position

    def begin_anew(self, offset: int) -> None:
        """The topic is another one than before; what it had does not count any more."""
        self.queue.clear()
        self.position = offset

    def to_commit(self) -> int:
        """Behind what ends a transaction, too, where nothing waits: that is no record, but it has an offset."""
        if self.is_at_end and not self.queue and self.end > self.position:
            return self.end
        return self.position


class Lane:
    """A kernel task with its inputs."""

    __slots__ = ("_idle_since_s", "inputs", "is_single", "name", "process", "task")

    def __init__(self, name: str, places: Iterable[Place]) -> None:
        self.name = name
        self.inputs = [Input(place, self) for place in places]
        self.is_single = len(self.inputs) == 1
        self.task: Task | None = None
        self.process: Callable[[InputRecord], None] = _nothing
        self._idle_since_s: float | None = None

    def stream_time(self) -> int:
        return -1 if self.task is None else self.task.stream_time()

    def use(self, task: Task) -> None:
        self.task = task
        self.process = task.process

    def next(self, now_s: float, max_idle_s: float) -> Input | None:
        """Whose first record is next; None: nothing is there, or something is to be waited for. `max_idle_s` < 0: never wait."""
        best: Input | None = None
        is_short = False
        for each in self.inputs:
            if each.queue:
                if best is None or _is_before(each.queue[0], best.queue[0]):
                    best = each
            elif max_idle_s < 0:
                continue
            elif not each.is_at_end:
                return None
            else:
                is_short = True
        if best is None or not is_short or max_idle_s <= 0:
            self._idle_since_s = None
            return best
        if self._idle_since_s is None:
            self._idle_since_s = now_s
        return best if now_s - self._idle_since_s >= max_idle_s else None


def _is_before(one: InputRecord, other: InputRecord) -> bool:
    return (one.timestamp, one.offset) < (other.timestamp, other.offset)


def _nothing(record: Any) -> None:
    raise RuntimeError("no task has been made yet")
