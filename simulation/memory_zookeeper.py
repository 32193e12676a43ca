"""The side of ZooKeeper in memory that the brokers do not see: the tree, the sessions that live, the links.

Between a session and the tree runs a link that keeps order in both directions: a change arrives, is made, and its
events and its answer travel back, each after `delay_s()`. A cut link loses what is on its way: a change that
never arrives, or an answer to one that was made.

A link ends at one of the servers. Most know all that there is. One that lags (`Follower`) answers reads from what it knew a while
ago; a change of its client brings it up to date, and it never goes back. One that is cut off from the others answers reads for
ever and changes never, and the sessions of its clients run out.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from penstock.metadata.tree import Delete, OpResult, SessionLost, TreeEvent, TreeOp, is_at_or_below
from simulation.memory_tree import MemoryTree

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

    def wipe(self) -> None:
        """All that it knew is gone, with every session; servers answer as those of a new ensemble."""
        for session_id in tuple(self._expiries):
            self._keep(session_id)
        self._owners.clear()
        self.tree = MemoryTree()
        for session, link in self._clients.items():
            if link is not None:
                link.follower = None
                link.to_client(session.on_ended)

    def lag(self, session: Client, behind_s: Callable[[], float]) -> None:
        """The server of `session` hears of changes so much later, until `catch_up`."""
        link = self._clients.get(session)
        if link is not None and link.follower is None:
            link.follower = Follower(self, link, behind_s)

    def cut_off_server(self, session: Client) -> None:
        """The server of `session` and the others lose each other, until `catch_up`, or until the client looks for another."""
        link = self._clients.get(session)
        if link is not None and link.follower is None:
            link.follower = Follower(self, link, None)
            self._expire_in(link.session_id, self.session_timeout_s - self._silent_s(link))

    def catch_up(self, session: Client) -> None:
        """Its server knows all again; a session that ran out meanwhile is told so."""
        link = self._clients.get(session)
        follower = None if link is None else link.follower
        if link is None or follower is None:
            return
        if link.session_id not in self._owners:
            link.follower = None
            link.to_client(session.on_ended)
            return
        if follower.is_cut_off:
            self._keep(link.session_id)
        follower.catch_up()
        link.follower = None
        follower.let_through()

    # Looks.

    def tree_of(self, link: "Link") -> MemoryTree:
        """What the server at the end of a link knows."""
        return self.tree if link.follower is None else link.follower.tree

    def is_behind(self, session: Client) -> bool:
        """Whether its server does not know all that there is."""
        link = self._clients.get(session)
        return link is not None and link.follower is not None

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
        results = self._apply(ops, session_id)
        link = self._clients.get(self._owners[session_id])
        if link is not None and link.follower is not None:
            link.follower.catch_up()  # it answers when it has made the change itself
        return results

    def _apply(self, ops: Sequence[TreeOp], session_id: int) -> list[OpResult]:
        results, events = self.tree.apply(ops, session_id)
        for link in self._clients.values():
            if link is not None and link.follower is not None:
                link.follower.hear(ops, session_id, self.tree.last_change)
        for session, link in self._clients.items():
            if link is not None and link.follower is None:
                link.tell(session, events)
        return results

    def leave_server(self, client: Client, link: "Link") -> None:
        """A change was not answered for so long that the client looks for another server."""
        if self._clients.get(client) is link:
            self._cut(client, silently=False)
            self._attach_soon(client)

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
        self._keep(session_id)
        link.to_client(lambda: session.on_connected(link))

    def _keep(self, session_id: int) -> None:
        timer = self._expiries.pop(session_id, None)
        if timer is not None:
            timer.cancel()

    def _cut(self, session: Client, *, silently: bool) -> None:
        link = self._clients.get(session)
        if link is None:
            return
        self._clients[session] = None
        link.cut()
        if link.session_id not in self._expiries:  # else it is counted out already, with its server
            self._expire_in(link.session_id, self.session_timeout_s - self._silent_s(link))
        noticed_after_s = self.session_timeout_s * SILENCE_SHARE if silently else 0.0
        self.loop.call_later(noticed_after_s, lambda: session.receive(lambda: session.on_suspended(link)))

    def _silent_s(self, link: "Link") -> float:
        return (self.loop.time() - link.heard_at) % (self.session_timeout_s * HEARTBEAT_SHARE)

    def _expire_in(self, session_id: int, seconds: float) -> None:
        if session_id in self._owners:
            self._expiries[session_id] = self.loop.call_later(seconds, lambda: self._end(session_id))

    def _end(self, session_id: int) -> None:
        self._keep(session_id)
        if self._owners.pop(session_id, None) is not None:
            self._apply([Delete(path) for path in self.tree.ephemerals(session_id)], session_id)


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
        self.follower: Follower | None = None
        """The server at its end, when that does not know all that there is."""
        self._is_cut = False

    def to_tree(self, call: Callable[[], None]) -> None:
        if not self._is_cut:
            self._up.append(call)
            self._zookeeper.later(self._arrive)

    def to_client(self, call: Callable[[], None]) -> None:
        if not self._is_cut:
            self._down.append(call)
            self._zookeeper.later(self._deliver)

    def change(self, call: Callable[[], None]) -> None:
        """As `to_tree`, for what only the quorum can decide."""

        def arrive() -> None:
            if self.follower is not None and self.follower.is_cut_off:
                self.follower.keep(call)
            else:
                call()

        self.to_tree(arrive)

    def tell(self, client: Client, events: Sequence[TreeEvent]) -> None:
        for event in events:
            if self.watches(event.path):
                self.to_client(lambda event=event: client.on_event(event))  # type: ignore[misc]

    @property
    def client(self) -> Client:
        return self._client

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


class Follower:
    """A server that does not know all that there is: it repeats changes later, in their order, or when it is made to catch up."""

    def __init__(self, zookeeper: MemoryZooKeeper, link: Link, behind_s: Callable[[], float] | None) -> None:
        """`behind_s`: how much later each time; None: not before it is made to."""
        self.tree = zookeeper.tree.copy()
        self._zookeeper = zookeeper
        self._link = link
        self._behind_s = behind_s
        self._unheard: deque[tuple[Sequence[TreeOp], int, int]] = deque()
        self._kept: deque[Callable[[], None]] = deque()

    @property
    def is_cut_off(self) -> bool:
        return self._behind_s is None

    def hear(self, ops: Sequence[TreeOp], session_id: int, change: int) -> None:
        self._unheard.append((ops, session_id, change))
        if self._behind_s is not None:
            self._zookeeper.loop.call_later(self._behind_s(), self._repeat)

    def catch_up(self) -> None:
        while self._unheard:
            self._repeat()

    def keep(self, call: Callable[[], None]) -> None:
        """A change that nobody hears of yet."""
        self._kept.append(call)
        zookeeper = self._zookeeper
        zookeeper.loop.call_later(zookeeper.session_timeout_s * SILENCE_SHARE, self._give_up)

    def let_through(self) -> None:
        while self._kept:
            self._kept.popleft()()

    def _give_up(self) -> None:
        if self._kept:
            self._zookeeper.leave_server(self._link.client, self._link)

    def _repeat(self) -> None:
        if self._unheard:  # the timers may fire after it has caught up
            self._link.tell(self._link.client, self.tree.repeat(*self._unheard.popleft()))
