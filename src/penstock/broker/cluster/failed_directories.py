"""Failed log directories in a cluster: the broker is alive, but its replicas in the directory are offline.

The broker reports it with a node in the tree, as Kafka's brokers do. The controller then sends it all its roles again. A
replica that is answered with KAFKA_STORAGE_ERROR counts as failed: the controller elects other leaders, and Metadata shows the
replica as offline. The same answer counts at any other time, for example when a broker starts without one of its directories.
Failed replicas are forgotten when the broker leaves: the directory may be repaired at its next start.
"""

import logging
from asyncio import CancelledError, Event, Task, sleep
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.cluster.channels import Channels
from penstock.controller import brokers
from penstock.controller.effects import partitions_of
from penstock.controller.standing import Standing
from penstock.metadata import znodes
from penstock.metadata.image import NO_BROKER_EPOCH
from penstock.metadata.tree import MetadataTree, NoNode, TreeError, TreeEvent
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.wire.messages.leader_and_isr import LeaderAndIsrResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithBrokerEpoch, WithBrokerId, WithChanges, WithImage, WithLoop

    class Needs(WithBrokerEpoch, WithBrokerId, WithChanges, WithImage, WithLoop, Protocol): ...


log = logging.getLogger("penstock.broker")

RETRY_SECONDS: Final = 0.5


class DirectoryReports:
    """The broker's side: one node for all that failed since the last one."""

    def __init__(self, node: "Needs", tree: MetadataTree) -> None:
        self._node = node
        self._tree = tree
        self._task: Task[None] | None = None

    def report(self) -> None:
        if self._task is None or self._task.done():
            self._task = self._node.loop.create_task(self._report())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _report(self) -> None:
        """Until the store has taken it: nobody else can know."""
        data = znodes.encode_log_dir_event(self._node.broker_id)
        while True:
            try:
                # While there is no session there is a registration to come, and with it all roles are told anyway.
                if self._node.broker_epoch != NO_BROKER_EPOCH:
                    await self._tree.create(znodes.LOG_DIR_EVENT, data, sequence=True)
                return
            except TreeError as error:
                log.warning("cannot tell the controller about the failed log directory yet: %s", error)
                await sleep(RETRY_SECONDS)


class FailedDirectories:
    """The controller's side."""

    def __init__(
        self,
        node: "Needs",
        tree: MetadataTree,
        channels: Channels,
        is_unclean_allowed: Callable[[str], bool],
        shutting_down: Collection[int],
        standing: Callable[[], Standing],
    ) -> None:
        self._node = node
        self._tree = tree
        self._channels = channels
        self._is_unclean_allowed = is_unclean_allowed
        self._shutting_down = shutting_down
        self._standing = standing
        self._reported = Event()
        self._task: Task[None] | None = None
        self._stop_watching: Callable[[], None] = lambda: None

    def begin(self) -> None:
        self._stop_watching = self._tree.watch(znodes.LOG_DIR_EVENTS, self._on_event)
        self._task = self._node.loop.create_task(self._follow())
        self._reported.set()

    def end(self) -> None:
        self._stop_watching()
        if self._task is not None:
            self._task.cancel()

    # --- what brokers report

    def _on_event(self, event: TreeEvent) -> None:
        self._reported.set()

    async def _follow(self) -> None:
        while True:
            await self._reported.wait()
            self._reported.clear()
            try:
                await self._take_reports()
            except CancelledError:
                raise
            except TreeError as error:
                log.warning("cannot read which log directories failed: %s", error)
                await sleep(RETRY_SECONDS)
                self._reported.set()
            except Exception:
                log.exception("acting on failed log directories failed")
                await sleep(RETRY_SECONDS)
                self._reported.set()

    async def _take_reports(self) -> None:
        for name in await self._tree.children(znodes.LOG_DIR_EVENTS):
            path = f"{znodes.LOG_DIR_EVENTS}/{name}"
            try:
                broker_id = znodes.decode_log_dir_event(path, (await self._tree.get(path)).data)
                channel = self._channels.get(broker_id)
                if channel is not None:
                    log.info("a log directory of broker %s has failed", broker_id)
                    channel.tell_roles(partitions_of(self._node.image, broker_id))
                await self._tree.delete(path)
            except NoNode:
                continue  # another controller took it
            except znodes.BadNode as error:
                log.warning("%s", error)
                await self._tree.delete(path)

    # --- what they answer

    async def answered(self, broker_id: int, response: LeaderAndIsrResponse) -> None:
        """A broker has taken its roles, or some of them not: act upon what is new in that."""
        image = self._node.image
        failed: list[TopicPartition] = []
        works: list[TopicPartition] = []
        for topic in response.topics:
            name = image.topic_name(topic.topic_id)
            for each in topic.partition_errors:
                has_failed = each.error_code == ErrorCode.KAFKA_STORAGE_ERROR
                if name is None or not (has_failed or image.failed_replicas):
                    continue
                known = image.failed_replicas.get((name, each.partition_index), ())
                if has_failed != (broker_id in known):
                    (failed if has_failed else works).append(TopicPartition(name, each.partition_index))
        if failed:
            await self._fail(broker_id, failed)
        if works:
            self._forget(broker_id, works)
            await self._elect_again(broker_id)

    async def _fail(self, broker_id: int, topic_partitions: list[TopicPartition]) -> None:
        log.warning("broker %s has lost %s replicas with a log directory", broker_id, len(topic_partitions))
        image = self._node.image
        for name, index in topic_partitions:
            known = image.failed_replicas.get((name, index), ())
            image.set_failed_replicas(name, index, (*known, broker_id))
        try:
            await self._node.changes.make(
                lambda: brokers.replicas_failed(
                    image,
                    broker_id,
                    topic_partitions,
                    is_unclean_allowed=self._is_unclean_allowed,
                    leaving=self._shutting_down,
                    standing=self._standing(),
                )
            )
        except BaseException:
            self._forget(
                broker_id, topic_partitions
            )  # so that it is acted upon when the broker answers again
            raise
        self._tell(topic_partitions)

    async def _elect_again(self, broker_id: int) -> None:
        image = self._node.image
        await self._node.changes.make(
            lambda: brokers.broker_arrived(
                image,
                (broker_id,),
                is_unclean_allowed=self._is_unclean_allowed,
                leaving=self._shutting_down,
                standing=self._standing(),
            )
        )

    def forget(self, broker_id: int) -> None:
        """The broker is gone."""
        image = self._node.image
        topic_partitions = [
            TopicPartition(*topic_partition)
            for topic_partition, ids in image.failed_replicas.items()
            if broker_id in ids
        ]
        self._forget(broker_id, topic_partitions)

    def _forget(self, broker_id: int, topic_partitions: list[TopicPartition]) -> None:
        image = self._node.image
        for name, index in topic_partitions:
            known = image.failed_replicas.get((name, index), ())
            image.set_failed_replicas(name, index, [id for id in known if id != broker_id])
        if topic_partitions:
            self._tell(topic_partitions)

    def _tell(self, topic_partitions: list[TopicPartition]) -> None:
        for channel in self._channels:
            channel.tell_metadata(topic_partitions)
