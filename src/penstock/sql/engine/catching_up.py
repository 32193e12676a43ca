"""Coroutines wait here until a view has what is committed now. One thread of the view asks for all that came meanwhile.

So a lookup on the event loop needs no thread of its own: a hop there and back for each took more time than the lookup.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from penstock.client.errors import UserError

Waiter = asyncio.Future[None]


class Closed(UserError):
    """The view is not followed any more."""


class CatchingUp:
    """`catch_up` blocks until the view has what is committed when it is called."""

    def __init__(self, name: str, catch_up: Callable[[], None]) -> None:
        self._name = name
        self._catch_up = catch_up
        self._changed = threading.Condition()
        self._waiters: list[Waiter] = []
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def caught_up(self) -> Waiter:
        """On the loop's thread. What `catch_up` raises comes out of it."""
        waiter = asyncio.get_running_loop().create_future()
        with self._changed:
            if self._is_closed:
                waiter.set_exception(Closed(f"{self._name} is closed"))
                return waiter
            self._waiters.append(waiter)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify()
        return waiter

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiters or self._is_closed)
                waiters, self._waiters = self._waiters, []
                if not waiters:
                    return
            failure: Exception | None = None
            try:
                self._catch_up()
            except Exception as error:
                failure = error
            try:
                waiters[0].get_loop().call_soon_threadsafe(_tell, waiters, failure)
            except RuntimeError:
                return  # the loop has ended, and those who waited with it


def _tell(waiters: list[Waiter], failure: Exception | None) -> None:
    for each in waiters:
        if each.done():
            continue  # its client has left
        if failure is None:
            each.set_result(None)
        else:
            each.set_exception(failure)
