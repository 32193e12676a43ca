"""The work of the controller: it reacts when brokers join and leave, elects leaders, and continues reassignments.

First it reads the whole tree. From then on only this broker changes the image: every change is decided from it, and written
with a check of the controller's epoch. `channels` sends it to the other brokers.
"""

import logging
from asyncio import CancelledError, Event, Task, sleep, wait_for
from collections.abc import Callable, Collection
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.cluster.balancing import balance_leaders
from penstock.broker.cluster.channels import Channels
from penstock.broker.cluster.completing import complete_partitions, delete_marked
from penstock.broker.cluster.controller_requests import ControllerRequests
from penstock.broker.cluster.failed_directories import FailedDirectories
from penstock.broker.cluster.notifications import purge_notifications
from penstock.broker.cluster.reassignments import progress_reassignments
from penstock.broker.metadata.changes import Cluster
from penstock.controller import brokers
from penstock.controller.decision import Decision
from penstock.controller.effects import effects
from penstock.controller.standing import Standing
from penstock.metadata import znodes
from penstock.metadata.image import (
    Change,
    ClusterImage,
    ConfigsChanged,
    PartitionChanged,
    TopicCreated,
)
from penstock.metadata.load import Controllership, give_topic_id, load_epochs_seen, load_image
from penstock.metadata.tree import BadVersion, EventKind, MetadataTree, TreeError, TreeEvent
from penstock.metadata.znodes import EpochsSeen
from penstock.model.errors import ApiError
from penstock.model.ids import TopicPartition

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithAddresses,
        WithBrokerEpoch,
        WithBrokerId,
        WithChanges,
        WithClock,
        WithConfig,
        WithControlling,
        WithEffects,
        WithImage,
        WithLoop,
        WithPeers,
        WithRandom,
        WithRoles,
        WithTopics,
        WithTree,
    )

    class Needs(
        WithAddresses,
        WithBrokerEpoch,
        WithBrokerId,
        WithChanges,
        WithClock,
        WithConfig,
        WithControlling,
        WithEffects,
        WithImage,
        WithLoop,
        WithPeers,
        WithRandom,
        WithRoles,
        WithTopics,
        WithTree,
        Protocol,
    ): ...


log = logging.getLogger("penstock.broker")

UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
RETRY_SECONDS: Final = 0.5
NAMED_AT_MOST: Final = 20
"""In a line of the log."""
RETURN_SECONDS: Final = 30.0
"""How long a partition waits for the rest of its in-sync set when only such are back that have lost something."""


