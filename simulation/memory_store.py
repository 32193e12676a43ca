"""ZooKeeper in memory, for simulations: one tree, a session for each broker, faults on demand, no threads.

`MemoryZooKeeper(loop)` holds the tree and the controls of faults; `MemorySession(zookeeper)` is what a broker gets, with
the behaviour of `stores/zookeeper.py`. Everything happens through the loop's `call_soon` and `call_later`, in an
order that depends on nothing but the calls and on `delay_s`, so a run with the same seed is the same run.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from penstock.metadata.session_state import SessionState
from penstock.metadata.tree import (
    ANY_VERSION,
    Create,
    Delete,
    EventKind,
    NodeExists,
    OpResult,
    SessionLost,
    Set,
    StoreUnavailable,
    TreeError,
    TreeEvent,
    TreeNode,
    TreeOp,
    Watcher,
    check_op,
    check_path,
)
from penstock.stores.watchers import Watchers
from simulation.memory_tree import MemoryTree
from simulation.memory_zookeeper import Link, MemoryZooKeeper

ADDRESS = "memory"
DEFAULT_TIMEOUT_S = 30.0

__all__ = ["MemorySession", "MemoryZooKeeper"]


class _ConnectionLoss(Exception):
    """A request was sent, and no answer came before the link or the time was gone."""


class MemorySession:
    """A broker's store. Without a session until `reconnect()`; every call ends within `timeout_s`."""

    def __init__(
        self,
        zookeeper: MemoryZooKeeper,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """`loop`: the broker's own, where it is not the tree's."""
        self._zookeeper = zookeeper
        self._loop = zookeeper.loop if loop is None else loop
        self._timeout_s = timeout_s
        self._watchers = Watchers()
        self._listeners: list[Callable[[bool], None]] = []
        self._connected = asyncio.Event()
        self._waiting: dict[asyncio.Future[Any], None] = {}
        self._is_resumed = False
        self._is_closed = False
        self.has_ended = True  # there is no session, and none is looked for
        self._link: Link | None = None
        self.session_id = 0

    @property
    def address(self) -> str:
        return ADDRESS

    @property
    def session_timeout_s(self) -> float:
        return self._zookeeper.session_timeout_s

    @property
    def session_state(self) -> SessionState:
        return SessionState("" if self._link is not None else "does not answer")

    def on_connection(self, listener: Callable[[bool], None]) -> None:
        self._listeners.append(listener)

    async def reconnect(self) -> None:
        if self._is_closed:
            raise SessionLost("/", "the metadata store is closed")
        if self.has_ended:
            self.has_ended = False
            self._is_resumed = False
            self._connected.clear()
            self._zookeeper.enter(self)
        await self._wait_connected(self._loop.time() + self.session_timeout_s, "/")

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._watchers.clear()
            self._listeners.clear()
            self._zookeeper.leave(self)
            self._link = None
            self._connected.set()
            self._lose_waiting()

    # What the link brings.

    def receive(self, call: Callable[[], None]) -> None:
        if self._loop is self._zookeeper.loop:
            call()
        else:
            self._loop.call_soon(call)

    def on_connected(self, link: Link) -> None:
        if self._is_closed:
            return
        if self._link is not None:
            self.on_suspended(self._link)  # a silence that we have not noticed yet
        self._link = link
        self.session_id = link.session_id
        for path in self._watchers.paths:
            link.watch(path)
        self._connected.set()
        if self._is_resumed:
            self._watchers.tell_all(EventKind.CHANGED)
            for listener in tuple(self._listeners):
                listener(True)
        self._is_resumed = True

    def on_suspended(self, link: Link) -> None:
        if link is not self._link:
            return
        self._link = None
        self._connected.clear()
        self._lose_waiting()
        for listener in tuple(self._listeners):
            listener(False)

    def on_ended(self) -> None:
        if self._is_closed or self.has_ended:
            return
        self.has_ended = True
        self.session_id = 0
        self._link = None
        self._connected.set()  # whoever waits for it shall see that there is none
        self._lose_waiting()
        self._watchers.tell_all(EventKind.LOST)

    def on_event(self, event: TreeEvent) -> None:
        self._watchers.tell(event)

    def _lose_waiting(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for future in waiting:
            if not future.done():
                future.set_exception(_ConnectionLoss())

    # The tree.

    def watch(self, path: str, watcher: Watcher) -> Callable[[], None]:
        is_new = path not in self._watchers.paths
        stop = self._watchers.add(path, watcher)
        if is_new and self._link is not None and self._connected.is_set():
            self._link.watch(path)
        return stop

    async def get(self, path: str) -> TreeNode:
        found: TreeNode = await self._read(lambda tree: tree.get(path), path)
        return found

    async def children(self, path: str) -> list[str]:
        names: list[str] = await self._read(lambda tree: tree.children(path), path)
        return names

    async def exists(self, path: str) -> bool:
        return bool(await self._read(lambda tree: tree.owner(path) is not None, path))

    async def subtree(self, path: str) -> dict[str, TreeNode]:
        found: dict[str, TreeNode] = await self._read(lambda tree: tree.subtree(path), path)
        return found

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequence: bool = False
    ) -> str:
        op = Create(path, data, ephemeral, sequence)
        check_op(op)
        deadline = self._loop.time() + self._timeout_s
        was_sent = False
        while True:
            try:
                (made,) = await self._change([op], deadline)
            except _ConnectionLoss:
                if not ephemeral or sequence or self._loop.time() >= deadline:
                    raise self._unavailable(path, maybe_done=True) from None
                was_sent = True
            except NodeExists:
                if was_sent and await self._read(lambda tree: tree.owner(path), path) == self.session_id:
                    return path
                raise
            else:
                return str(made)

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        (new_version,) = await self.multi([Set(path, data, version)])
        assert isinstance(new_version, int)
        return new_version

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.multi([Delete(path, version)])

    async def multi(self, ops: Sequence[TreeOp]) -> list[OpResult]:
        for op in ops:
            check_op(op)
        if not ops:
            return []
        deadline = self._loop.time() + self._timeout_s
        results: list[OpResult]
        try:
            results = await self._change(ops, deadline)
        except _ConnectionLoss:
            raise self._unavailable(ops[0].path, maybe_done=True) from None
        return results

    async def _read(self, look: Callable[[MemoryTree], Any], path: str) -> Any:
        check_path(path)
        deadline = self._loop.time() + self._timeout_s
        while True:
            try:
                return await self._ask(
                    lambda link: look(self._zookeeper.tree_of(link)), Link.to_tree, deadline, path
                )
            except _ConnectionLoss:
                if self._loop.time() >= deadline:
                    raise self._unavailable(path) from None

    async def _change(self, ops: Sequence[TreeOp], deadline: float) -> Any:
        return await self._ask(
            lambda link: self._zookeeper.change(ops, link.session_id), Link.change, deadline, ops[0].path
        )

    async def _ask(
        self,
        act: Callable[[Link], Any],
        send: Callable[[Link, Callable[[], None]], None],
        deadline: float,
        path: str,
    ) -> Any:
        await self._wait_connected(deadline, path)
        link = self._link
        assert link is not None
        answered: asyncio.Future[Any] = self._loop.create_future()
        self._waiting[answered] = None

        def arrive() -> None:
            value: Any = None
            error: TreeError | None = None
            try:
                value = act(link)
            except TreeError as refusal:
                error = refusal
            link.to_client(lambda: _answer(answered, value, error))

        send(link, arrive)
        try:
            async with asyncio.timeout_at(deadline):
                return await answered
        except TimeoutError:
            raise _ConnectionLoss from None
        finally:
            self._waiting.pop(answered, None)

    async def _wait_connected(self, deadline: float, path: str) -> None:
        while not self._connected.is_set():  # it may be away again before those who waited go on
            try:
                async with asyncio.timeout_at(deadline):
                    await self._connected.wait()
            except TimeoutError:
                raise self._unavailable(path) from None
        if self._is_closed:
            raise SessionLost(path, "the metadata store is closed")
        if self.has_ended:
            raise SessionLost(path, "the session with the metadata store has ended")

    def _unavailable(self, path: str, *, maybe_done: bool = False) -> StoreUnavailable:
        detail = "the metadata store in memory does not answer"
        if maybe_done:
            detail += f": the change of {path} may or may not have been done"
        return StoreUnavailable(path, detail, maybe_done=maybe_done)


def _answer(answered: asyncio.Future[Any], value: Any, error: TreeError | None) -> None:
    if answered.done():
        return
    if error is not None:
        answered.set_exception(error)
    else:
        answered.set_result(value)
