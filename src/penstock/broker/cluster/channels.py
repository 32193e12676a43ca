"""From the controller to every broker, itself included: what to stop, then roles, then metadata.

The first LeaderAndIsr request to a broker is complete, even if it is empty: the broker need not keep what it does not name.

A broker of Apache Kafka differs in two ways. It follows only leaders of whom it has heard by UpdateMetadata, so they are
introduced first. And it deletes a topic by StopReplica, which says names and not ids: it goes out before any role for a new topic
of that name.

A channel remembers which partitions its broker must be told about, but not what to tell: a request is made from the image when
it is sent. So many quick changes become one request, and a request that is sent again after a failure is never outdated.
"""

import logging
from asyncio import CancelledError, Event, Future, Task, sleep, timeout
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from penstock.broker.cluster.members import is_penstock
from penstock.controller import announce
from penstock.controller.effects import DeletedTopic, partitions_of
from penstock.metadata.image import ClusterImage
from penstock.model.api_keys import ApiKey
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from penstock.wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from penstock.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from penstock.wire.schema import Message

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithBrokerId,
        WithClock,
        WithConfig,
        WithControlling,
        WithImage,
        WithLoop,
        WithPeers,
        WithRoles,
    )

    class Needs(
        WithBrokerId,
        WithClock,
        WithConfig,
        WithControlling,
        WithImage,
        WithLoop,
        WithPeers,
        WithRoles,
        Protocol,
    ): ...


log = logging.getLogger("penstock.broker")

FIRST_PAUSE_SECONDS: Final = 0.05
LONGEST_PAUSE_SECONDS: Final = 1.0
KAFKAS_PAUSE_SECONDS: Final = 0.1
"""A broker of Apache Kafka that starts tells clients of a cluster without brokers until it hears from the controller."""
ANSWER_SECONDS: Final = 0.5
"""How long a decision waits for brokers that do not answer, before it is made without those partitions that need them."""

R = TypeVar("R", bound=LeaderAndIsrResponse | StopReplicaResponse | UpdateMetadataResponse)


