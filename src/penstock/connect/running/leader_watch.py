"""Whether the leader's process is there: a follower holds a connection to its REST API.

The group itself learns of a death only at the end of the session, which takes seconds. A connection that breaks, and a port at
which nobody listens any more, say it at once. That a leader is slow, or cannot be reached, says nothing here.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Final

from penstock.client.group_identity import Identity

CONNECT_S: Final = 5.0
LOOK_S: Final = 0.5
REFUSED_TIMES: Final = 2
AGAIN_S: Final = 0.1
PAUSE_S: Final = 10.0
"""After a leader was found dead, before another one may be: two workers that do not reach one another must not take turns."""


class LeaderWatch:
    def __init__(self, leader: Callable[[], Identity | None], died: Callable[[Identity], None]) -> None:
        """`leader`: whom to watch; None: nobody."""
        self._leader, self._died = leader, died
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-leader-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        refused = 0
        while not self._stopped.is_set():
            leader = self._leader()
            if leader is None:
                refused = 0
                self._stopped.wait(LOOK_S)
                continue
            try:
                self._hold(leader)
                refused = 0
                self._stopped.wait(AGAIN_S)
            except ConnectionRefusedError:
                refused += 1
                if refused < REFUSED_TIMES:
                    self._stopped.wait(AGAIN_S)
                    continue
                refused = 0
                if leader.is_same(self._leader()):
                    self._died(leader)
                self._stopped.wait(PAUSE_S)
            except OSError:
                self._stopped.wait(LOOK_S)

    def _hold(self, leader: Identity) -> None:
        """Until the connection ends, or somebody else leads. The leader's server ends those that are idle."""
        with socket.create_connection((leader.host, leader.port), timeout=CONNECT_S) as connection:
            connection.settimeout(LOOK_S)
            began_s = time.monotonic()
            while not self._stopped.is_set() and leader.is_same(self._leader()):
                try:
                    if not connection.recv(1):
                        break
                except TimeoutError:
                    continue
            if time.monotonic() - began_s < AGAIN_S:
                self._stopped.wait(LOOK_S)  # a server that has no room for it
