"""One look at a cluster: asks, works out rates and lags, and gives a `ClusterView`.

What changes all the time (partitions, ends of logs, groups, committed offsets) is asked at each look; what changes slowly
or costs much at longer intervals (`SLOWLY`). Metadata, ends and offsets of 10,000 topics and 10,000 groups on one broker
are about 40 requests.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from penstock.admin.health import Health, examine, judge, min_in_sync, partition_states
from penstock.admin.moves.cluster import ongoing
from penstock.admin.moves.model import Reassignment
from penstock.admin.offsets import EARLIEST, LATEST
from penstock.client.cluster_client import BrokerNode, ClusterClient
from penstock.client.errors import Refused, Unreachable
from penstock.client.leaders import Leader
from penstock.console.clusters import metrics_pages
from penstock.console.clusters.asking import Asker, ListedGroup, Members, Sizes
from penstock.console.clusters.end_offsets import EndHistory
from penstock.console.clusters.model import (
    SPARK_MARKERS,
    BrokerRow,
    ClusterView,
    GroupPartition,
    GroupRow,
    TopicRow,
    Totals,
)
from penstock.console.clusters.rates import Rates
from penstock.console.clusters.rows import group_row, leaders_of, readers_of, topic_row, totals_of
from penstock.model.ids import TopicPartition
from penstock.wire.messages.metadata import MetadataResponse, MetadataResponseTopic

T = TypeVar("T")

SLOWLY: Final = {"starts": 30.0, "sizes": 15.0, "examine": 30.0, "members": 5.0, "listeners": 60.0}
"""Seconds between two times of asking."""
CHANGED: Final = ("starts", "sizes", "members")
"""What a change by a person may have changed."""
NOBODY: Final = Members(0)
TIMES_PER_LOOK: Final = 500
"""Partitions whose records are asked for their timestamps."""
ALONE_PER_LOOK: Final = 10
"""Of them, those with a request of their own."""
WAITING_STATES: Final = frozenset({"Empty", "Dead"})
"""Groups in these have no members: nobody is asked about them."""


class _Groups(NamedTuple):
    listed: list[ListedGroup]
    committed: dict[str, dict[TopicPartition, int]]
    shared: dict[str, dict[TopicPartition, tuple[int, int | None]]]
    failed: dict[str, int]


class Looker:
    """Belongs to one thread. Remembers what the next look needs of the last one."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._ends = EndHistory()
        self._topic_rates: Rates[TopicPartition] = Rates()
        self._group_rates: Rates[str] = Rates()
        self._byte_rates: Rates[tuple[int, str]] = Rates()
        self._looked_up: dict[TopicPartition, int] = {}
        self._asked_at: dict[str, float] = {}
        self._starts: dict[TopicPartition, int] = {}
        self._sizes = Sizes({}, {})
        self._members: dict[str, Members] = {}
        self._listeners: dict[int, str] = {}
        self._minimums: dict[str, int] = {}
        self._examined: Health | None = None

    def look(
        self, client: ClusterClient, *, slowness: float = 1.0, is_after_change: bool = False
    ) -> ClusterView:
        """Unreachable where no broker of the cluster answers. `slowness` stretches the intervals of what costs much;
        `is_after_change` does not wait for what a change of topics or groups may have changed."""
        began_s = time.perf_counter()
        at_s = self._clock()
        described = client.metadata()
        nodes = {one.node_id: BrokerNode(one.node_id, one.host, one.port) for one in described.brokers}
        asker = Asker(client, nodes)
        # Offsets first, then the ends: what is committed in between cannot make a lag negative.
        groups = self._asked_groups(asker)
        leaders = leaders_of(described, nodes)
        ends = asker.offsets(leaders, LATEST)
        ended_s = self._clock()
        if is_after_change:
            for name in CHANGED:
                self._asked_at.pop(name, None)
        due = self._due(ended_s, slowness)
        if "starts" in due or not self._starts.keys() >= ends.keys():
            self._starts = asker.offsets(leaders, EARLIEST)
        if "sizes" in due:
            self._sizes = asker.sizes()
        if "members" in due:
            self._members = asker.members(
                (group for group in groups.listed if group.state not in WAITING_STATES),
                without_offsets={
                    group.name for group in groups.listed if not groups.committed.get(group.name)
                },
            )
        if "listeners" in due:
            self._listeners = asker.metrics_listeners()
        health = self._health(client, asker, described, is_due="examine" in due)
        rates = self._topic_rates.look({one: float(end) for one, end in ends.items()}, ended_s)
        topics = self._topics(described.topics, ends, rates)
        self._look_up_times(asker, groups, ends, leaders, ended_s)
        rows = self._groups(groups, ends, ended_s)
        by_broker = self._by_broker(nodes, ended_s)
        return ClusterView(
            at_s=at_s,
            took_s=time.perf_counter() - began_s,
            requests=asker.requests + 1,
            cluster_id=described.cluster_id,
            controller=health.controller,
            brokers=self._brokers(described, health, asker),
            topics=topics,
            groups=rows,
            readers=readers_of(rows.values()),
            health=health,
            totals=totals_of(rates, rows, by_broker),
            notes=tuple(asker.notes) + tuple(asker.silent.values()),
            by_broker=by_broker,
        )

    def _due(self, now_s: float, slowness: float) -> set[str]:
        due = {
            name
            for name, interval_s in SLOWLY.items()
            if now_s - self._asked_at.get(name, float("-inf")) >= interval_s * slowness
        }
        self._asked_at.update(dict.fromkeys(due, now_s))
        return due

    def _asked_groups(self, asker: Asker) -> _Groups:
        listed = asker.groups()
        sharing = [group for group in listed if group.type_name.lower() == "share"]
        others = [group for group in listed if group.type_name.lower() != "share"]
        committed, failed = asker.committed(others)
        return _Groups(listed, committed, asker.shared(sharing), failed)

    def _health(
        self, client: ClusterClient, asker: Asker, described: MetadataResponse, *, is_due: bool
    ) -> Health:
        """Judged at each look by fresh metadata; what brokers say about themselves, and min ISR, are a little older."""
        if is_due or self._examined is None:
            asker.requests += 2 * len(asker.nodes) + 2 + len(described.topics) // 250
            try:
                self._minimums = min_in_sync(client, [topic.name or "" for topic in described.topics])
                self._examined = examine(client)
            except (Refused, Unreachable) as error:
                asker.notes.append(str(error))
        behind = [state for state in partition_states(described) if len(state.isr) < len(state.replicas)]
        moving: Mapping[TopicPartition, Reassignment] = {}
        if behind:
            asker.requests += 1
            try:
                moving = ongoing(client, [state.partition for state in behind], patience_s=0)
            except (Refused, Unreachable) as error:
                asker.notes.append(str(error))
        health = judge(described, self._minimums, moving)
        known = self._examined
        return health if known is None else health._replace(told=known.told, lost=known.lost)

    def _topics(
        self,
        described: Iterable[MetadataResponseTopic],
        ends: Mapping[TopicPartition, int],
        rates: Mapping[TopicPartition, float],
    ) -> dict[str, TopicRow]:
        return {
            topic.name or "": topic_row(topic, ends, self._starts, rates, self._sizes)
            for topic in sorted(described, key=lambda one: one.name or "")
        }

    def _look_up_times(
        self,
        asker: Asker,
        asked: _Groups,
        ends: Mapping[TopicPartition, int],
        leaders: Mapping[TopicPartition, Leader],
        ended_s: float,
    ) -> None:
        """Of offsets of which we do not know when they were written: the records' own timestamps, some at each look."""
        read = list(asked.committed.values())
        read += [{one: start for one, (start, _) in offsets.items()} for offsets in asked.shared.values()]
        self._ends.add(ended_s, ends, (one for offsets in read for one in offsets))
        wanted: dict[TopicPartition, int] = {}
        for offsets in read:
            for partition, offset in offsets.items():
                first = max(offset, self._starts.get(partition, 0))
                is_behind = first < ends.get(partition, 0) and partition.topic != SPARK_MARKERS
                if not is_behind or self._ends.knows(partition, first):
                    continue
                if self._looked_up.get(partition) != first:
                    wanted[partition] = min(first, wanted.get(partition, first))
        some = dict(islice(wanted.items(), TIMES_PER_LOOK))
        found = asker.written_at(some, leaders) if some else {}
        # A batch that is too large for its share of an answer comes when it is asked for alone.
        alone = list(islice((one for one in some if one not in found), ALONE_PER_LOOK))
        for partition in alone:
            found |= asker.written_at({partition: some[partition]}, leaders)
        self._looked_up.update({one: some[one] for one in (*found, *alone)})
        for partition, batch in found.items():
            self._ends.insert(partition, batch.last_s, batch.next_offset)
            self._ends.insert(partition, batch.first_s, batch.first_offset)
        self._looked_up = {one: offset for one, offset in self._looked_up.items() if one in ends}

    def _groups(
        self, asked: _Groups, ends: Mapping[TopicPartition, int], ended_s: float
    ) -> dict[str, GroupRow]:
        sums = {name: float(sum(offsets.values())) for name, offsets in asked.committed.items()}
        rates = self._group_rates.look(sums, ended_s)
        rows = {}
        for group in sorted(asked.listed):
            if group.name in asked.shared:
                lags = self._shared_lags(asked.shared[group.name], ends, ended_s)
            else:
                lags = self._lags(asked.committed.get(group.name, {}), ends, ended_s)
            members = NOBODY if group.state in WAITING_STATES else self._members.get(group.name)
            rows[group.name] = group_row(
                group, lags, members, rates.get(group.name), asked.failed.get(group.name, 0)
            )
        return rows

    def _lags(
        self, committed: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], at_s: float
    ) -> tuple[GroupPartition, ...]:
        found = []
        for partition in sorted(committed):
            offset, end = committed[partition], ends.get(partition)
            if end is None or partition.topic == SPARK_MARKERS:
                found.append(GroupPartition(partition, offset, end, None, None))
                continue
            # What retention has taken cannot be read any more, and is no lag.
            first = max(offset, self._starts.get(partition, 0))
            lag_s = self._ends.lag_s(partition, first, end, at_s)
            found.append(GroupPartition(partition, offset, end, max(0, end - first), lag_s))
        return tuple(found)

    def _shared_lags(
        self,
        shared: Mapping[TopicPartition, tuple[int, int | None]],
        ends: Mapping[TopicPartition, int],
        at_s: float,
    ) -> tuple[GroupPartition, ...]:
        found = []
        for one in self._lags({partition: start for partition, (start, _) in shared.items()}, ends, at_s):
            said = shared[one.partition][1]
            found.append(one if said is None else one._replace(lag=max(0, said)))
        return tuple(found)

    def _by_broker(self, nodes: Mapping[int, BrokerNode], at_s: float) -> dict[int, Totals]:
        rates = self._byte_rates.look(metrics_pages.counters(self._listeners, nodes), at_s)
        by_broker: dict[int, dict[str, float]] = {}
        for (node_id, name), rate in rates.items():
            by_broker.setdefault(node_id, {})[name] = rate
        return {
            node_id: Totals(
                bytes_in=each.get(metrics_pages.BYTES_IN),
                bytes_out=each.get(metrics_pages.BYTES_OUT),
                requests=each.get(metrics_pages.REQUESTS),
            )
            for node_id, each in by_broker.items()
        }

    def _brokers(self, described: MetadataResponse, health: Health, asker: Asker) -> tuple[BrokerRow, ...]:
        counted = {one.id: one for one in health.brokers}
        stored: Counter[int] = Counter()
        for (node_id, _, _), size in self._sizes.logs.items():
            stored[node_id] += size
        rows = []
        for one in sorted(described.brokers, key=lambda one: one.node_id):
            disk = self._sizes.disks.get(one.node_id)
            rows.append(
                BrokerRow(
                    one.node_id,
                    one.host,
                    one.port,
                    one.rack,
                    one.node_id == health.controller,
                    counted[one.node_id].partitions,
                    counted[one.node_id].leaders,
                    stored[one.node_id] if disk is not None else None,
                    None if disk is None else disk.total_bytes,
                    None if disk is None else disk.usable_bytes,
                    one.node_id not in asker.silent,
                )
            )
        return tuple(rows)
