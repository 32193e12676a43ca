"""The clients of one `Cluster`, lent to one call at a time, so that threads can share the cluster.

A client has connections, and a connection carries one question at a time. So a call takes a client that nobody uses, or opens
one, and gives it back when it has its answer. There are never more clients than calls that run side by side.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from penstock.client.clients import Connection
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import Unreachable

T = TypeVar("T")

MAX_IDLE = 8
"""More than so many are closed when they are given back."""


class ClusterClients:
    """Safe to share between threads."""

    def __init__(self, connection: Connection, *, timeout_s: float) -> None:
        self.connection = connection
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._idle: list[ClusterClient] = []
        self._is_closed = False

    def call(self, ask: Callable[[ClusterClient], T]) -> T:
        """What `ask` returns, for questions. A client whose connections were lost while it was idle is replaced, and `ask` is
        called once more."""
        client = self._take()
        if client is not None:
            try:
                return self._lend(client, ask)
            except Unreachable:
                pass
        return self._lend(ClusterClient(self.connection, timeout_s=self._timeout_s), ask)

    def change(self, ask: Callable[[ClusterClient], T]) -> T:
        """What `ask` returns, for changes: with new connections, and never a second time. Whether a change was made whose answer
        did not come, nobody knows; made again it may hit what came after it."""
        with self._lock:
            if self._is_closed:
                raise RuntimeError("this Cluster is closed")
        return self._lend(ClusterClient(self.connection, timeout_s=self._timeout_s), ask)

    def close(self) -> None:
        """Calls that are under way end first; each closes its own client."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for client in idle:
            client.close()

    def _take(self) -> ClusterClient | None:
        with self._lock:
            if self._is_closed:
                raise RuntimeError("this Cluster is closed")
            return self._idle.pop() if self._idle else None

    def _lend(self, client: ClusterClient, ask: Callable[[ClusterClient], T]) -> T:
        is_usable = False
        try:
            answer = ask(client)
            is_usable = True
            return answer
        except Unreachable:
            raise
        except Exception:
            is_usable = True  # it was answered, only not as was hoped for
            raise
        finally:
            # An interrupt may leave half an answer on a connection: such a client is not lent again.
            if not (is_usable and self._give_back(client)):
                client.close()

    def _give_back(self, client: ClusterClient) -> bool:
        with self._lock:
            if self._is_closed or len(self._idle) >= MAX_IDLE:
                return False
            self._idle.append(client)
            return True
