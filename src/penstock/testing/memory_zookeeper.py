"""The side of ZooKeeper in memory that the brokers do not see: the tree, the sessions that live, the links.

Between a session and the tree runs a link that keeps order in both directions: a change arrives, is made, and its
events and its answer travel back, each after `delay_s()`. A cut link loses what is on its way: a change that
never arrives, or an answer to one that was made.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from penstock.metadata.tree import OpResult, SessionLost, TreeEvent, TreeOp, is_at_or_below
from penstock.testing.memory_tree import MemoryTree

DEFAULT_SESSION_TIMEOUT_S = 18.0
SILENCE_SHARE = 2 / 3  # of the session timeout, after which a client gives a silent server up
HEARTBEAT_SHARE = 1 / 3


class Client(Protocol):
    """What a session is to the tree: `memory_store.MemorySession`."""

    @property
    def session_id(self) -> int: ...

    @property
    def has_ended(self) -> bool: ...

    def receive(self, call: Callable[[], None]) -> None:
        """Make the call on the client's loop."""

    def on_connected(self, link: "Link") -> None: ...

    def on_suspended(self, link: "Link") -> None: ...

    def on_ended(self) -> None: ...

    def on_event(self, event: TreeEvent) -> None: ...


class MemoryZooKeeper:
    """The tree and who is connected to it. `delay_s` is asked for every message; None: at once, in order."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        session_timeout_s: float = DEFAULT_SESSION_TIMEOUT_S,
        delay_s: Callable[[], float] | None = None,
    ) -> None:
        self.loop = loop
        self.session_timeout_s = session_timeout_s
        self.delay_s = delay_s
        self.is_up = True
        self.tree = MemoryTree()
        self._last_session_id = 0
        self._owners: dict[int, Client] = {}  # the sessions that live, by id
        self._expiries: dict[int, asyncio.TimerHandle] = {}
        self._cut_off: set[Client] = set()
        self._clients: dict[Client, Link | None] = {}  # in the order of their coming; None: no link

    # Controls.

    def disconnect(self, session: Client, *, silently: bool = False) -> None:
        """Nothing passes between `session` and the tree any more, and its session expires in time.

        Silently: as a network that drops packets; the client notices after a while. Otherwise it notices at once, as
        when the peer's kernel closes the connection."""
        self._cut_off.add(session)
        self._cut(session, silently=silently)

    def connect(self, session: Client) -> None:
        """Undoes `disconnect`: the client finds the tree, and its session if that still lives."""
        self._cut_off.discard(session)
        self._attach_soon(session)

    def expire(self, session: Client) -> None:
        """The session ends now; its client hears of it when it is connected."""
        link = self._clients.get(session)
        self._end(link.session_id if link is not None else session.session_id)
        if link is not None:
            link.to_client(session.on_ended)

    def stop(self) -> None:
        """No server answers anybody. Sessions do not expire while nobody counts."""
        self.is_up = False
        for session in tuple(self._clients):
            self._cut(session, silently=False)
        for timer in self._expiries.values():
            timer.cancel()
        self._expiries.clear()

    def start(self) -> None:
        """Back, with the tree as it was; every session has its whole timeout to come back."""
        self.is_up = True
        for session_id in self._owners:
            self._expire_in(session_id, self.session_timeout_s)
        for session in tuple(self._clients):
            self._attach_soon(session)

    # Looks.

    def is_connected(self, session: Client) -> bool:
        return session not in self._cut_off and self._clients.get(session) is not None

    def heard_at(self, session: Client) -> float | None:
        """When the last request of a connected client arrived."""
        link = self._clients.get(session)
        return None if link is None else link.heard_at

    def last_word_at(self, session: Client) -> float | None:
        """The same, or when it last sent one of the heartbeats that it sends every third of its timeout."""
        link = self._clients.get(session)
        return None if link is None else self.loop.time() - self._silent_s(link)

    # For sessions and links.

    def later(self, call: Callable[[], None]) -> None:
        delay_s = self.delay_s() if self.delay_s is not None else 0.0
        if delay_s > 0:
            self.loop.call_later(delay_s, call)
        else:
            self.loop.call_soon(call)

    def enter(self, session: Client) -> None:
        self._cut(session, silently=True)
        self._clients[session] = None
        self._attach_soon(session)

    def leave(self, session: Client) -> None:
        """The client closes: its session ends at once if it is connected, else by its timeout."""
        link = self._clients.pop(session, None)
        if link is not None:
            link.cut()
            self._end(link.session_id)

    def change(self, ops: Sequence[TreeOp], session_id: int) -> list[OpResult]:
        if session_id not in self._owners:
            raise SessionLost(ops[0].path, "the session with the metadata store has ended")
        results, events = self.tree.apply(ops, session_id)
        self._tell(events)
        return results

    def _attach_soon(self, session: Client) -> None:
        self.later(lambda: self._attach(session))

    def _attach(self, session: Client) -> None:
        reachable = self.is_up and session in self._clients and session not in self._cut_off
        if not reachable or session.has_ended or self._clients[session] is not None:
            return
        session_id = session.session_id
        if session_id == 0:
            self._last_session_id += 1
            session_id = self._last_session_id
            self._owners[session_id] = session
        link = Link(self, session, session_id)
        self._clients[session] = link
        if session_id not in self._owners:
            link.to_client(session.on_ended)
            return
        timer = self._expiries.pop(session_id, None)
        if timer is not None:
            timer.cancel()
        link.to_client(lambda: session.on_connected(link))

    def _cut(self, session: Client, *, silently: bool) -> None:
        link = self._clients.get(session)
        if link is None:
            return
        self._clients[session] = None
        link.cut()
        self._expire_in(link.session_id, self.session_timeout_s - self._silent_s(link))
        noticed_after_s = self.session_timeout_s * SILENCE_SHARE if silently else 0.0
        self.loop.call_later(noticed_after_s, lambda: session.receive(lambda: session.on_suspended(link)))

    def _silent_s(self, link: "Link") -> float:
        return (self.loop.time() - link.heard_at) % (self.session_timeout_s * HEARTBEAT_SHARE)

    def _expire_in(self, session_id: int, seconds: float) -> None:
        if session_id in self._owners:
            self._expiries[session_id] = self.loop.call_later(seconds, lambda: self._end(session_id))

    def _end(self, session_id: int) -> None:
        timer = self._expiries.pop(session_id, None)
        if timer is not None:
            timer.cancel()
        if self._owners.pop(session_id, None) is not None:
            self._tell(self.tree.delete_ephemerals(session_id))

    def _tell(self, events: Sequence[TreeEvent]) -> None:
        for event in events:
            for session, link in self._clients.items():
                if link is not None and link.watches(event.path):
                    link.to_client(lambda session=session, event=event: session.on_event(event))  # type: ignore[misc]


