"""The roles of this broker's replicas, and the fetches of their followers.

The controller tells us with LeaderAndIsr which partitions we lead and which we follow, with StopReplica which replicas are
removed, and with UpdateMetadata the state of the rest of the cluster. Requests of an older controller, and requests for an
earlier registration of this broker, are refused.
"""

import logging
from asyncio import Lock, Task, sleep
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.cluster.failed_directories import DirectoryReports
from penstock.broker.partitions.partition import Partition
from penstock.broker.replication.fetchers import ReplicaFetchers
from penstock.broker.replication.isr_changes import IsrChanges
from penstock.broker.replication.quotas import ReplicationQuotas
from penstock.broker.replication.returning_logs import load_unopened, take_strays_back
from penstock.broker.upkeep.strays import find_strays
from penstock.controller.announce import RequestType, apply_update, deleted_topics
from penstock.metadata import image
from penstock.metadata.image import NO_BROKER_EPOCH
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.storage.segments import Slice
from penstock.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    LeaderAndIsrTopicState,
)
from penstock.wire.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
)
from penstock.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

if TYPE_CHECKING:
    from penstock.broker.cluster.failed_directories import Needs as DirectoryReportsNeeds
    from penstock.broker.facets import (
        WithAddresses,
        WithController,
        WithControlling,
        WithCoordinators,
        WithEffects,
        WithLogMoves,
        WithMembership,
        WithPools,
        WithTree,
    )
    from penstock.broker.replication.fetcher import Needs as FetcherNeeds
    from penstock.broker.replication.isr_changes import Needs as IsrChangesNeeds
    from penstock.broker.replication.quotas import Needs as QuotasNeeds

    class Needs(
        DirectoryReportsNeeds,
        FetcherNeeds,
        IsrChangesNeeds,
        QuotasNeeds,
        WithAddresses,
        WithController,
        WithControlling,
        WithCoordinators,
        WithEffects,
        WithLogMoves,
        WithMembership,
        WithPools,
        WithTree,
        Protocol,
    ): ...


log = logging.getLogger("penstock.broker")

FromController = LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest

CHANGED_AT_ONCE: Final = 4
"""Partitions that change their roles before others get their turn; each writes a file of epochs, a new one makes its log."""


