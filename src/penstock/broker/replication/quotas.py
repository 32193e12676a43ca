"""Limits for replication (KIP-73): a reassignment should not slow down clients.

A rate counts only for the replicas that a topic names. A leader sends nothing of such a partition to a replica that is out of
sync while its rate is exceeded; a follower that has not caught up leaves such a partition out of its fetches. In-sync replicas
are never throttled: they would fall out of sync. All limits can be changed live. If no topic names a replica of ours, the cost
is one attribute lookup.
"""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from penstock.config.option import ConfigError
from penstock.metadata.image import TOPICS, ConfigsChanged
from penstock.replication.throttle import Throttle, ThrottledPartitions

if TYPE_CHECKING:
    from penstock.broker.facets import WithBrokerId, WithClock, WithConfig, WithImage
    from penstock.broker.partitions.partition import Partition

    class Needs(WithBrokerId, WithClock, WithConfig, WithImage, Protocol): ...


log = logging.getLogger("penstock.broker")

LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"


class ReplicationQuota:
    """One side: what we send as a leader, or take as a follower."""

    def __init__(self, node: "Needs", *, replicas: str, rate: str) -> None:
        self._node = node
        self._replicas = replicas
        self._rate = rate
        get = node.config.get
        self._throttle = Throttle(
            window_count=get("replication.quota.window.num"),
            window_ms=get("replication.quota.window.size.seconds") * 1000,
        )
        self._topics: dict[str, ThrottledPartitions] = {}
        self.is_active = False
        """Whether any of our partitions counts at all."""

    def set_topic(self, name: str, overrides: Mapping[str, str] | None) -> None:
        found: ThrottledPartitions | None = None
        if overrides is not None and self._replicas in overrides:
            try:
                pairs = self._node.config.topic_value(overrides, self._replicas)
                found = ThrottledPartitions(pairs, self._node.broker_id)
            except ConfigError as error:
                log.warning("topic %s: a stored option is ignored: %s", name, error)
        if found:
            self._topics[name] = found
        else:
            self._topics.pop(name, None)
        self.is_active = bool(self._topics)

    def set_rate(self) -> None:
        self._throttle.limit_bytes_per_second = self._node.config.get(self._rate)

    def counts(self, partition: "Partition") -> bool:
        topic = self._topics.get(partition.topic)
        return topic is not None and partition.index in topic

    def record(self, size_bytes: int) -> None:
        self._throttle.record(size_bytes, now_ms=self._now_ms())

    def is_exceeded(self) -> bool:
        return self._throttle.is_exceeded(now_ms=self._now_ms())

    def pause_seconds(self) -> float:
        return self._throttle.pause_ms(now_ms=self._now_ms()) / 1000

    def _now_ms(self) -> int:
        return int(self._node.clock.monotonic() * 1000)


class ReplicationQuotas:
    def __init__(self, node: "Needs", changed: Callable[[], None]) -> None:
        """`changed` is called when what was held back may continue."""
        self._changed = changed
        self.leader = ReplicationQuota(node, replicas=LEADER_REPLICAS, rate=LEADER_RATE)
        self.follower = ReplicationQuota(node, replicas=FOLLOWER_REPLICAS, rate=FOLLOWER_RATE)
        for name, overrides in node.image.configs.get(TOPICS, {}).items():
            self._set_topic(name, overrides)
        self._set_rates()

    def config_changed(self, change: ConfigsChanged) -> None:
        """After the broker's own configuration has followed it."""
        if change.entity_type == TOPICS:
            self._set_topic(change.entity_name, change.overrides)
        else:
            self._set_rates()
        self._changed()

    def _set_topic(self, name: str, overrides: Mapping[str, str] | None) -> None:
        self.leader.set_topic(name, overrides)
        self.follower.set_topic(name, overrides)

    def _set_rates(self) -> None:
        self.leader.set_rate()
        self.follower.set_rate()
