"""One broker, from its log directories and its metadata store to a node that can serve, and back.

What it needs of the world comes in `Ports`, so that a whole cluster can run in one process under a simulated clock, disk, network
and store. The order of a start: the logs are taken and opened, the listeners listen (which is `process.py`'s or the simulation's
matter), then the broker joins its cluster, whose controller calls back at once. A stop is the reverse: leaders are moved away
first.
"""

import asyncio
import logging
import os
import random
import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from penstock.broker.access.doors import asks_for_logins
from penstock.broker.access.inter_broker import between_brokers
from penstock.broker.adoption.asking import members_asked
from penstock.broker.adoption.joining import first_line, kafkas_members, must_not_join
from penstock.broker.adoption.taken_producer_ids import take_producer_ids
from penstock.broker.cluster.completing import complete_partitions, delete_marked
from penstock.broker.metadata.token_expiry import expire_tokens
from penstock.broker.node import Node
from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.broker.requests.dispatch import Dispatch
from penstock.broker.requests.marks import Marks
from penstock.broker.upkeep.maintenance import Maintenance
from penstock.config.layers import BrokerConfig
from penstock.controller.brokers import led_on_after_unclean_stop
from penstock.metadata import znodes
from penstock.metadata.image import BrokerRegistration
from penstock.metadata.load import become_controller, load_image, prepare_tree, shared_key
from penstock.metadata.tree import MetadataTree, TreeError
from penstock.model.endpoints import Endpoint
from penstock.model.errors import ApiError
from penstock.model.ids import id_text
from penstock.runtime.clock import Clock
from penstock.runtime.files import Disk
from penstock.storage.chores import Flush
from penstock.storage.meta_properties import LogDirectoryError

if TYPE_CHECKING:
    from penstock.net.peers import Connect

log = logging.getLogger("penstock.broker")

DEFAULT_DATA: Final = "penstock-data"
DRAIN_SECONDS: Final = 5.0
KEY_BYTES: Final = 32


class StartError(Exception):
    """The broker cannot start; the text is one line for the operator."""


class Ports(NamedTuple):
    """The world, as far as a broker touches it."""

    loop: asyncio.AbstractEventLoop
    clock: Clock
    disk: Disk
    random: random.Random
    open_store: Callable[[HeldPartitions], Awaitable[MetadataTree]]
    connect: "Connect | None" = None
    """How other brokers are reached; None: over TCP."""
    boot_id: str = ""
    """Of this run of the machine, if it has one: see `cluster.continuity`."""