class Roles:
    def __init__(self, node: "Needs") -> None:
        self._node = node
        self.quotas = ReplicationQuotas(node, lambda: self.fetchers.release())
        self.fetchers = ReplicaFetchers(node, self.quotas.follower)
        self.isr_changes = IsrChanges(node)
        self._directory_reports = DirectoryReports(node, node.tree)
        self._lock = Lock()  # one request of the controller at a time, in the order in which they came
        self._lag_check: Task[None] | None = None

    def start(self) -> None:
        self._lag_check = self._node.loop.create_task(self._check_lag())

    def stop(self) -> None:
        self.fetchers.stop()
        self.isr_changes.stop()
        self._directory_reports.stop()
        if self._lag_check is not None:
            self._lag_check.cancel()

    # --- what the controller says

    async def _until_known(self, request: FromController) -> None:
        if request.broker_epoch >= 0 and self._node.broker_epoch == NO_BROKER_EPOCH:
            await self._node.membership.until_registered()

    def _check_sender(self, request: FromController) -> None:
        node = self._node
        image = node.image
        if request.controller_epoch < image.controller_epoch:
            raise ApiError(ErrorCode.STALE_CONTROLLER_EPOCH)
        # While we are not registered: meant for the process before us, whose roles are not ours, as its log may have been longer.
        if request.broker_epoch >= 0 and (
            node.broker_epoch == NO_BROKER_EPOCH or request.broker_epoch < node.broker_epoch
        ):
            raise ApiError(ErrorCode.STALE_BROKER_EPOCH)
        if request.controller_epoch > image.controller_epoch:
            # Before the image has the new epoch: what we would tell of it would pass for our successor's word.
            node.controlling.resign()
        if (image.controller_id, image.controller_epoch) != (request.controller_id, request.controller_epoch):
            image.set_controller(request.controller_id, epoch=request.controller_epoch)

    async def lead_or_follow(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        async with self._lock:
            await self._until_known(request)
            self._check_sender(request)
            node = self._node
            await node.membership.configs.learn(self._new_topics(request))
            await load_unopened(node, request)
            unreadable = await take_strays_back(node, request)
            self._check_sender(request)  # again: much may have happened
            for leader in request.live_leaders:
                if node.peers.address(leader.broker_id) is None:  # else known by our own listener's name
                    node.peers.set_address(leader.broker_id, leader.host_name, leader.port)
            errors: list[LeaderAndIsrTopicError] = []
            done = 0
            for topic in request.topic_states:
                results = []
                for state in topic.partition_states:
                    await node.cuts.settled(topic.topic_id, state.partition_index)
                    self._check_sender(request)  # a cut takes its time: our session may have ended meanwhile
                    if (topic.topic_id, state.partition_index) in unreadable:
                        error = ErrorCode.KAFKA_STORAGE_ERROR  # rather than an empty log in its place
                    else:
                        error = self._change(topic.topic_name, topic.topic_id, state)
                    results.append(
                        LeaderAndIsrPartitionError(partition_index=state.partition_index, error_code=error)
                    )
                    done += 1
                    if done % CHANGED_AT_ONCE == 0:
                        await sleep(0)
                errors.append(LeaderAndIsrTopicError(topic_id=topic.topic_id, partition_errors=results))
            return LeaderAndIsrResponse(topics=errors)

    def _new_topics(self, request: LeaderAndIsrRequest) -> list[str]:
        """Those that we have to open something of, and have not heard of yet by any other way."""
        known = self._node.image
        return [
            topic.topic_name
            for topic in request.topic_states
            if known.topic_with_id(topic.topic_id) is None
            or not known.has_config_node(image.TOPICS, topic.topic_name)
            if not self._holds_all(topic)
        ]

    def _holds_all(self, topic: LeaderAndIsrTopicState) -> bool:
        held = self._node.partitions.topic(topic.topic_id)
        return held is not None and all(held.has(state.partition_index) for state in topic.partition_states)

    def _change(self, name: str, topic_id: bytes, state: LeaderAndIsrPartitionState) -> ErrorCode:
        node = self._node
        placed = image.PartitionRegistration(
            tuple(state.replicas),
            tuple(state.isr),
            state.leader,
            state.leader_epoch,
            state.partition_epoch,
            tuple(state.adding_replicas),
            tuple(state.removing_replicas),
        )
        if node.broker_id not in placed.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        try:
            partition = node.effects.open_partition(
                name, topic_id, state.partition_index, is_new=state.is_new
            )
        except ApiError as error:
            return error.code
        except OSError as error:
            node.report_disk_fault(f"cannot open {name}-{state.partition_index}", error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        if (placed.leader_epoch, placed.partition_epoch) <= (
            partition.leader_epoch,
            partition.replica.partition_epoch,
        ):
            return ErrorCode.NONE  # we know better already
        try:
            self._give_role(partition, topic_id, placed)
        except OSError as error:
            node.report_disk_fault(f"cannot note the leader epoch of {partition}", error, partition)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    def _give_role(self, partition: Partition, topic_id: bytes, placed: image.PartitionRegistration) -> None:
        node = self._node
        led_before, epoch_before = partition.is_leader, partition.leader_epoch
        if placed.leader == node.broker_id:
            self.fetchers.leave(partition)
            partition.lead(placed, node.broker_id)
        else:
            partition.follow(placed)
            if placed.leader_epoch == epoch_before and not led_before:
                pass  # its leader is the same, only the set of replicas is not
            elif placed.leader == image.NO_LEADER:
                self.fetchers.leave(partition)
            else:
                self.fetchers.follow(partition, topic_id, placed.leader)
        self._tell_coordinator(partition, led_before=led_before, epoch_before=epoch_before)

    def _tell_coordinator(self, partition: Partition, *, led_before: bool, epoch_before: int) -> None:
        host = self._node.coordinator_of(partition.topic)
        if host is None:
            return
        if partition.is_leader:
            if not led_before or partition.leader_epoch != epoch_before:
                host.partition_led(partition.index)
        elif led_before:
            host.partition_lost(partition.index)

    async def stop_replicas(self, request: StopReplicaRequest) -> StopReplicaResponse:
        async with self._lock:
            await self._until_known(request)
            self._check_sender(request)
            results = []
            for topic in request.topic_states:
                for state in topic.partition_states:
                    topic_partition = TopicPartition(topic.topic_name, state.partition_index)
                    results.append(
                        StopReplicaPartitionError(
                            topic_name=topic.topic_name,
                            partition_index=state.partition_index,
                            error_code=self._stop(topic_partition, state),
                        )
                    )
            return StopReplicaResponse(partition_errors=results)

    def _stop(self, topic_partition: TopicPartition, state: StopReplicaPartitionState) -> ErrorCode:
        try:
            partition = self._node.partitions.get(*topic_partition)
        except ApiError:
            return ErrorCode.NONE
        if 0 <= state.leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        led_before = partition.is_leader
        if state.delete_partition:
            self._delete(partition)
        else:
            self.fetchers.leave(partition)
            partition.have_no_leader()
            self._tell_coordinator(partition, led_before=led_before, epoch_before=partition.leader_epoch)
        return ErrorCode.NONE

    def _delete(self, partition: Partition) -> None:
        led_before = partition.is_leader
        self.fetchers.leave(partition)
        self._node.log_moves.cancel(partition)
        self._node.partitions.delete_partition(partition.topic, partition.index)
        self._tell_coordinator(partition, led_before=led_before, epoch_before=partition.leader_epoch)

    async def _set_strays_aside(self) -> None:
        node = self._node
        strays = find_strays(node.image, node.broker_id, node.partitions.log_directories)
        led: list[Partition] = []
        for number, topic_partition in enumerate(strays, 1):
            try:
                partition = node.partitions.get(*topic_partition)
            except ApiError:
                continue  # it is not open
            if partition.is_leader:
                led.append(partition)
            self.fetchers.leave(partition)
            node.log_moves.cancel(partition)
            if number % CHANGED_AT_ONCE == 0:
                await sleep(0)
        aside = node.partitions.leave_strays(strays)
        for partition in led:
            self._tell_coordinator(partition, led_before=True, epoch_before=partition.leader_epoch)
        for directory, logs in aside.items():
            await node.pools.bulk.run(node.partitions.make_strays, directory, logs)

    async def update(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        async with self._lock:
            await self._until_known(request)
            self._check_sender(request)
            node = self._node
            for topic_id in deleted_topics(request):
                # Also one that we were given a part of, but never told about: it came and went too fast.
                held = node.partitions.topic(topic_id)
                if held is not None:
                    node.partitions.delete_topic(held.name)
            # After that: what is missing now without a word is not known to be deleted.
            if not node.is_controller:  # whose image is what it tells the others
                for change in apply_update(node.image, request):
                    node.effects.learn(change)
                node.addresses.changed()
            self.fetchers.leave_gone()
            if request.type == RequestType.FULL:
                await self._set_strays_aside()
            if request.topic_states or request.type == RequestType.FULL or not node.image.topics:
                node.membership.welcomed.set()
            return UpdateMetadataResponse()

    def directory_failed(self) -> None:
        """The partitions in it are gone by now."""
        self._node.membership.continuity.broke()
        self.fetchers.leave_gone()
        self._directory_reports.report()

    def step_down(self) -> None:
        """The controller does not know our registration any more: others lead what we led. Clients that are told so look
        elsewhere; else they would wait for followers that do not come.
        """
        node = self._node
        led = [partition for partition in node.partitions if partition.is_leader]
        if not led:
            return
        log.warning("this broker is no longer registered: it leads no partition until it is registered again")
        for partition in led:
            partition.have_no_leader()
            self._tell_coordinator(partition, led_before=True, epoch_before=partition.leader_epoch)
            known = node.image.partition(partition.topic, partition.index)
            if known is not None and known.leader == node.broker_id and not node.is_controller:
                change = image.PartitionChanged(
                    partition.topic, partition.index, known._replace(leader=image.NO_LEADER)
                )
                node.image.apply(change)

    # --- what followers ask

    def serve_follower(
        self,
        partition: Partition,
        follower: tuple[int, int],
        offset: int,
        max_bytes: int,
        *,
        start_offset: int,
        at_least_one: bool,
    ) -> Slice | None:
        """What a follower (its id and broker epoch) lacks, of at most so many bytes (-1: nothing); notes what it has."""
        log = partition.log
        if offset < log.start_offset or offset > log.end_offset:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        replica_id, broker_epoch = follower
        proposed = partition.follower_fetched(
            replica_id, offset, broker_epoch=broker_epoch, start_offset=start_offset
        )
        # Without a registration the controller could not tell it from one that is started again with an empty disk.
        is_registered = broker_epoch != NO_BROKER_EPOCH and replica_id in self._node.image.brokers
        if proposed is not None and is_registered:
            self.isr_changes.propose(partition, proposed)
        if max_bytes < 0:
            return None
        quota = self.quotas.leader
        if not (quota.is_active and quota.counts(partition)):
            return partition.read_as_replica(offset, max_bytes, at_least_one=at_least_one)
        if replica_id not in partition.replica.isr and quota.is_exceeded():
            return None
        found = partition.read_as_replica(offset, max_bytes, at_least_one=at_least_one)
        if found is not None:
            quota.record(found.size_bytes)
        return found

    async def _check_lag(self) -> None:
        """Those who have not caught up for replica.lag.time.max.ms leave the in-sync set."""
        node = self._node
        max_lag_ms = node.config.get("replica.lag.time.max.ms")
        while True:
            await sleep(max_lag_ms / 2000)
            for number, partition in enumerate(list(node.partitions), 1):
                try:
                    staying = partition.without_laggards(max_lag_ms)
                    if staying is not None:
                        self.isr_changes.propose(partition, staying)
                except Exception:
                    log.exception("%s: who lags behind cannot be said", partition)
                if number % 200 == 0:
                    await sleep(0)
