"""Batches questions to other brokers: one request at a time to each broker, and questions that come meanwhile go with the next
one. So a busy broker gets fewer and larger requests, and an idle one is asked at once.
"""

import logging
from asyncio import AbstractEventLoop, CancelledError, Task
from collections import deque
from collections.abc import Callable, Coroutine, Hashable, Iterable
from typing import Any, Final, Generic, Protocol, TypeVar

log = logging.getLogger("penstock.broker")

MAX_QUEUED: Final = 10_000
"""Items that wait for one broker; more fail at once."""
MAX_PARTITIONS_IN_REQUEST: Final = 10_000
"""With the longest names of topics about 3 MB; a broker takes up to 8."""


class Question(Protocol):
    @property
    def name(self) -> Hashable:
        """What its answer is known by; a request has no two of one name."""

    @property
    def partition_count(self) -> int:
        """How many partitions it names."""

    def fail(self) -> None:
        """The broker cannot be asked now. Harmless when it has been answered."""


Item = TypeVar("Item", bound=Question)


class PeerBatches(Generic[Item]):
    def __init__(
        self, loop: AbstractEventLoop, send: Callable[[int, list[Item]], Coroutine[Any, Any, None]]
    ) -> None:
        """`send` asks a broker and tells each item its answer; OSError when the broker is not there."""
        self._loop = loop
        self._send = send
        self._queues: dict[int, deque[Item]] = {}
        self._tasks: dict[int, Task[None]] = {}
        self._is_closed = False

    def put(self, broker_id: int, item: Item) -> None:
        queue = self._queues.setdefault(broker_id, deque())
        if self._is_closed or len(queue) >= MAX_QUEUED:
            item.fail()
            return
        queue.append(item)
        if broker_id not in self._tasks:
            self._tasks[broker_id] = self._loop.create_task(self._run(broker_id, queue))

    async def _run(self, broker_id: int, queue: deque[Item]) -> None:
        try:
            while queue:
                batch = _take(queue)
                try:
                    await self._send(broker_id, batch)
                except OSError as error:
                    log.debug("cannot ask broker %s: %s", broker_id, error)
                    # Those who wait would fail likewise, each after another timeout.
                    batch += queue
                    queue.clear()
                except Exception:
                    log.exception("a request to broker %s failed", broker_id)
                _fail(batch)
        except CancelledError:
            _fail(batch)
            raise
        finally:
            self._tasks.pop(broker_id, None)
            self._queues.pop(broker_id, None)

    def close(self) -> None:
        """Ask nobody any more; whoever waits fails."""
        self._is_closed = True
        for task in tuple(self._tasks.values()):
            task.cancel()
        for queue in tuple(self._queues.values()):
            _fail(queue)
            queue.clear()


def _take(queue: deque[Item]) -> list[Item]:
    batch: dict[Hashable, Item] = {}
    later: list[Item] = []
    partition_count = 0
    while queue and (not batch or partition_count + queue[0].partition_count <= MAX_PARTITIONS_IN_REQUEST):
        item = queue.popleft()
        if item.name in batch:
            later.append(item)
        else:
            batch[item.name] = item
            partition_count += item.partition_count
    queue.extendleft(reversed(later))
    return list(batch.values())


def _fail(items: Iterable[Question]) -> None:
    for item in items:
        item.fail()
