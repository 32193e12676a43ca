"""Calls of a task's methods, which may be coroutines: those run on a loop of the task's own, in its thread."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any


class Calls:
    """What a coroutine starts beside itself goes on only while a call of the task runs."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def of(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method itself, or one that waits for its result."""
        if not inspect.iscoroutinefunction(method):
            return method

        def call(*given: Any) -> Any:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
            return self._loop.run_until_complete(method(*given))

        return call

    def close(self) -> None:
        loop, self._loop = self._loop, None
        if loop is None:
            return
        try:
            left = asyncio.all_tasks(loop)
            for each in left:
                each.cancel()
            if left:
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()