class Channel:
    def __init__(
        self,
        node: "Needs",
        broker_id: int,
        broker_epoch: int,
        *,
        heard_at: float,
        on_answer: Callable[[], None],
    ) -> None:
        self._node = node
        self._image: ClusterImage = node.image
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.heard_at = heard_at
        """When that was sent which the broker answered last."""
        self._on_answer = on_answer
        registration = node.image.brokers.get(broker_id)
        self.is_kafka = registration is not None and not is_penstock(registration)
        self._is_first = True
        self._introduced: frozenset[tuple[int, int]] = frozenset()
        self._roles: dict[
            TopicPartition, None
        ] = {}  # these in their order, too: a set of names has one of its own
        self._new: set[TopicPartition] = set()
        self._metadata: dict[TopicPartition, None] = {}
        self._whole_metadata = True
        self._must_update = True
        self._deleted: list[DeletedTopic] = []
        self._stopped: dict[TopicPartition, int] = {}
        self._stopping: dict[TopicPartition, int] = {}
        self._wake = Event()
        self._wake.set()
        self._is_idle = False
        self._settled: dict[Future[None], None] = {}  # in their order
        self._task: Task[None] = node.loop.create_task(self._run())

    # --- what is to be told

    def tell_roles(self, topic_partitions: Iterable[TopicPartition], *, new: bool = False) -> None:
        self._roles.update(dict.fromkeys(topic_partitions))
        if new:
            self._new.update(topic_partitions)
        self._wake.set()

    def tell_metadata(
        self, topic_partitions: Iterable[TopicPartition] = (), deleted: Collection[DeletedTopic] = ()
    ) -> None:
        """Also without partitions: the brokers have changed."""
        self._metadata.update(dict.fromkeys(topic_partitions))
        self._deleted += deleted
        if not self.is_kafka:
            self._forget_to_stop({topic.name for topic in deleted})
        self._must_update = True
        self._wake.set()

    def tell_to_stop(self, topic_partitions: dict[TopicPartition, int]) -> None:
        """Replicas that are to go, with the leader epoch that says so."""
        self._stopped.update(topic_partitions)
        self._wake.set()

    def _forget_to_stop(self, topics: Container[str]) -> None:
        """Deleted topics go by their id. Said by name and late, it would hit the next topic of that name."""
        for waiting in (self._stopped, self._stopping):
            for topic_partition in [
                topic_partition for topic_partition in waiting if topic_partition.topic in topics
            ]:
                del waiting[topic_partition]

    def settled(self) -> "Future[None]":
        """Done when the broker has taken what it has to hear of by now. Cancel it to wait no more."""
        future: Future[None] = self._node.loop.create_future()
        if self._is_idle and not self._wake.is_set():
            future.set_result(None)
        else:
            self._settled[future] = None
            future.add_done_callback(lambda done: self._settled.pop(done, None))
        return future

    def close(self) -> None:
        self._task.cancel()
        self._resolve()

    def _resolve(self) -> None:
        for future in tuple(self._settled):
            if not future.done():
                future.set_result(None)

    # --- telling

    async def _run(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            if not self._wake.is_set():
                self._is_idle = True
                self._resolve()
            await self._wake.wait()
            self._is_idle = False
            self._wake.clear()
            try:
                await self._tell()
                pause = FIRST_PAUSE_SECONDS
            except CancelledError:
                raise
            except (OSError, ApiError) as error:
                log.info("cannot send the cluster's state to broker %s: %s", self.broker_id, error)
                self._wake.set()
                await sleep(pause)
                pause = min(2 * pause, KAFKAS_PAUSE_SECONDS if self.is_kafka else LONGEST_PAUSE_SECONDS)
            except Exception:
                log.exception("telling broker %s failed", self.broker_id)
                self._wake.set()
                await sleep(LONGEST_PAUSE_SECONDS)

    async def _tell(self) -> None:
        await self._introduce_leaders()
        while self._stopped:  # then at once the roles: a topic may have been deleted and made again
            await self._tell_to_stop_now()
        await self._tell_roles_now()
        await self._tell_metadata_now()

    async def _introduce_leaders(self) -> None:
        """A broker of Apache Kafka follows nobody of whom it has not heard by UpdateMetadata, and does not say so."""
        there = self._registered()
        if (self._roles or self._is_first) and not there <= self._introduced:
            request = announce.update_metadata(self._image, (), broker_epoch=self.broker_epoch)
            await self._ask(request, UpdateMetadataResponse)
            self._introduced = there

    def _registered(self) -> frozenset[tuple[int, int]]:
        return frozenset((broker.id, broker.epoch) for broker in self._image.brokers.values())

    async def _tell_roles_now(self) -> None:
        if not self._roles and not self._is_first:
            return
        roles, self._roles = self._roles, {}
        new, self._new = self._new, set()
        try:
            request = announce.leader_and_isr(
                self._image,
                self.broker_id,
                roles,
                broker_epoch=self.broker_epoch,
                is_full=self._is_first,
                listener=self._node.config.get("inter.broker.listener.name"),
                new=new,
            )
            response = await self._ask(request, LeaderAndIsrResponse)
            await self._node.controlling.failed_directories.answered(self.broker_id, response)
        except BaseException:
            self._roles = roles | self._roles
            self._new |= new
            raise
        self._report_other_topics(response)
        self._is_first = False

    def _report_other_topics(self, response: LeaderAndIsrResponse) -> None:
        """A broker of Apache Kafka that was away when a topic was deleted has its files, and takes no other one of that name."""
        names = [
            self._image.topic_name(topic.topic_id) or "?"
            for topic in response.topics
            if any(each.error_code == ErrorCode.INCONSISTENT_TOPIC_ID for each in topic.partition_errors)
        ]
        if names:
            log.warning(
                "broker %s has files of other topics with the names %s, which were deleted while it was away: "
                "stop it, remove them from its log directories, and start it again",
                self.broker_id,
                ", ".join(names),
            )

    async def _tell_metadata_now(self) -> None:
        if not self._must_update:
            return
        topic_partitions, self._metadata = self._metadata, {}
        deleted, self._deleted = self._deleted, []
        whole, self._whole_metadata = self._whole_metadata, False
        self._must_update = False
        there = self._registered()
        try:
            request = announce.update_metadata(
                self._image,
                announce.ALL if whole else topic_partitions,
                deleted=deleted,
                broker_epoch=self.broker_epoch,
            )
            await self._ask(request, UpdateMetadataResponse)
        except BaseException:
            self._metadata = topic_partitions | self._metadata
            self._deleted[:0] = deleted
            self._whole_metadata = whole
            self._must_update = True
            raise
        self._introduced = there

    async def _tell_to_stop_now(self) -> None:
        if not self._stopped:
            return
        stopping, self._stopped = self._stopped, {}
        self._stopping = stopping
        try:
            request = announce.stop_replica(
                self._image, stopping, broker_epoch=self.broker_epoch, delete=True
            )
            await self._ask(request, StopReplicaResponse)
        except BaseException:
            self._stopped = {**stopping, **self._stopped}
            raise
        finally:
            self._stopping = {}

    async def _ask(self, request: Message, response: type[R]) -> R:
        sent_at = self._node.clock.monotonic()
        answer = await self._send(request, response)
        if answer.error_code:
            raise ApiError(ErrorCode(answer.error_code))
        self.heard_at = sent_at
        self._on_answer()
        return answer

    async def _send(self, request: Message, response: type[R]) -> R:
        node = self._node
        if self.broker_id == node.broker_id:
            answer: Message
            if isinstance(request, LeaderAndIsrRequest):
                answer = await node.roles.lead_or_follow(request)
            elif isinstance(request, UpdateMetadataRequest):
                answer = await node.roles.update(request)
            else:
                assert isinstance(request, StopReplicaRequest)
                answer = await node.roles.stop_replicas(request)
            assert isinstance(answer, response)
            return answer
        timeout_s = node.config.get("controller.socket.timeout.ms") / 1000
        version = await node.spoken.version(self.broker_id, ApiKey(request.API_KEY))
        return await node.peers.ask(self.broker_id, request, response, version=version, timeout_s=timeout_s)


class Channels:
    """All of them, while this broker is the controller."""

    def __init__(self, node: "Needs") -> None:
        self._node = node
        self._channels: dict[int, Channel] = {}
        self._answered = Event()

    def open(self, broker_id: int, broker_epoch: int, *, heard_at: float = -inf) -> None:
        """A broker came: it hears of everything. `heard_at`: when it was registered, if that was just now."""
        self.close(broker_id)
        channel = self._channels[broker_id] = Channel(
            self._node, broker_id, broker_epoch, heard_at=heard_at, on_answer=self._answered.set
        )
        channel.tell_roles(partitions_of(self._node.image, broker_id))

    def close(self, broker_id: int) -> None:
        channel = self._channels.pop(broker_id, None)
        if channel is not None:
            channel.close()

    def close_all(self) -> None:
        for broker_id in tuple(self._channels):
            self.close(broker_id)

    def get(self, broker_id: int) -> Channel | None:
        return self._channels.get(broker_id)

    def __iter__(self) -> Iterator[Channel]:
        return iter(tuple(self._channels.values()))

    def silent(self, since: float) -> set[int]:
        """The brokers that have not answered anything that was sent since then; not ourselves."""
        own = self._node.broker_id
        return {id for id, channel in self._channels.items() if channel.heard_at < since and id != own}

    async def hear(self, since: float) -> None:
        """Let them answer; not for ever."""
        for broker_id in self.silent(since):
            self._channels[broker_id].tell_metadata()
        try:
            async with timeout(ANSWER_SECONDS):
                while self.silent(since):
                    self._answered.clear()
                    await self._answered.wait()
        except TimeoutError:
            pass

    async def settle(self, timeout_s: float) -> None:
        """Wait until every broker knows what is decided by now, but not for ever: one that does not answer is not waited for."""
        futures = [channel.settled() for channel in self._channels.values()]
        try:
            async with timeout(timeout_s):
                for future in futures:
                    await future
        except TimeoutError:
            pass
        finally:
            for future in futures:
                future.cancel()
