"""The metadata tree in ZooKeeper, in Kafka's layout, for a cluster of brokers.

`open_store(options)` connects and gives the tree. Promised: what a call returned from is decided by a quorum;
a `multi` is there wholly or not at all; a watcher hears of a change before a read shows it. Every call ends within
`timeout_s`, with StoreUnavailable when no server answered in time; reads are asked again after a lost
connection, changes are not, as nobody knows whether they were made (`maybe_done`) - but for an ephemeral
node, which tells by its owner.

The session: while no server answers `on_connection` listeners hear False, and True when one does and the session
still lived. When it has expired, watchers are told LOST once and every call raises SessionLost until
`reconnect()` has begun a new one. Watches are set again by the store, ephemeral nodes are their owners' to make.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from penstock.metadata.session_state import SessionState
from penstock.metadata.tree import (
    ANY_VERSION,
    Create,
    Delete,
    EventKind,
    NodeExists,
    NoNode,
    OpResult,
    SessionLost,
    Set,
    StoreUnavailable,
    TreeEvent,
    TreeNode,
    TreeOp,
    Watcher,
    check_path,
    is_at_or_below,
)
from penstock.stores import zookeeper_messages as messages
from penstock.stores import zookeeper_wire as wire
from penstock.stores.watchers import Watchers
from penstock.stores.zookeeper_absence import Absence
from penstock.stores.zookeeper_options import ZooKeeperOptions, split_address
from penstock.stores.zookeeper_requests import Requests, op_refusal, refusal
from penstock.stores.zookeeper_session import ConnectionLoss, Session, SessionEvents

CLOSE_TIMEOUT_S = 5.0
SILENCE_SHARE = 2 / 3  # of the session timeout, after which an unanswered request makes us try another server
NODES_PER_READ = 128

_EVENTS = {1: EventKind.CREATED, 2: EventKind.DELETED, 3: EventKind.CHANGED}
_log = logging.getLogger("penstock.stores")

__all__ = ["ZooKeeperOptions", "ZooKeeperStore", "open_store"]


async def open_store(options: ZooKeeperOptions) -> "ZooKeeperStore":
    """A store with a live session; the path in the address is made if it is missing.

    StoreUnavailable when no server answers; TreeError when the address is none.
    """
    store = ZooKeeperStore(options, asyncio.get_running_loop())
    try:
        await store.reconnect()
        await store.make_root()
    except BaseException:
        await store.close()
        raise
    return store


class ZooKeeperStore:
    def __init__(self, options: ZooKeeperOptions, loop: asyncio.AbstractEventLoop) -> None:
        self._servers, root = split_address(options.connect)
        self._requests = Requests(root, set_acl=options.set_acl)
        self._options = options
        self._loop = loop
        self._watchers = Watchers()
        self._listeners: list[Callable[[bool], None]] = []
        self._session: Session | None = None
        self._connected = asyncio.Event()
        self._connections = 0  # counts them, to know one from the next
        self._in_flight = asyncio.Semaphore(max(1, options.max_in_flight_requests))
        self._is_resumed = False  # the session has been connected before
        self._is_closed = False
        self._absence = Absence(options.connect, loop.time)
        self.session_timeout_s = options.session_timeout_ms / 1000

    @property
    def address(self) -> str:
        return self._options.connect

    @property
    def session_id(self) -> int:
        """0 while there is no session."""
        return self._session.session_id if self._session is not None else 0

    @property
    def server(self) -> str:
        """The one of several servers that answers us, or did last."""
        return self._session.server if self._session is not None else ""

    @property
    def session_state(self) -> SessionState:
        return self._absence.state

    # The session.

    def on_connection(self, listener: Callable[[bool], None]) -> None:
        """False: no server answers any more, the session may or may not live. True: it does, one answers again.

        The end of a session is told to watchers (LOST), the beginning of one by the return of `reconnect`."""
        self._listeners.append(listener)

    async def reconnect(self) -> None:
        """A new session, after the last one ended; nothing while one is there. Raises StoreUnavailable."""
        if self._is_closed:
            raise SessionLost("/", "the metadata store is closed")
        if self._session is None:
            self._begin_session()
        timeout_ms = self._options.connection_timeout_ms or self._options.session_timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._live_session("/")
        except TimeoutError:
            raise self._unavailable("/") from None

    def _begin_session(self) -> None:
        self._is_resumed = False
        self._connected.clear()
        session: Session

        def mine(call: Callable[..., None]) -> Callable[..., None]:
            return lambda *args: call(*args) if self._session is session else None

        told = (self._on_connected, self._on_suspended, self._on_ended, self._on_event, self._absence.go_on)
        events: Sequence[Callable[..., None]] = told
        session = self._session = Session(
            self._servers,
            timeout_s=self._options.session_timeout_ms / 1000,
            auth=self._options.auth,
            security=self._options.security,
            events=SessionEvents(*map(mine, events)),
            loop=self._loop,
        )
        session.start()

    def _on_connected(self, granted_s: float) -> None:
        assert self._session is not None
        self.session_timeout_s = granted_s
        self._connections += 1
        self._absence.end()
        for path in self._watchers.paths:
            self._send_watch(path)
        self._connected.set()
        if self._is_resumed:
            _log.info("ZooKeeper at %s answers again; the session is alive", self.address)
            self._watchers.tell_all(EventKind.CHANGED)
            self._tell_listeners(True)
        self._is_resumed = True

    def _on_suspended(self) -> None:
        self._absence.begin()
        self._connected.clear()
        self._tell_listeners(False)

    def _on_ended(self) -> None:
        assert self._session is not None
        self._absence.end("has ended the session")
        self._session.close()
        self._session = None
        self._connected.set()  # whoever waits for it shall see that there is none
        self._watchers.tell_all(EventKind.LOST)

    def _tell_listeners(self, connected: bool) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(connected)
            except Exception:
                _log.exception("a listener of the connection to ZooKeeper failed")

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._watchers.clear()
        self._listeners.clear()
        session, self._session = self._session, None
        self._connected.set()
        if session is not None:
            try:
                await asyncio.wait_for(session.close(), CLOSE_TIMEOUT_S)
            except TimeoutError:
                session.drop_connection()
                _log.warning(
                    "ZooKeeper at %s did not confirm the end of the session: it ends by its timeout",
                    self.address,
                )

    # Watches.

    def watch(self, path: str, watcher: Watcher) -> Callable[[], None]:
        is_new = path not in self._watchers.paths
        stop = self._watchers.add(path, watcher)
        if is_new and self._session is not None and self._connected.is_set():
            self._send_watch(path)
        return stop

    def _send_watch(self, path: str) -> None:
        """Ahead of every read that is asked for later, hence no waiting. Lost with the connection, it is sent
        again with the next. A watch that nobody needs any more is left: its events find nobody."""

        def answer(value: object, error: Exception | None) -> None:
            if isinstance(error, wire.Refused) and error.code != wire.Code.SESSION_EXPIRED:
                _log.error("ZooKeeper at %s: cannot watch %s: %s", self.address, path, refusal(error, path))

        assert self._session is not None
        self._session.send(messages.AddWatch(self._requests.full(path)), answer)

    def _on_event(self, kind: int, full_path: str) -> None:
        if kind in _EVENTS and is_at_or_below(full_path, root=self._requests.root or "/"):
            self._watchers.tell(TreeEvent(_EVENTS[kind], self._requests.relative(full_path)))

    # Reading.

    async def get(self, path: str) -> TreeNode:
        check_path(path)
        data, stat = await self._read(messages.GetData(self._requests.full(path)), path)
        return _node(data, stat)

    async def children(self, path: str) -> list[str]:
        check_path(path)
        return sorted(await self._read(messages.GetChildren(self._requests.full(path)), path))

    async def exists(self, path: str) -> bool:
        check_path(path)
        return await self._owner(path) is not None

    async def subtree(self, path: str) -> dict[str, TreeNode]:
        """Level by level, many nodes in one request and several requests at a time."""
        check_path(path)
        nodes: dict[str, TreeNode] = {}
        level = [path]
        while level:
            parts = [level[n : n + NODES_PER_READ] for n in range(0, len(level), NODES_PER_READ)]
            level = []
            for part, found in zip(parts, await self._read_parts(parts), strict=True):
                for each, node in zip(part, found, strict=True):
                    if node is not None:
                        nodes[each] = _node(node.data, node.stat)
                        stem = "" if each == "/" else each
                        level += [f"{stem}/{name}" for name in node.children]
        return nodes

    async def _read_parts(self, parts: Sequence[Sequence[str]]) -> list[list[messages.Found | None]]:
        asking = [asyncio.ensure_future(self._read_many(part)) for part in parts]
        try:
            return list(await asyncio.gather(*asking))
        finally:
            for each in asking:
                each.cancel()

    async def _read_many(self, paths: Sequence[str]) -> list[messages.Found | None]:
        """What is not there is None. What we may not read makes the whole a refusal: taken for a node that is not there, it
        would count as deleted."""
        request = messages.ReadMany([self._requests.full(path) for path in paths])
        found: list[messages.Found | None] = []
        for path, each in zip(paths, await self._read(request, paths[0]), strict=True):
            if isinstance(each, wire.Refused) and each.code != wire.Code.NO_NODE:
                raise refusal(each, path)
            found.append(None if isinstance(each, wire.Refused) else each)
        return found

    async def _owner(self, path: str) -> int | None:
        """The session of an ephemeral node, 0 of a lasting one, None when there is none."""
        try:
            stat: wire.Stat = await self._read(messages.Exists(self._requests.full(path)), path)
        except NoNode:
            return None
        return stat.ephemeral_owner

    async def _read(self, request: wire.Request, path: str) -> Any:
        deadline = self._loop.time() + self._options.timeout_s
        while True:
            try:
                return await self._ask(request, deadline, path)
            except ConnectionLoss:
                if self._loop.time() >= deadline:
                    raise self._unavailable(path) from None
            except wire.Refused as error:
                raise refusal(error, path) from None

    # Changing.

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequence: bool = False
    ) -> str:
        op = Create(path, data, ephemeral, sequence)
        request = self._requests.request(op)
        deadline = self._loop.time() + self._options.timeout_s
        was_sent = False
        while True:
            try:
                return self._requests.relative(await self._ask(request, deadline, path))
            except ConnectionLoss:
                if not ephemeral or sequence or self._loop.time() >= deadline:
                    raise self._unavailable(path, maybe_done=True) from None
                was_sent = True
            except wire.Refused as error:
                is_there = was_sent and error.code == wire.Code.NODE_EXISTS
                if is_there and await self._owner(path) == self.session_id:
                    return path  # it was we who made it
                raise op_refusal(error, op) from None

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        op = Set(path, data, version)
        new_version: int = await self._change(self._requests.request(op), op)
        return new_version

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        op = Delete(path, version)
        await self._change(self._requests.request(op), op)

    async def set_acl(self, path: str) -> None:
        """The ACL that a node has which we make there."""
        check_path(path)
        await self._read(messages.SetAcl(self._requests.full(path), self._requests.acl(path)), path)

    async def multi(self, ops: Sequence[TreeOp]) -> list[OpResult]:
        requests = [self._requests.request(op) for op in ops]
        if not requests:
            return []
        return self._requests.results(ops, await self._change(messages.Multi(requests), ops[0]))

    async def make_root(self) -> None:
        """The path behind the address, with those above it, as Kafka makes it."""
        parts = self._requests.root.split("/")[1:]
        for depth in range(1, len(parts) + 1):
            full_path = "/" + "/".join(parts[:depth])
            try:
                await self._change(
                    messages.Create(full_path, b"", self._requests.acl("/"), 0), Create(full_path)
                )
            except NodeExists:
                pass

    async def _change(self, request: wire.Request, op: TreeOp) -> Any:
        """The answer to `request`, which is `op` or begins with it."""
        try:
            return await self._ask(request, self._loop.time() + self._options.timeout_s, op.path)
        except ConnectionLoss:
            raise self._unavailable(op.path, maybe_done=True) from None
        except wire.Refused as error:
            raise op_refusal(error, op) from None

    # One request.

    async def _ask(self, request: wire.Request, deadline: float, path: str) -> Any:
        """The answer to one request that is sent once; raises Refused, or ours when no server is there.

        ConnectionLoss: it was sent, and no answer came before the connection or the time was gone.
        """
        was_sent = False
        try:
            async with asyncio.timeout_at(deadline), self._in_flight:
                session = await self._live_session(path)
                was_sent = True
                return await self._answer(session, request)
        except TimeoutError:
            if was_sent:
                raise ConnectionLoss from None
            raise self._unavailable(path) from None

    async def _answer(self, session: Session, request: wire.Request) -> Any:
        answered: asyncio.Future[Any] = self._loop.create_future()

        def take(value: Any, error: Exception | None) -> None:
            if not answered.done():
                if error is not None:
                    answered.set_exception(error)
                else:
                    answered.set_result(value)

        connection = self._connections
        session.send(request, take)
        await asyncio.wait((answered,), timeout=self.session_timeout_s * SILENCE_SHARE)
        if not answered.done() and connection == self._connections:
            self._connections += 1  # one drop for all that wait
            session.drop_connection()
        return await answered

    async def _live_session(self, path: str) -> Session:
        await self._connected.wait()
        if self._is_closed:
            raise SessionLost(path, "the metadata store is closed")
        if self._session is None:
            raise SessionLost(path, f"the session with ZooKeeper at {self.address} has ended")
        return self._session

    def _unavailable(self, path: str, *, maybe_done: bool = False) -> StoreUnavailable:
        trouble = self._session.trouble if self._session is not None else ""
        detail = f"ZooKeeper at {self.address} does not answer{trouble and ': '}{trouble}"
        if maybe_done:
            detail += f": the change of {path} may or may not have been done"
        return StoreUnavailable(path, detail, maybe_done=maybe_done)


def _node(data: bytes, stat: wire.Stat) -> TreeNode:
    return TreeNode(data, stat.version, stat.czxid, stat.ephemeral_owner)
