"""The broker's metrics: a copy of its state, taken on request, which a thread turns into text.

The copy is taken on the loop, a few partitions at a time; the text of thousands of partitions takes a while to make, and is made
beside the loop (`broker/metrics/page.py`). A request that comes while a page is being made gets that page. What is counted on the
path of a request is in `request_counts` and `traffic`.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from penstock.broker.metrics.activity import Activity, Networked, came_and_went, copy_activity
from penstock.broker.metrics.busy_time import BusyTime
from penstock.broker.metrics.client_metrics import ClientMetricsFacts
from penstock.broker.metrics.group_facts import GroupsCopy, GroupsFacts
from penstock.broker.metrics.quantiles import Histogram
from penstock.broker.partitions.damage import current_damage
from penstock.broker.partitions.waits import FetchWait
from penstock.broker.upkeep.cleaner_status import CleanerStatus
from penstock.metadata.image import NO_LEADER
from penstock.metadata.session_state import SessionState
from penstock.model.endpoints import bracketed
from penstock.net.http import Page
from penstock.runtime.loop_lag import Lags, LoopLag, waits_for_cores

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithCleaner,
        WithClientMetrics,
        WithClientQuotas,
        WithMembership,
        WithPools,
    )
    from penstock.broker.metrics.activity import Needs as ActivityNeeds
    from penstock.broker.metrics.group_facts import Needs as GroupsNeeds
    from penstock.broker.partitions.partition import Partition
    from penstock.metadata import image
    from penstock.net.listener import Listener

    class Needs(
        GroupsNeeds,
        ActivityNeeds,
        WithCleaner,
        WithClientMetrics,
        WithClientQuotas,
        WithMembership,
        WithPools,
        Protocol,
    ): ...


PATH: Final = "/metrics"
BUDGET_SECONDS: Final = 0.002
LOOK_AT_THE_CLOCK_EVERY: Final = 16


class PartitionFacts(NamedTuple):
    topic: str
    partition: str
    directory: str
    size_bytes: int
    start_offset: int
    end_offset: int
    segments: int
    last_stable_offset_lag: int
    producers: int
    is_leader: bool
    replicas: int
    in_sync: int
    min_in_sync: int
    cleaner: CleanerStatus | None
    is_damaged: bool
    leader: int = NO_LEADER
    preferred_leader: int = NO_LEADER
    high_watermark: int = 0
    messages_in: int = 0
    bytes_in: int = 0
    """Since this broker leads it; what came before is in its topic's `traffic`."""
    fetch_waits: int = 0
    commit_waits: int = 0
    deletion_waits: int = 0


class ClusterFacts(NamedTuple):
    """What Kafka's controller counts."""

    is_controller: bool
    brokers: int
    topics: int
    partitions: int
    offline_partitions: int
    imbalanced_partitions: int
    topics_led: tuple[tuple[str, int], ...] = ()
    """Whose first partition this broker leads, with the number of their partitions."""
    addresses: tuple[tuple[int, str], ...] = ()
    """Of brokers."""
    cluster_id: str = ""


class BrokerFacts(NamedTuple):
    partitions: list[PartitionFacts]
    cluster: ClusterFacts
    offline_replicas: int
    reassigning: int
    online_directories: list[str]
    offline_directories: list[str]
    connections: dict[str, int]  # by listener name
    cleaner_looked_ms_ago: int
    cleaner_is_dead: bool
    loop_lag: Lags
    client_metrics: ClientMetricsFacts
    now_ms: int
    strays: dict[str, int]  # by log directory
    session: SessionState | None  # with ZooKeeper
    throttled: list[
        tuple[str, int, int]
    ]  # quota, how often somebody had to wait for it, milliseconds of all waits
    activity: Activity | None = None
    groups: GroupsFacts | None = None
    spelling: str = "strimzi"


