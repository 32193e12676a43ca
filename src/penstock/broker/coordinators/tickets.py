"""Answers of a shard that are not ready in the same step: a future for each ticket."""

from asyncio import AbstractEventLoop, Future
from typing import Any

from penstock.coordination.form import Ticket
from penstock.model.errors import ApiError, ErrorCode


class Tickets:
    __slots__ = ("_last", "_loop", "_waiting")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._last = 0
        self._waiting: dict[Ticket, Future[Any]] = {}

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def new(self) -> Ticket:
        self._last += 1
        return Ticket(self._last)

    async def wait(self, ticket: Ticket, future: Future[Any]) -> Any:
        try:
            return await future
        finally:
            self._waiting.pop(ticket, None)

    def expect(self, ticket: Ticket) -> Future[Any]:
        """From now on its answer is kept for `wait`."""
        future = self._waiting[ticket] = self._loop.create_future()
        return future

    def resolve(self, ticket: Ticket, response: object) -> None:
        future = self._waiting.get(ticket)
        if future is not None and not future.done():
            future.set_result(response)

    def refuse(self, ticket: Ticket, error: ErrorCode) -> None:
        future = self._waiting.get(ticket)
        if future is not None and not future.done():
            future.set_exception(ApiError(error))
