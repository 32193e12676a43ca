"""One fetcher for each broker that leads partitions which we follow."""

from typing import TYPE_CHECKING

from penstock.broker.partitions.partition import Partition
from penstock.broker.replication.fetcher import ReplicaFetcher
from penstock.broker.replication.followed import Followed
from penstock.broker.replication.quotas import ReplicationQuota

if TYPE_CHECKING:
    from penstock.broker.replication.fetcher import Needs


class ReplicaFetchers:
    def __init__(self, node: "Needs", quota: ReplicationQuota) -> None:
        self._node = node
        self._quota = quota
        self._fetchers: dict[int, ReplicaFetcher] = {}
        self._leaders: dict[Partition, int] = {}

    def follow(self, partition: Partition, topic_id: bytes, leader_id: int) -> None:
        """From now on, or with another leader or in another epoch of it than until now."""
        self.leave(partition)
        fetcher = self._fetchers.get(leader_id)
        if fetcher is None:
            fetcher = self._fetchers[leader_id] = ReplicaFetcher(self._node, leader_id, self._quota)
        self._leaders[partition] = leader_id
        fetcher.add(Followed(partition, topic_id))

    def leave(self, partition: Partition) -> None:
        leader_id = self._leaders.pop(partition, None)
        if leader_id is None:
            return
        fetcher = self._fetchers[leader_id]
        fetcher.remove(partition)
        if not fetcher.has_work:
            fetcher.stop()
            del self._fetchers[leader_id]

    def leave_gone(self) -> None:
        for partition in [each for each in self._leaders if each.is_gone]:
            self.leave(partition)

    def release(self) -> None:
        """What rests for the quota may continue now: it was changed."""
        for fetcher in self._fetchers.values():
            fetcher.release()

    def stop(self) -> None:
        for fetcher in self._fetchers.values():
            fetcher.stop()
        self._fetchers.clear()
        self._leaders.clear()
