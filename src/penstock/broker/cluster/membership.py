"""The session with the metadata store: registered, elected, and proof of life.

The lease: while our session lives nobody takes our place. A proof of it goes through the store's quorum, as a server that is
cut off together with us would go on answering reads from its memory. The quorum hears of a session's requests from the server
that got them, a little later: a proof says that it has heard of the one before. So the session lives for its timeout after that
one was asked. Right after a registration there is none before, but what ZooKeeper's clients and servers say by themselves: a
client each third of the timeout, a server each half of a tick, and a timeout has two ticks at least. Once the lease is over we
may have been replaced without knowing: then only what our followers confirm is acknowledged (`is_proven`, asked by Produce).
"""

import logging
from asyncio import CancelledError, Event, Task, gather, sleep, timeout, wait_for
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol

from penstock.metadata import znodes
from penstock.metadata.image import (
    BROKERS,
    NO_BROKER_EPOCH,
    NO_CONTROLLER,
    TOPICS,
    BrokerRegistration,
    ConfigsChanged,
)
from penstock.metadata.load import become_controller
from penstock.metadata.tree import (
    BadVersion,
    Check,
    EventKind,
    MetadataTree,
    NodeExists,
    NoNode,
    SessionLost,
    StoreUnavailable,
    TreeError,
    TreeEvent,
)

if TYPE_CHECKING:
    from penstock.broker.node import Node

log = logging.getLogger("penstock.broker")

PROOFS_PER_TIMEOUT: Final = 4
FIRST_LEASE: Final = 1 - 1 / 3 - 1 / 4
"""Of a timeout: what is sure without a proof before."""
RETRY_SECONDS: Final = 0.5
WELCOME_SECONDS: Final = 10.0
CONFIG_SECONDS: Final = 2.0
"""For so long a new partition waits for its topic's configuration, when the store does not answer."""
WATCHED_CONFIGS: Final = (TOPICS, BROKERS)


class AlreadyRegistered(Exception):
    """Another broker has our id; the text is one line for the operator."""


class ClusterStore(MetadataTree, Protocol):
    """A tree that several brokers share, over a session that may end."""

    @property
    def session_timeout_s(self) -> float: ...
    async def reconnect(self) -> None: ...


