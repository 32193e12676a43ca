"""The partitions of one topic that this broker holds, and the answers for the others."""

from collections.abc import Iterator

from penstock.broker.metrics.traffic import TopicTraffic
from penstock.broker.partitions.partition import Partition
from penstock.model.errors import ApiError, ErrorCode


def unknown_topic(key: str | bytes) -> ApiError:
    """By name, or by id."""
    return ApiError(
        ErrorCode.UNKNOWN_TOPIC_ID if isinstance(key, bytes) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


class HeldTopic:
    """The partitions of one topic; None where another broker holds it, or where it is offline."""

    __slots__ = ("_offline", "_partitions", "held_elsewhere", "name", "topic_id", "traffic")

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.held_elsewhere = 0
        """So many partitions exist in the cluster, here or on other brokers."""
        self.topic_id = topic_id
        self.traffic = TopicTraffic()
        self._partitions: list[Partition | None] = []
        self._offline: frozenset[int] = frozenset()

    def partition(self, index: int) -> Partition:
        try:
            partition = self._partitions[index]
        except IndexError:
            partition = None
        if partition is None or index < 0:
            if index in self._offline:
                raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the log directory of the partition is offline")
            is_elsewhere = 0 <= index < self.held_elsewhere
            # Made again each time, as every error: one that is kept also keeps the frames of all who ever raised it.
            raise ApiError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER if is_elsewhere else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
        return partition

    def add(self, index: int, partition: Partition) -> None:
        while len(self._partitions) <= index:
            self._partitions.append(None)
        self._partitions[index] = partition

    def drop(self, index: int) -> None:
        self._partitions[index] = None

    def take_offline(self, index: int) -> None:
        self._offline |= {index}
        if index < len(self._partitions):
            partition, self._partitions[index] = self._partitions[index], None
            if partition is not None:
                partition.leave()
                partition.log.close()

    def has(self, index: int) -> bool:
        return index in self._offline or (
            0 <= index < len(self._partitions) and self._partitions[index] is not None
        )

    @property
    def offline(self) -> frozenset[int]:
        return self._offline

    def __iter__(self) -> Iterator[Partition]:
        return (partition for partition in self._partitions if partition is not None)