class BrokerServer:
    def __init__(self, config: BrokerConfig, ports: Ports, advertised: dict[str, Endpoint]) -> None:
        self._config = config
        self._ports = ports
        self._advertised = advertised
        self._maintenance: Maintenance | None = None
        self._expiring: asyncio.Task[None] | None = None
        self.tree: MetadataTree
        self.node: Node
        self.dispatch: Dispatch
        self.is_clustered = bool(config.get("zookeeper.connect"))

    # --- starting

    async def open(self, end: Callable[[str], None]) -> None:
        """Take the log directories and the store, and open the logs; `end` is called when the broker cannot continue."""
        ports = self._ports
        try:
            is_told_apart = self.is_clustered and between_brokers(self._config) != "PLAINTEXT"
        except ValueError as error:
            raise StartError(f"between brokers: {error}") from None
        partitions = self._open_data()
        try:
            self.tree = tree = await ports.open_store(partitions)
        except TreeError as error:
            raise StartError(str(error)) from None
        try:
            new_cluster_id = partitions.cluster_id() or id_text(ports.random.randbytes(16))
            is_known = partitions.cluster_id() is not None
            if self.is_clustered:
                await self._look_at_others(tree)
            partitions.claim(await prepare_tree(tree, new_cluster_id=new_cluster_id))
            if is_known and self.is_clustered:
                await take_producer_ids(tree, partitions.log_directories, self._config.node_id)
            needs_key = is_told_apart or asks_for_logins(self._config)
            key = await shared_key(tree, new_key=secrets.token_bytes(KEY_BYTES)) if needs_key else b""
            image = await load_image(tree, report=lambda text: log.warning("%s", text))
        except LogDirectoryError as error:
            raise StartError(str(error)) from None
        except (TreeError, OSError, znodes.BadNode) as error:
            raise StartError(f"cannot read the cluster's metadata: {error}") from None
        try:
            self.node = Node(
                self._config, tree, image, partitions, ports.loop, ports.clock, self._advertised, ports.random
            )
        except ValueError as error:  # names the option
            raise StartError(str(error)) from None
        self.node.marks = Marks(key if is_told_apart else b"")
        await self.node.passwords.seal_stored(tree, image, self.node.broker_id)
        self.node.end = end
        if key:
            self.node.decoys.learn(key)
        self.dispatch = Dispatch(self.node)

    async def _look_at_others(self, tree: MetadataTree) -> None:
        """Before anything is written: brokers of Apache Kafka may be such that we would harm their cluster."""
        members = await kafkas_members(tree, self._config)
        if not members:
            return
        try:
            async with members_asked(self._config, self._ports.loop, self._ports.connect) as ask:
                found = await must_not_join(tree, ask, self._config, members)
        except ValueError as error:  # names the option
            raise StartError(str(error)) from None
        for finding in found:
            log.warning("%s", finding.text)
        refusal = first_line(found)
        if refusal is not None:
            raise StartError(f"this broker does not join: {refusal}")

    async def join(self, registration: BrokerRegistration) -> None:
        """Become a member of the cluster: alone, also its controller; with others, when the controller has heard of us."""
        node = self.node
        if not self._config.is_set("advertised.listeners"):
            told = ",".join(map(str, registration.endpoints.values()))
            self._config.put_in_force({"advertised.listeners": told})
        if self.is_clustered:
            await self._join_others(registration)
        else:
            await self._be_alone(registration)
        self._maintenance = Maintenance(node)
        self._maintenance.start()
        node.cleaner.start()
        if node.tokens.is_on:
            self._expiring = node.loop.create_task(expire_tokens(node))

    async def _be_alone(self, registration: BrokerRegistration) -> None:
        tree, node = self.tree, self.node
        now_ms = node.clock.now_ms()
        data = znodes.encode_broker(registration, now_ms=now_ms)
        try:
            await tree.create(znodes.broker_path(node.broker_id), data, ephemeral=True)
            won = await become_controller(tree, node.broker_id, now_ms=now_ms)
            node.image.add_broker(registration)
            node.image.set_controller(node.broker_id, epoch=won.epoch)
            if not node.image.topics:
                from penstock.broker.adoption.adopt import adopt_logs

                online = node.partitions.log_directories.online
                await adopt_logs(tree, node.image, node.partitions.disk, online, self._config)
            else:
                is_closed = node.partitions.log_directories.is_closed
                await node.changes.make(lambda: led_on_after_unclean_stop(node.image, is_closed))
        except (LogDirectoryError, OSError, TreeError, ApiError) as error:
            raise StartError(str(error)) from None
        node.effects.reload_broker_configs()
        node.effects.open_logs()
        # What the last run was writing when it ended: a large topic takes several writes.
        await delete_marked(node)
        await complete_partitions(node, leaving=())
        node.effects.set_strays_aside()

    async def _join_others(self, registration: BrokerRegistration) -> None:
        from penstock.broker.cluster.continuity import Continuity
        from penstock.broker.cluster.membership import AlreadyRegistered

        node = self.node
        node.effects.reload_broker_configs()
        continuity = Continuity(node.partitions, self._ports.boot_id)
        node.effects.open_logs()
        continuity.logs_opened()
        try:
            membership = node.enter_cluster(registration, self._ports.connect, continuity)
        except ValueError as error:
            raise StartError(f"between brokers: {error}") from None
        try:
            await membership.join()
        except (AlreadyRegistered, TreeError) as error:
            raise StartError(str(error)) from None
        self._reserving = node.loop.create_task(node.producer_ids.reserve())

    def _open_data(self) -> HeldPartitions:
        config, ports = self._config, self._ports
        if not (config.is_set("log.dirs") or config.is_set("log.dir")):
            config.put_in_force({"log.dirs": os.path.abspath(DEFAULT_DATA)})
        directories = [os.path.abspath(path) for path in config.log_dirs]
        try:
            return HeldPartitions(
                ports.disk,
                directories,
                ports.clock,
                broker_id=config.node_id,
                is_clustered=self.is_clustered,
            )
        except LogDirectoryError as error:
            raise StartError(str(error)) from None
        except OSError as error:
            raise StartError(f"cannot use the data directory {error.filename}: {error.strerror}") from None

    # --- stopping

    async def hand_over(self) -> None:
        """Before anything else stops: have the controller move our leaders to others."""
        self.node.is_stopping = True
        if self.node.is_clustered:
            await self.node.hand_over()

    async def stop(self, close_connections: Callable[[], Any]) -> None:
        """`close_connections` is called when the requests that are being worked on are answered."""
        node = self.node
        node.is_stopping = True
        node.groups.close()  # first: it answers the members that are parked in a rebalance
        node.transactions.close()
        try:
            await asyncio.wait_for(self.node.answers.drain(), DRAIN_SECONDS)
        except TimeoutError:
            log.warning("stopping, although some requests are not answered yet")
        if node.is_clustered:
            await node.leave_cluster()
        close_connections()
        await node.cuts.drain()
        await node.log_moves.stop()
        await node.cleaner.stop()
        if self._expiring is not None:
            self._expiring.cancel()
        if self._maintenance is not None:
            await self._maintenance.stop()
        # At the same time: who takes our place as the controller need not wait for our disks.
        closing = node.pools.bulk.run(node.partitions.close, partial(node.pools.syncs.run_each, Flush.run))
        await asyncio.gather(closing, self.tree.close())
        node.pools.close()