class Membership:
    def __init__(self, node: "Node", store: ClusterStore, registration: BrokerRegistration) -> None:
        self._node = node
        self._store = store
        self._registration = registration
        self._path = znodes.broker_path(node.broker_id)
        self._asked_at = 0.0
        self._proven_until = 0.0
        self._tasks: list[Task[None]] = []
        self._stop_watching: list[Callable[[], None]] = []
        self._controller_changed = Event()
        self._changed_configs: set[str] = set()
        self._configs_changed = Event()
        self._lost = Event()
        self._is_leaving = False
        self.welcomed = Event()
        """Set when a controller has told us of the cluster: a client that asks before would be told too little."""

    # --- joining and leaving

    async def join(self) -> None:
        """Register; AlreadyRegistered when a broker of our id is there. From then on this works by itself."""
        await self._register(first=True)
        store = self._store
        self._stop_watching = [
            store.watch(znodes.CONTROLLER, self._on_controller),
            *(store.watch(f"{znodes.CONFIG}/{kind}", self._on_config) for kind in WATCHED_CONFIGS),
        ]
        create = self._node.loop.create_task
        self._tasks = [
            create(self._prove()),
            create(self._follow_configs()),
            create(self._follow_controller()),
            create(self._rejoin()),
        ]
        self._controller_changed.set()
        self._look_at_all_configs()  # some may have changed since the image was read
        try:
            await wait_for(self.welcomed.wait(), WELCOME_SECONDS)
        except TimeoutError:
            log.warning(
                "no controller has told this broker about the cluster yet; serving what it knows itself"
            )

    async def leave(self) -> None:
        self._is_leaving = True
        for stop in self._stop_watching:
            stop()
        for task in self._tasks:
            task.cancel()

    def is_proven(self) -> bool:
        return self._node.clock.monotonic() < self._proven_until

    async def _register(self, *, first: bool) -> None:
        node = self._node
        data = znodes.encode_broker(self._registration, now_ms=node.clock.now_ms())
        deadline = node.clock.monotonic() + self._store.session_timeout_s + 5
        while True:
            asked_at = node.clock.monotonic()
            try:
                await self._store.create(self._path, data, ephemeral=True)
                break
            except NodeExists:
                await self._wait_for_predecessor(deadline, may_refuse=first)
        node.broker_epoch = (await self._store.get(self._path)).created
        self._asked_at = asked_at
        self._proven_until = asked_at + self._store.session_timeout_s * FIRST_LEASE
        log.info("broker %s is registered, epoch %s", node.broker_id, node.broker_epoch)

    async def _wait_for_predecessor(self, deadline: float, *, may_refuse: bool) -> None:
        """A node of our id: our own of an earlier session, which ends soon, or another broker's, which stays.

        One with our very addresses can only be our own: we hold their ports.
        """
        node = self._node
        try:
            found = await self._store.get(self._path)
            if znodes.decode_broker(node.broker_id, found.data).endpoints == self._registration.endpoints:
                await self._store.delete(self._path, found.version)
                return
        except (NoNode, BadVersion, znodes.BadNode):
            return
        if may_refuse and node.clock.monotonic() > deadline:
            addresses = ", ".join(
                f"{each.host}:{each.port}"
                for each in znodes.decode_broker(node.broker_id, found.data).endpoints.values()
            )
            raise AlreadyRegistered(
                f"broker {node.broker_id} is already in the cluster, at {addresses}; "
                "stop it, or give this one another id (--broker-id)"
            )
        await sleep(RETRY_SECONDS)

    # --- the lease

    async def _prove(self) -> None:
        while True:
            epoch = self._node.broker_epoch
            await sleep(self._store.session_timeout_s / PROOFS_PER_TIMEOUT)
            if self._node.broker_epoch != epoch or epoch == NO_BROKER_EPOCH:
                continue
            try:
                await self._prove_once(epoch)
            except TreeError:
                pass  # told by the store; the lease ends by itself
            except CancelledError:
                raise
            except Exception:
                log.exception("asking the metadata store for a sign of life failed")

    async def _prove_once(self, epoch: int) -> None:
        node, store = self._node, self._store
        asked_at = node.clock.monotonic()
        try:
            await store.multi([Check(self._path)])
            found: int | None = (await store.get(self._path)).created  # after the check, so not older
        except NoNode:
            found = None
        if node.broker_epoch != epoch:
            return  # registered anew meanwhile
        if found == epoch:
            self._proven_until = self._asked_at + store.session_timeout_s
            self._asked_at = asked_at
        else:
            log.warning("%s is not ours any more, although our session lives", self._path)
            self._on_lost()

    async def _rejoin(self) -> None:
        """After the session, or only the registration, has ended: a new one."""
        while True:
            await self._lost.wait()
            log.warning("the registration in the metadata store has ended: joining the cluster anew")
            while not self._is_leaving:
                try:
                    await self._store.reconnect()
                    self._lost.clear()  # whatever was lost until now is what we begin anew
                    await self._register(first=False)
                    self._controller_changed.set()
                    self._look_at_all_configs()
                    break
                except SessionLost:
                    await sleep(0)
                except CancelledError:
                    raise
                except TreeError as error:
                    log.warning("cannot join the cluster anew: %s", error)
                    await sleep(RETRY_SECONDS)
                except Exception:
                    log.exception("joining the cluster anew failed")
                    await sleep(RETRY_SECONDS)

    def _on_lost(self) -> None:
        node = self._node
        self._proven_until = 0.0
        node.broker_epoch = NO_BROKER_EPOCH
        node.controlling.resign()
        node.roles.step_down()  # others lead, and nothing that we led before may count as proven by what follows
        self._lost.set()

    # --- the controller

    def _on_controller(self, event: TreeEvent) -> None:
        if event.kind is EventKind.LOST:
            self._on_lost()
        else:
            self._controller_changed.set()

    async def _follow_controller(self) -> None:
        while True:
            await self._controller_changed.wait()
            self._controller_changed.clear()
            try:
                await self._elect()
            except CancelledError:
                raise
            except TreeError as error:
                log.warning("cannot find out who the controller is: %s", error)
                await sleep(RETRY_SECONDS)
                if not self._lost.is_set():
                    self._controller_changed.set()
            except Exception:
                log.exception("the election of a controller failed")
                await sleep(RETRY_SECONDS)
                self._controller_changed.set()

    async def _elect(self) -> None:
        node = self._node
        while node.broker_epoch != NO_BROKER_EPOCH:
            try:
                found = await self._store.get(znodes.CONTROLLER)
            except NoNode:
                node.controlling.resign()  # also when an operator took the node away, to have another elected
                try:
                    won = await become_controller(self._store, node.broker_id, now_ms=node.clock.now_ms())
                except (NodeExists, BadVersion, NoNode):
                    continue
                await node.controlling.begin(won)
                return
            controller_id = znodes.decode_controller(found.data)
            if controller_id == node.broker_id:
                if not node.controlling.is_active:
                    # Of an earlier session, or of one that could not begin: make room.
                    await self._store.delete(znodes.CONTROLLER, found.version)
                    continue
                return
            node.controlling.resign()
            epoch = znodes.decode_controller_epoch((await self._store.get(znodes.CONTROLLER_EPOCH)).data)
            if epoch >= node.image.controller_epoch:
                node.image.set_controller(controller_id, epoch=epoch)
            return
        node.image.set_controller(NO_CONTROLLER, epoch=node.image.controller_epoch)

    # --- configs, which every broker reads for itself

    def _on_config(self, event: TreeEvent) -> None:
        if event.kind is not EventKind.LOST:
            self._changed_configs.add(event.path)
            self._configs_changed.set()

    def _look_at_all_configs(self) -> None:
        self._changed_configs.update(f"{znodes.CONFIG}/{kind}" for kind in WATCHED_CONFIGS)
        self._configs_changed.set()

    async def _follow_configs(self) -> None:
        while True:
            await self._configs_changed.wait()
            self._configs_changed.clear()
            while self._changed_configs:
                path = self._changed_configs.pop()
                try:
                    await self._read_config(path)
                except (StoreUnavailable, SessionLost):
                    self._changed_configs.add(path)
                    await sleep(RETRY_SECONDS)
                except (TreeError, znodes.BadNode) as error:
                    log.warning("cannot read %s: %s", path, error)
                except CancelledError:
                    raise
                except Exception:
                    log.exception("%s cannot be applied", path)

    async def learn_configs(self, topics: Iterable[str]) -> None:
        """Of topics that are new here, before anything of them is opened: what the watch tells may come later."""
        paths = [znodes.config_path(TOPICS, name) for name in topics]
        if not paths:
            return
        try:
            async with timeout(CONFIG_SECONDS):
                await self._store.multi([Check(znodes.CONFIG)])  # what is read after a write is not older
                found = await gather(*map(self._read_config, paths), return_exceptions=True)
            refusal = next((each for each in found if each is not None), None)
        except (TimeoutError, TreeError) as error:
            refusal = error
        if refusal is not None:
            log.warning("new partitions begin without their topics' options: %r", refusal)

    async def _read_config(self, path: str) -> None:
        kind, _, name = path.removeprefix(f"{znodes.CONFIG}/").partition("/")
        if not name:
            for child in await self._store.children(path):
                self._changed_configs.add(f"{path}/{child}")
            return
        try:
            overrides = znodes.decode_config(path, (await self._store.get(path)).data)
        except NoNode:
            overrides = None
        node = self._node
        entity = znodes.desanitize(name)
        known = dict(node.image.overrides(kind, entity)) if node.image.has_config_node(kind, entity) else None
        if known != overrides:
            node.effects.apply(ConfigsChanged(kind, entity, overrides))
