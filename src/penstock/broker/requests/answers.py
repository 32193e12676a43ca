"""The answers that a broker is still working on."""

from asyncio import Task, get_running_loop, wait
from collections.abc import Coroutine
from typing import Any


class Answers:
    def __init__(self) -> None:
        self._tasks: set[Task[Any]] = set()  # the loop itself holds its tasks only weakly

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        self.await_end(get_running_loop().create_task(work))

    def await_end(self, task: Task[Any]) -> None:
        """Of a task that an answer waits for."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        """Wait until all are given; called with a deadline when the broker stops."""
        while self._tasks:
            # Awaiting a task that is done does not give way, so it would stay in the set for ever; `wait` always does.
            await wait(tuple(self._tasks))
