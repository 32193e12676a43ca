"""The session with the metadata store: registration, election, and the proof that the session is alive.

The lease: while our session is alive, no other broker takes our place. A proof must go through the store's quorum, because a
server that is cut off together with us would still answer reads from its memory. The server that gets a session's requests
tells the quorum about them a little later. So a proof says only that the quorum has heard of the proof before it, and the
session is alive for its timeout after that earlier proof was asked for. Right after a registration there is no earlier proof.
Then we rely on what ZooKeeper's clients and servers send anyway: a client each third of the timeout, a server each half of a
tick, and a timeout has two ticks at least. When the lease is over, we may have been replaced without knowing it: then only what
our followers confirm is acknowledged (`is_proven`, asked by Produce). It
is over at once when our node is deleted, and counted with a clock that continues while the machine is suspended.

The node in the store belongs to a session. One of our id whose session is another's means that another broker has our id, also
when it says our very address (a second start on another machine, a copied configuration): we wait until that session ends, and
a start gives up after a session's timeout. Only a node of a session that was our own is taken away (`own_sessions`).
"""

import logging
from asyncio import CancelledError, Event, Task, sleep, wait_for
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.cluster.continuity import Continuity
from penstock.broker.cluster.members import Members
from penstock.broker.cluster.own_sessions import OwnSessions
from penstock.broker.cluster.shared_acls import SharedAcls
from penstock.broker.cluster.shared_configs import SharedConfigs
from penstock.broker.cluster.shared_tokens import SharedTokens
from penstock.controller.features import FEATURES
from penstock.metadata import znodes
from penstock.metadata.image import (
    NO_BROKER_EPOCH,
    NO_CONTROLLER,
    BrokerRegistration,
)
from penstock.metadata.load import become_controller
from penstock.metadata.session_state import SessionState
from penstock.metadata.tree import (
    BadVersion,
    Check,
    Create,
    Delete,
    EventKind,
    MetadataTree,
    NodeExists,
    NoNode,
    SessionLost,
    TreeError,
    TreeEvent,
)
from penstock.model.endpoints import Endpoint

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithBrokerId,
        WithClock,
        WithControlling,
        WithEffects,
        WithImage,
        WithLoop,
        WithPartitions,
        WithPasswords,
        WithPools,
        WithRegistration,
        WithRoles,
    )

    class Needs(
        WithRegistration,
        WithBrokerId,
        WithClock,
        WithControlling,
        WithEffects,
        WithImage,
        WithLoop,
        WithPartitions,
        WithPasswords,
        WithPools,
        WithRoles,
        Protocol,
    ): ...


log = logging.getLogger("penstock.broker")

PROOFS_PER_TIMEOUT: Final = 4
UNHEARD: Final = 1 / 3 + 1 / 4
"""Of a timeout: since when, at most, the quorum has not heard of a session that makes its first request."""
RETRY_SECONDS: Final = 0.5
SESSION_AGAIN_SECONDS: Final = 0.1
"""Before a new session is asked for when one ended at once, as it does when the store refuses our login."""
MOST_FIRST_SESSIONS: Final = 10
WELCOME_SECONDS: Final = 10.0
KNOWN_SECONDS: Final = 2.0
"""In which a broker learns the epoch of a node that it has made."""


class AlreadyRegistered(Exception):
    """Another broker has our id; the text is one line for the operator."""


class ClusterStore(MetadataTree, Protocol):
    """A tree that several brokers share, over a session that may end."""

    @property
    def session_timeout_s(self) -> float: ...
    @property
    def session_id(self) -> int: ...
    @property
    def session_state(self) -> SessionState: ...
    async def reconnect(self) -> None: ...


