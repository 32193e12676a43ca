"""A call with a deadline, for the one call of the client that does not keep its own.

librdkafka's send_offsets_to_transaction may wait for ever when the group's coordinator went away at the wrong moment
(librdkafka issues 5456 and 5511, open as of 2.16). A thread that hangs in it cannot be stopped, only left behind.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

LEFT_BEHIND_MAX = 5


class StillRunning(Exception):
    """The call has not come back; `thread` is still in it."""

    def __init__(self, thread: threading.Thread) -> None:
        super().__init__("the client does not come back from a call")
        self.thread = thread


def call_within(step: Callable[[], object], timeout_s: float) -> None:
    """Makes the call on a thread of its own; raises what it raises, or StillRunning."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            step()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="penstock-consumer-call", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        raise StillRunning(thread)
    if raised:
        raise raised[0]


class LeftBehind:
    """Threads that hang in a call. Each holds a client, so there may be few at a time."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def add(self, thread: threading.Thread) -> bool:
        """False when they are too many; those that came back do not count."""
        self._threads = [each for each in (*self._threads, thread) if each.is_alive()]
        return len(self._threads) <= LEFT_BEHIND_MAX
