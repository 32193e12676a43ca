"""OffsetFetch: what a group has committed; -1 where nothing is, also for a group or a topic (by name) that does not exist.

Who requires stable offsets is told to come back (UNSTABLE_OFFSET_COMMIT) where one is pending in an open transaction:
reading on from the one that counts now could process records twice.
"""

from typing import Final

from penstock.groups.offset_book import OffsetBook
from penstock.groups.offsets import TOPIC_IDS_FROM
from penstock.groups.topics import Topics
from penstock.model.errors import ErrorCode
from penstock.model.ids import NO_ID, TopicPartition
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

NO_OFFSET: Final = -1


class Fetch:
    """One OffsetFetch of one group."""

    __slots__ = ("_book", "_by_id", "_group_id", "_require_stable", "_topics")

    def __init__(
        self, book: OffsetBook, topics: Topics, group_id: str, *, api_version: int, require_stable: bool
    ) -> None:
        self._book = book
        self._topics = topics
        self._group_id = group_id
        self._by_id = api_version >= TOPIC_IDS_FROM
        self._require_stable = require_stable

    def answer(self, request: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
        found = self._all() if request.topics is None else [self._topic(topic) for topic in request.topics]
        return OffsetFetchResponseGroup(group_id=request.group_id, topics=found)

    def _topic(self, topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
        if not self._by_id:
            name, topic_id = topic.name, self._topics.topic_id(topic.name) or NO_ID
        else:
            known, topic_id = self._topics.topic_name(topic.topic_id), topic.topic_id
            if known is None:
                unknown = [_nothing(index, ErrorCode.UNKNOWN_TOPIC_ID) for index in topic.partition_indexes]
                return OffsetFetchResponseTopics(topic_id=topic_id, partitions=unknown)
            name = known
        partitions = [self._partition(name, index, topic_id) for index in topic.partition_indexes]
        return OffsetFetchResponseTopics(topic_id=topic.topic_id, name=name, partitions=partitions)

    def _all(self) -> list[OffsetFetchResponseTopics]:
        by_topic: dict[str, list[int]] = {}
        for name, partition in self._book.topic_partitions(self._group_id):
            by_topic.setdefault(name, []).append(partition)
        found = []
        for name, indexes in by_topic.items():
            topic_id = self._topics.topic_id(name)
            if topic_id is None and self._by_id:
                continue  # The topic is gone, and with it the id that the answer would have to name.
            partitions = [self._partition(name, index, topic_id or NO_ID) for index in sorted(indexes)]
            found.append(
                OffsetFetchResponseTopics(topic_id=topic_id or NO_ID, name=name, partitions=partitions)
            )
        return found

    def _partition(self, name: str, index: int, topic_id: bytes) -> OffsetFetchResponsePartitions:
        """`topic_id` is that of the topic today; an offset of one that had its name before is none of it."""
        topic_partition = TopicPartition(name, index)
        if self._require_stable and self._book.is_pending(self._group_id, topic_partition):
            return _nothing(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        committed = self._book.get(self._group_id, topic_partition)
        if committed is None or (
            NO_ID not in (topic_id, committed.topic_id) and topic_id != committed.topic_id
        ):
            return _nothing(index)
        return OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
        )


def _nothing(index: int, error: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(partition_index=index, committed_offset=NO_OFFSET, error_code=error)