class Membership:
    def __init__(
        self, node: "Needs", store: ClusterStore, registration: BrokerRegistration, continuity: Continuity
    ) -> None:
        self._node = node
        self._store = store
        self._registration = registration
        self._path = znodes.broker_path(node.broker_id)
        self._own_sessions = OwnSessions(node.partitions, node.pools.syncs)
        self.continuity = continuity
        self._asked_at = -inf
        self._heard_at = -inf
        """The quorum has surely heard of our session since then."""
        self._doubted = Event()
        self._tasks: list[Task[None]] = []
        self._stop_watching: list[Callable[[], None]] = []
        self._controller_changed = Event()
        self.configs = SharedConfigs(node, store)
        self._acls = SharedAcls(node, store)
        self._tokens = SharedTokens(node, store)
        self.members = Members(node, store)
        self._lost = Event()
        self._registered = Event()
        self._is_leaving = False
        self._waited_for = NO_BROKER_EPOCH
        self.welcomed = Event()
        """Set when a controller has told us of the cluster: a client that asks before would be told too little."""

    # --- joining and leaving

    async def join(self) -> None:
        """Register; AlreadyRegistered when a broker of our id is there. From then on this works by itself."""
        await self._register_first()
        store = self._store
        self._stop_watching = [
            store.watch(znodes.CONTROLLER, self._on_controller),
            store.watch(self._path, self._on_registration),
            *self.configs.watch(),
            *self._acls.watch(),
            *self._tokens.watch(),
            *self.members.watch(),
        ]
        create = self._node.loop.create_task
        self._tasks = [
            create(self._prove()),
            create(self.configs.follow()),
            create(self._acls.follow()),
            create(self._tokens.follow()),
            create(self.members.follow()),
            create(self._follow_controller()),
            create(self._rejoin()),
        ]
        self._controller_changed.set()
        self._look_at_all()  # some may have changed since the image was read
        try:
            await wait_for(self.welcomed.wait(), WELCOME_SECONDS)
        except TimeoutError:
            log.warning(
                "no controller has contacted this broker yet; it serves with the metadata that it read itself"
            )

    def _look_at_all(self) -> None:
        self.configs.look_at_all()
        self._acls.look_at_all()
        self._tokens.look_at_all()
        self.members.look_at_all()

    async def leave(self) -> None:
        self._is_leaving = True
        for stop in self._stop_watching:
            stop()
        for task in self._tasks:
            task.cancel()

    def is_proven(self) -> bool:
        # Asked of the store each time: a server that we come to later may grant less.
        return self._node.clock.since_boot() < self._heard_at + self._store.session_timeout_s

    @property
    def session_state(self) -> SessionState:
        return self._store.session_state

    async def _register_first(self) -> None:
        """To open the logs after a crash may have taken longer than a session lasts: then another one begins."""
        for left in reversed(range(MOST_FIRST_SESSIONS)):
            try:
                await self._register(first=True)
                break
            except SessionLost:
                if not left:
                    raise
                await sleep(SESSION_AGAIN_SECONDS)
                await self._store.reconnect()

    async def _register(self, *, first: bool) -> None:
        node = self._node
        registration = self._registration._replace(
            intact_since=self.continuity.intact_since, features=FEATURES
        )
        data = znodes.encode_broker(registration, now_ms=node.clock.now_ms())
        deadline = node.clock.monotonic() + self._store.session_timeout_s + 5
        while True:
            asked_at = node.clock.since_boot()
            try:
                await self._store.create(self._path, data, ephemeral=True)
            except NodeExists:
                if not await self._replace_predecessor(data, deadline, may_refuse=first):
                    continue
            try:
                found = await self._store.get(self._path)
            except NoNode:
                continue
            if found.owner == self._store.session_id:
                break
        self._own_sessions.add(found.owner)
        self.continuity.registered(found.created)
        node.broker_epoch = found.created
        self._registered.set()
        self._asked_at = asked_at
        self._heard_at = asked_at - UNHEARD * self._store.session_timeout_s
        log.info("broker %s is registered, epoch %s", node.broker_id, node.broker_epoch)

    async def _replace_predecessor(self, data: bytes, deadline: float, *, may_refuse: bool) -> bool:
        """A node of our id: our own of an earlier session, which we replace in one step, so that nobody takes us for gone; or
        another broker's, which stays. Whether it was replaced.

        A copy of our data directory knows our sessions too, but hardly has our addresses.
        """
        node, store = self._node, self._store
        try:
            found = await store.get(self._path)
            endpoints = _endpoints(node.broker_id, found.data)
            if found.owner == store.session_id or (
                found.owner in self._own_sessions and endpoints == self._registration.endpoints
            ):
                await store.multi(
                    [Delete(self._path, found.version), Create(self._path, data, ephemeral=True)]
                )
                return True
        except (NoNode, BadVersion):
            return False
        at = ", ".join(f"{each.host}:{each.port}" for each in endpoints.values())
        if may_refuse and node.clock.monotonic() > deadline:
            raise AlreadyRegistered(
                f"broker {node.broker_id} is already in the cluster, at {at}; "
                "stop it, or give this one another id (--broker-id)"
            )
        if found.created != self._waited_for:
            self._waited_for = found.created
            log.warning(
                "another broker with id %s is registered, at %s: waiting for its session to end",
                node.broker_id,
                at,
            )
        await sleep(RETRY_SECONDS)
        return False

    async def until_registered(self) -> None:
        """A controller may see our node and write to us before we know its epoch. Kafka's says so once. Not for ever."""
        with suppress(TimeoutError):
            await wait_for(self._registered.wait(), KNOWN_SECONDS)

    # --- the lease

    async def _prove(self) -> None:
        while True:
            epoch = self._node.broker_epoch
            try:
                await wait_for(self._doubted.wait(), self._store.session_timeout_s / PROOFS_PER_TIMEOUT)
            except TimeoutError:
                pass
            self._doubted.clear()
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
        asked_at = node.clock.since_boot()
        try:
            await store.multi([Check(self._path)])
            found: int | None = (await store.get(self._path)).created  # after the check, so not older
        except NoNode:
            found = None
        if node.broker_epoch != epoch:
            return  # registered again meanwhile
        if found == epoch:
            self._has_proven(asked_at)
        else:
            log.warning("%s no longer belongs to this broker, although its session is alive", self._path)
            self._on_lost()

    def _has_proven(self, asked_at: float) -> None:
        timeout_s = self._store.session_timeout_s
        if asked_at - self._asked_at >= timeout_s / PROOFS_PER_TIMEOUT:
            self._heard_at, self._asked_at = self._asked_at, asked_at
        else:  # too soon for the server to have told the quorum of the one before
            self._heard_at = max(self._heard_at, asked_at - UNHEARD * timeout_s)

    async def _rejoin(self) -> None:
        """After the session, or only the registration, has ended: a new one."""
        while True:
            await self._lost.wait()
            log.warning("the registration in the metadata store has ended: joining the cluster again")
            while not self._is_leaving:
                try:
                    await self._store.reconnect()
                    self._lost.clear()  # whatever was lost until now is what we begin again
                    await self._register(first=False)
                    self._controller_changed.set()
                    self._look_at_all()
                    break
                except SessionLost:
                    await sleep(SESSION_AGAIN_SECONDS)
                except CancelledError:
                    raise
                except TreeError as error:
                    log.warning("cannot join the cluster again: %s", error)
                    await sleep(RETRY_SECONDS)
                except Exception:
                    log.exception("joining the cluster again failed")
                    await sleep(RETRY_SECONDS)

    def _on_registration(self, event: TreeEvent) -> None:
        """Deleted, or a connection that is back and may have missed it: the next proof tells whether we are still in."""
        if event.kind is EventKind.DELETED:
            self._heard_at = -inf
        if event.kind in (EventKind.DELETED, EventKind.CHANGED):
            self._doubted.set()

    def _on_lost(self) -> None:
        node = self._node
        self._heard_at = -inf
        node.broker_epoch = NO_BROKER_EPOCH
        self._registered.clear()
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
                log.warning("cannot find the controller: %s", error)
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
                    won = await become_controller(
                        self._store,
                        node.broker_id,
                        now_ms=node.clock.now_ms(),
                        known_epoch=node.image.controller_epoch,
                    )
                except (NodeExists, BadVersion, NoNode):
                    continue
                await node.controlling.begin(won)
                return
            controller_id = znodes.decode_controller(found.data)
            if controller_id == node.broker_id:
                is_own = found.owner == self._store.session_id or found.owner in self._own_sessions
                if not node.controlling.is_active and is_own:
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


def _endpoints(broker_id: int, data: bytes) -> Mapping[str, Endpoint]:
    """None of a node that is not a broker's."""
    try:
        return znodes.decode_broker(broker_id, data).endpoints
    except znodes.BadNode:
        return {}