class Controlling(Cluster):
    def __init__(self, node: "Needs", tree: MetadataTree) -> None:
        self._node = node
        self._tree = tree
        self.is_active = False
        self.channels = Channels(node)
        self.shutting_down: set[int] = set()
        """Brokers that said that they will stop, while they are there: they lead only what nobody else can."""
        self.failed_directories = FailedDirectories(
            node, tree, self.channels, self._is_unclean_allowed, self.shutting_down, lambda: self.standing
        )
        self._brokers_changed = Event()
        self._is_complete = False  # nothing is left halfway in the tree, as far as we know
        self._made_topics: set[str] = set()
        """Of which the tree has told, and which may not be in the image yet."""
        self._must_list_topics = False
        self._tasks: list[Task[None]] = []
        self._watches: list[Callable[[], None]] = []
        self._won = Controllership(0, 0)
        self.requests = ControllerRequests(node, self)
        self._epochs_seen = EpochsSeen()
        self._missed_at: dict[int, float] = {}
        """Since when brokers are not there that some partition counts on."""
        self._arrived_at: dict[int, float] = {}
        """Since when brokers are there, as far as this controller knows."""
        self._waits: set[TopicPartition] = set()
        """Partitions that wait for more of their in-sync sets, as was logged."""
        self._next_look_s: float | None = None

    # --- becoming the controller, and ceasing to be

    async def begin(self, won: Controllership) -> None:
        node = self._node
        log.info("broker %s is the controller, epoch %s", node.broker_id, won.epoch)
        self._won = won
        self._made_topics.clear()
        self._missed_at.clear()
        self._waits.clear()
        self.shutting_down.clear()
        self._is_complete = False
        self._watches = [
            self._tree.watch(znodes.BROKER_IDS, self._on_brokers),
            self._tree.watch(znodes.DELETE_TOPICS, self._on_mark),
            self._tree.watch(znodes.TOPICS, self._on_topics),
        ]
        try:
            self._take_image(await self._read_image())
        except BaseException:
            self._stop_watching()
            raise
        self._arrived_at = dict.fromkeys(node.image.brokers, node.clock.monotonic())
        node.image.set_controller(node.broker_id, epoch=won.epoch)
        node.changes.control(self, won)
        self.is_active = True
        for broker in node.image.brokers.values():
            self.channels.open(broker.id, broker.epoch)
        self._tasks = [
            node.loop.create_task(self._follow_brokers()),
            node.loop.create_task(balance_leaders(node, self.shutting_down)),
            node.loop.create_task(purge_notifications(node, self._tree)),
        ]
        self.failed_directories.begin()
        self._brokers_changed.set()

    def _stop_watching(self) -> None:
        for stop in self._watches:
            stop()
        self._watches.clear()

    def resign(self) -> None:
        """From anywhere, also from a task of our own or while a change is made: that goes no further, see `Changes`."""
        if not self.is_active:
            return
        log.info("broker %s is no longer the controller", self._node.broker_id)
        self.is_active = False
        self._node.changes.resign()
        self._stop_watching()
        self.failed_directories.end()
        self.channels.close_all()
        self.shutting_down.clear()
        for task in self._tasks:
            task.cancel()

    def replaced(self) -> None:
        self.resign()

    async def reload(self) -> None:
        won = self._won
        fresh = await self._read_image()
        if not self.is_active or won is not self._won:
            raise BadVersion(znodes.CONTROLLER_EPOCH, "this broker is no longer the controller")
        self._take_image(fresh)
        self.channels.close_all()  # also to those that are gone
        for broker in self._node.image.brokers.values():
            self.channels.open(broker.id, broker.epoch)
        self.unsure()

    def unsure(self) -> None:
        self._is_complete = False
        self._brokers_changed.set()

    async def _read_image(self) -> ClusterImage:
        fresh = await load_image(self._tree, give_id=self._give_id)
        seen = await load_epochs_seen(self._tree)
        # Our image may have heard of a successor that the tree, read a little earlier, did not know.
        if not fresh.controller_epoch == self._won.epoch >= self._node.image.controller_epoch:
            # What we would tell of it would pass for the new controller's word.
            raise BadVersion(znodes.CONTROLLER_EPOCH, "another broker has become the controller")
        if seen.last:
            # Whoever was started again while nobody looked is let in by `_look_at_brokers`, as one that was lost.
            for broker_id in brokers.started_again(fresh, seen.last):
                fresh.remove_broker(broker_id)
        self._epochs_seen = seen if seen.last else brokers.seen_now(fresh, seen)
        return fresh

    def _take_image(self, fresh: ClusterImage) -> None:
        node = self._node
        for change in node.image.replace_with(fresh):
            node.effects.learn(change)
        node.addresses.changed()

    async def _give_id(self, topic: TopicCreated) -> TopicCreated:
        return await give_topic_id(self._tree, self._won, topic, self._node.random.randbytes(16))

    # --- telling

    def announce(self, change: Change) -> None:
        found = effects(self._node.image, (change,))
        if isinstance(change, PartitionChanged) and not found.told:
            # Its leader asked for it, and may not get the answer.
            topic_partition = TopicPartition(change.name, change.partition_index)
            found.told[change.partition.leader] = [topic_partition]
        for channel in self.channels:
            broker_id = channel.broker_id
            # Ours know a deleted topic by its id in UpdateMetadata; StopReplica has names only, which may be in use again. But
            # Kafka's brokers delete nothing without it.
            if broker_id in found.stopped and (not found.deleted or channel.is_kafka):
                channel.tell_to_stop(found.stopped[broker_id])
            if broker_id in found.told:
                channel.tell_roles(found.told[broker_id])
            if broker_id in found.new:
                channel.tell_roles(found.new[broker_id], new=True)
            if found.updated or found.deleted:
                channel.tell_metadata(found.updated, found.deleted)

    # --- brokers

    def _on_brokers(self, event: TreeEvent) -> None:
        self._brokers_changed.set()

    def _on_mark(self, event: TreeEvent) -> None:
        if event.kind in (EventKind.CREATED, EventKind.CHANGED):
            self.unsure()

    def _on_topics(self, event: TreeEvent) -> None:
        """A broker of Apache Kafka makes topics itself where nobody asked the controller: those that are made at first use."""
        name = event.path.removeprefix(f"{znodes.TOPICS}/")
        if event.path == znodes.TOPICS and event.kind is EventKind.CHANGED:
            self._must_list_topics = True  # we may have missed something
            self._brokers_changed.set()
        elif event.kind is EventKind.CREATED and "/" not in name and self._node.image.topic(name) is None:
            self._made_topics.add(name)
            self._brokers_changed.set()

    async def _look_at_made_topics(self) -> None:
        """One of our own making is in the image when it is our turn to decide."""
        image = self._node.image
        if self._must_list_topics:
            self._made_topics.update(await self._tree.children(znodes.TOPICS))
            self._must_list_topics = False
        names, self._made_topics = self._made_topics, set()
        unknown = await self._node.changes.make(
            lambda: Decision([name for name in sorted(names) if image.topic(name) is None], [], [])
        )
        if unknown:
            log.info("other brokers have made topics: %s", ", ".join(unknown[:NAMED_AT_MOST]))
            self._node.changes.look_again()

    async def _follow_brokers(self) -> None:
        node = self._node
        while True:
            with suppress(TimeoutError):
                await wait_for(self._brokers_changed.wait(), self._next_look_s)
            self._brokers_changed.clear()
            self._next_look_s = None
            try:
                if self._made_topics or self._must_list_topics:
                    await self._look_at_made_topics()
                if self._is_complete:
                    await self._look_at_brokers()
                else:
                    await self._begin_with_partitions()
            except CancelledError:
                raise
            except (TreeError, ApiError) as error:
                if not self.is_active:
                    return
                log.warning("the controller cannot react to brokers that joined or left: %s", error)
                await sleep(RETRY_SECONDS)
                self._brokers_changed.set()
            except Exception:
                log.exception("acting on brokers that came or went failed")
                await sleep(RETRY_SECONDS)
                self._brokers_changed.set()
            node.addresses.changed()

    async def _begin_with_partitions(self) -> None:
        """A new controller's first look, or after a write that failed. What cannot be completed must not keep partitions from
        their leaders."""
        self._is_complete = True  # before: what is left halfway meanwhile is for the next look
        try:
            await self._complete_partitions()
        except Exception:
            self._is_complete = False
            await self._look_at_brokers()
            raise
        await self._look_at_brokers()

    async def _look_at_brokers(self) -> None:
        node = self._node
        image = node.image
        found = {}
        for path, znode in (await self._tree.subtree(znodes.BROKER_IDS)).items():
            if path != znodes.BROKER_IDS:
                broker_id = int(path.rpartition("/")[2])
                found[broker_id] = znodes.decode_broker(broker_id, znode.data)._replace(epoch=znode.created)
        lost = {
            broker.id
            for broker in image.brokers.values()
            if broker.id not in found or found[broker.id].epoch != broker.epoch
        }
        for broker_id in lost:
            log.info("broker %s has left the cluster", broker_id)
            self.channels.close(broker_id)
            self.shutting_down.discard(broker_id)
            image.remove_broker(broker_id)
            self.failed_directories.forget(broker_id)
        arrived = [broker for broker in found.values() if broker.id not in image.brokers]
        intact = brokers.started_again_intact(self._epochs_seen.last, found)
        missing = (brokers.missing_brokers(image) | lost) - intact
        await self._miss(missing)
        undecided: list[TopicPartition] = []
        if missing or intact:
            undecided = await node.changes.make(
                lambda: brokers.broker_lost(
                    image,
                    missing,
                    is_unclean_allowed=self._is_unclean_allowed,
                    leaving=self.shutting_down,
                    intact=intact,
                    returned=missing & found.keys(),
                    standing=self.standing,
                )
            )
        for broker in arrived:
            log.info("broker %s has joined the cluster, epoch %s", broker.id, broker.epoch)
            self.shutting_down.discard(broker.id)
            image.add_broker(broker)
        node.addresses.changed()
        self._epochs_seen = brokers.seen_now(image, self._epochs_seen, intact)
        now = node.clock.monotonic()
        for broker in arrived:
            self._arrived_at[broker.id] = now
            self.channels.open(broker.id, broker.epoch, heard_at=now)
        undecided += await node.changes.make(
            lambda: brokers.broker_arrived(
                image,
                image.brokers.keys(),
                is_unclean_allowed=self._is_unclean_allowed,
                leaving=self.shutting_down,
                standing=self.standing,
            )
        )
        for channel in self.channels:
            channel.tell_metadata()
        await progress_reassignments(self._node, leaving=self.shutting_down)
        self._epochs_seen = brokers.seen_now(image, self._epochs_seen)
        await node.changes.make(lambda: brokers.epochs_seen(self._epochs_seen))
        self._look_again_at(undecided)

    async def _miss(self, missing: Collection[int]) -> None:
        """The others have a moment to say that they are not gone as well."""
        now = self._node.clock.monotonic()
        self._missed_at = {broker_id: self._missed_at.get(broker_id, now) for broker_id in missing}
        await self.channels.hear(self._last_missed_at)

    @property
    def _last_missed_at(self) -> float:
        return max(self._missed_at.values(), default=-inf)

    @property
    def standing(self) -> Standing:
        now = self._node.clock.monotonic()
        recent = [id for id, at in self._arrived_at.items() if now < at + RETURN_SECONDS]
        return Standing(self._epochs_seen, self.channels.silent(self._last_missed_at), recent)

    def _look_again_at(self, undecided: Collection[TopicPartition]) -> None:
        new = set(undecided) - self._waits
        self._waits = set(undecided)
        if new:
            log.warning(
                "%s partitions wait up to %.0f s for a leader or a smaller in-sync set: "
                "the other replicas in sync do not answer, or may have lost records",
                len(new),
                RETURN_SECONDS,
            )
        if undecided:
            standing, now = self.standing, self._node.clock.monotonic()
            ends_s = [self._arrived_at[broker_id] + RETURN_SECONDS - now for broker_id in standing.recent]
            self._next_look_s = (
                RETRY_SECONDS if standing.silent else max(RETRY_SECONDS, min(ends_s, default=0.0))
            )

    async def _complete_partitions(self) -> None:
        await delete_marked(self._node)
        await complete_partitions(self._node, leaving=self.shutting_down)
        await progress_reassignments(self._node, leaving=self.shutting_down)

    def config_changed(self, change: ConfigsChanged) -> None:
        if self.is_active and UNCLEAN_ELECTION in (change.overrides or {}):
            self._brokers_changed.set()  # partitions without a leader are looked at again

    def _is_unclean_allowed(self, topic: str) -> bool:
        node = self._node
        return bool(node.config.topic_value(node.image.topic_overrides(topic), UNCLEAN_ELECTION))
