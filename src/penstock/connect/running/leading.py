"""Which worker of a group leads, and what it does then: it takes the right to write, and keeps the connectors.

Membership of the group is in a thread of its own (`client.group_leadership`), and must never wait: what takes time is done
here, in another one, in the order in which it was told.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import Final

from penstock.client.clients import Connection
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.client.group_identity import Identity
from penstock.client.group_leadership import GroupOptions, Leadership
from penstock.connect.errors import ConnectError
from penstock.connect.running.crew import Crew
from penstock.connect.running.leader_watch import LeaderWatch
from penstock.connect.topics.book import Book

log = logging.getLogger("penstock.connect")

STOP_S: Final = 5.0
AGAIN_S: Final = 1.0


class Leading:
    """`leads` becomes true when all is ready to be written."""

    def __init__(
        self,
        book: Book,
        crew: Crew,
        *,
        me: Identity,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.me = me
        self.leader: Identity | None = None
        self.leads = False
        self._book, self._crew = book, crew
        self._on_change = on_change
        self._leadership: Leadership | None = None
        self._wanted: queue.Queue[bool | None] = queue.Queue()
        self._is_wanted = False
        self._stopped = threading.Event()
        self._watch = LeaderWatch(lambda: None if self._is_wanted else self.leader, self._leader_died)
        self._thread = threading.Thread(target=self._run, name="penstock-connect-leading", daemon=True)

    def start(self, connection: Connection, group: GroupOptions) -> None:
        self._thread.start()
        self._leadership = Leadership(connection, self.me, group, self._told)
        self._leadership.start()
        self._watch.start()

    def start_alone(self) -> None:
        """A standalone worker leads itself."""
        self._thread.start()
        self._told(self.me, True)

    @property
    def generation(self) -> int:
        return max(0, self._leadership.generation) if self._leadership is not None else 0

    def lost(self) -> None:
        """A write was refused since another one leads. If the group says otherwise, it is taken back."""
        if self.leads:
            self._wanted.put(False)
            if self._is_wanted:
                self._wanted.put(True)

    def stop(self) -> None:
        """Another one may lead when it returns."""
        was_leading = self.leads
        self._stopped.set()
        self._watch.stop()
        self._is_wanted = False
        self._wanted.put(None)
        self._thread.join()
        if was_leading:
            log.info("This worker leads no more")
        if self._leadership is not None:
            self._leadership.stop(STOP_S)

    def _leader_died(self, leader: Identity) -> None:
        log.warning("The process of the leader %s is gone", leader.url)
        if self._leadership is not None:
            try:
                self._leadership.remove_leader()
            except (Unreachable, Refused, UserError, OSError) as error:
                log.warning("The group waits for the end of its session: %s", error)

    def _told(self, leader: Identity | None, is_me: bool) -> None:
        self.leader = leader
        self._is_wanted = is_me
        self._wanted.put(is_me)
        if leader is not None and not is_me:
            self._crew.stand_by()
        self._on_change()

    def _run(self) -> None:
        while True:
            wanted = self._wanted.get()
            if wanted is None:
                self._end(tells=True)
                return
            if wanted and not self.leads:
                self._begin()
            elif not wanted and self.leads:
                self._end(tells=False)

    def _begin(self) -> None:
        while self._is_wanted:
            try:
                self._book.claim()
                self._crew.begin()
            except (ConnectError, Unreachable, Refused, UserError, OSError) as error:
                log.warning("Leading has not begun, and is tried again: %s", error)
            except Exception:
                log.exception("A bug at the beginning of leading")
            else:
                self.leads = True
                log.info("This worker leads")
                self._on_change()
                return
            self._stopped.wait(AGAIN_S)

    def _end(self, *, tells: bool) -> None:
        had = self.leads
        self.leads = False
        self._on_change()
        if had:
            self._crew.end(tells=tells)
            self._book.yield_claim()