class Link:
    """One connection. Messages of a direction arrive in the order in which they were sent."""

    def __init__(self, zookeeper: MemoryZooKeeper, client: Client, session_id: int) -> None:
        self.session_id = session_id
        self._zookeeper = zookeeper
        self._client = client
        self._up: deque[Callable[[], None]] = deque()
        self._down: deque[Callable[[], None]] = deque()
        self._watched: list[str] = []
        self.heard_at = zookeeper.loop.time()
        self._is_cut = False

    def to_tree(self, call: Callable[[], None]) -> None:
        if not self._is_cut:
            self._up.append(call)
            self._zookeeper.later(self._arrive)

    def to_client(self, call: Callable[[], None]) -> None:
        if not self._is_cut:
            self._down.append(call)
            self._zookeeper.later(self._deliver)

    def watch(self, path: str) -> None:
        self.to_tree(lambda: self._watched.append(path))

    def watches(self, path: str) -> bool:
        return any(is_at_or_below(path, root=root) for root in self._watched)

    def cut(self) -> None:
        self._is_cut = True
        self._up.clear()
        self._down.clear()

    # The timers may fire in another order than they were set: each takes the oldest message.

    def _arrive(self) -> None:
        if self._up:
            self.heard_at = self._zookeeper.loop.time()
            self._up.popleft()()

    def _deliver(self) -> None:
        if self._down:
            self._client.receive(self._down.popleft())