class Metrics:
    def __init__(self, node: "Needs", listeners: "list[Listener]", worked: Callable[[], float]) -> None:
        """`worked`: for how many seconds the loop's thread has worked so far, or waited for a core."""
        self._node = node
        self._listeners = listeners
        self._lags = Histogram()
        self._lag = LoopLag(node.loop, waits_for_cores(), lambda lag: self._lags.note(int(lag * 1_000_000)))
        self._busy = BusyTime(node.loop, worked, lambda: came_and_went(listeners), self._turn)
        self._groups = GroupsCopy(node)
        self._under_way: asyncio.Task[Page] | None = None

    def start(self) -> None:
        self._lag.start()
        self._busy.start()

    def stop(self) -> None:
        self._lag.stop()
        self._busy.stop()
        self._groups.stop()

    def _turn(self) -> None:
        """A new stretch of time, of which quantiles are."""
        self._node.request_counts.turn()
        self._node.flushes.times.turn()
        self._lags.turn()

    async def page(self) -> Page:
        if self._under_way is None:
            self._under_way = self._node.loop.create_task(self._make())
            self._under_way.add_done_callback(self._made)
        # A client that leaves does not take the page from the others.
        return await asyncio.shield(self._under_way)

    def _made(self, task: "asyncio.Task[Page]") -> None:
        self._under_way = None

    async def _make(self) -> Page:
        facts = await self.gather()
        return await self._node.pools.bulk.run(_page_of, facts)

    async def gather(self) -> BrokerFacts:
        node = self._node
        partitions: list[PartitionFacts] = []
        time = node.clock.monotonic
        began = time()
        min_in_sync: dict[str, int] = {}
        waiting: set[FetchWait] = set()
        for number, partition in enumerate(list(node.partitions)):
            if number % LOOK_AT_THE_CLOCK_EVERY == 0 and time() - began > BUDGET_SECONDS:
                await asyncio.sleep(0)
                began = time()
            topic = node.image.topic(partition.topic)
            if partition.is_gone or topic is None:
                continue
            if topic.name not in min_in_sync:
                overrides = node.image.topic_overrides(topic.name)
                min_in_sync[topic.name] = node.config.topic_value(overrides, "min.insync.replicas")
            placed = topic.partitions[partition.index]
            readers = partition.readers
            if readers.count:
                waiting.update(readers.of_committed, readers.of_stable, readers.followers)
            partitions.append(self._facts_of(partition, placed, min_in_sync[topic.name]))
        directories = node.partitions.log_directories
        idle, rates = self._busy.idle_and_rates()
        networked = Networked(self._listeners, self._lags, idle, rates)
        return BrokerFacts(
            partitions=partitions,
            activity=await copy_activity(node, networked, waiting_fetches=len(waiting)),
            groups=await self._groups.take(),
            spelling=node.config.get("penstock.metrics.spelling"),
            cluster=await self._cluster(),
            client_metrics=await self._client_metrics(),
            offline_replicas=sum(node.broker_id in failed for failed in node.image.failed_replicas.values()),
            reassigning=sum(
                bool(placed.adding or placed.removing)
                for topic in node.image.topics.values()
                for placed in topic.partitions
                if placed.leader == node.broker_id
            ),
            online_directories=[directory.path for directory in directories.online],
            offline_directories=list(directories.failed),
            connections={listener.name: len(listener.connections) for listener in self._listeners},
            cleaner_looked_ms_ago=node.cleaner.looked_ms_ago,
            cleaner_is_dead=node.cleaner.is_dead,
            loop_lag=self._lag.so_far(),
            now_ms=node.clock.now_ms(),
            strays={directory.path: len(directory.strays) for directory in directories.online},
            session=node.membership.session_state if node.is_clustered else None,
            throttled=list(node.client_quotas.throttle_times.of_each()),
        )

    def _facts_of(
        self, partition: "Partition", placed: "image.PartitionRegistration", min_in_sync: int
    ) -> PartitionFacts:
        log = partition.log
        status = self._node.cleaner.status(partition.topic, partition.index)
        messages_in, bytes_in = partition.came_in
        commit_waits, deletion_waits = partition.replica.waiting
        return PartitionFacts(
            topic=partition.topic,
            partition=str(partition.index),
            directory=log.directory.rsplit("/", 1)[0],
            size_bytes=log.size_bytes,
            start_offset=log.start_offset,
            end_offset=log.end_offset,
            segments=len(log.segments),
            last_stable_offset_lag=partition.high_watermark - partition.last_stable_offset,
            producers=len(log.producers),
            is_leader=placed.leader == self._node.broker_id,
            replicas=len(placed.replicas),
            in_sync=len(placed.isr),
            min_in_sync=min_in_sync,
            cleaner=status if log.options.compacted else None,
            is_damaged=current_damage(log, is_leader=partition.is_leader) is not None,
            leader=placed.leader,
            preferred_leader=placed.replicas[0] if placed.replicas else NO_LEADER,
            high_watermark=partition.high_watermark,
            messages_in=messages_in,
            bytes_in=bytes_in,
            fetch_waits=partition.readers.count,
            commit_waits=commit_waits,
            deletion_waits=deletion_waits,
        )

    async def _client_metrics(self) -> ClientMetricsFacts:
        of_clients = self._node.client_metrics
        facts = of_clients.facts()
        for report in of_clients.reports.snapshot(self._node.clock.now_ms()):
            facts.reports.append(report)
            await asyncio.sleep(0)
        return facts

    async def _cluster(self) -> ClusterFacts:
        image = self._node.image
        count = offline = imbalanced = 0
        topics_led: list[tuple[str, int]] = []
        for number, topic in enumerate(list(image.topics.values())):
            if number % 200 == 199:
                await asyncio.sleep(0)
            if topic.partitions and topic.partitions[0].leader == self._node.broker_id:
                topics_led.append((topic.name, len(topic.partitions)))
            for index, placed in enumerate(topic.partitions):
                count += 1
                failed = image.failed_replicas.get((topic.name, index), ())
                offline += placed.leader == NO_LEADER or placed.leader in failed
                imbalanced += bool(placed.replicas) and placed.leader != placed.replicas[0]
        return ClusterFacts(
            is_controller=image.controller_id == self._node.broker_id,
            brokers=len(image.brokers),
            topics=len(image.topics),
            partitions=count,
            offline_partitions=offline,
            imbalanced_partitions=imbalanced,
            topics_led=tuple(topics_led),
            addresses=tuple((id, _address(broker)) for id, broker in sorted(image.brokers.items())),
            cluster_id=image.cluster_id,
        )


def _address(broker: "image.BrokerRegistration") -> str:
    endpoint = next(iter(broker.endpoints.values()), None)
    return "" if endpoint is None else f"{bracketed(endpoint.host)}:{endpoint.port}"


def _page_of(facts: BrokerFacts) -> Page:
    from penstock.broker.metrics.page import (
        make_page,
    )  # with prometheus-client: 7 MB that most brokers never need

    return make_page(facts)
