"""Who leads a partition, and what a leader says of offsets: one form of the question for readers, Spark and administration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from penstock.client.error_names import error_name
from penstock.client.errors import ReadFailed
from penstock.client.patience import Retriable
from penstock.model.errors import RETRIABLE, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

READ_AGAIN: Final = RETRIABLE - {ErrorCode.CORRUPT_MESSAGE}  # which a reader tells at once, as Kafka's does


class Leader(NamedTuple):
    node_id: int
    epoch: int = -1
    """Sent with each question, so that a former leader refuses, and one that has not heard of it yet (KIP-320). -1: not known."""


NO_LEADER: Final = Leader(-1)


def offset_requests(
    timestamps: Mapping[TopicPartition, int],
    leaders: Mapping[TopicPartition, Leader],
    *,
    isolation_level: int,
) -> dict[int, ListOffsetsRequest]:
    """A request to each leader, by its node id; to -1 what nobody leads."""
    asked: dict[int, dict[str, list[ListOffsetsPartition]]] = {}
    for (topic, partition), timestamp in timestamps.items():
        leader = leaders.get(TopicPartition(topic, partition), NO_LEADER)
        asked.setdefault(leader.node_id, {}).setdefault(topic, []).append(
            ListOffsetsPartition(
                partition_index=partition, current_leader_epoch=leader.epoch, timestamp=timestamp
            )
        )
    return {
        node_id: ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=[
                ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()
            ],
        )
        for node_id, topics in asked.items()
    }


def offsets_in(answer: ListOffsetsResponse) -> Iterator[tuple[TopicPartition, ListOffsetsPartitionResponse]]:
    for topic in answer.topics:
        for one in topic.partitions:
            yield TopicPartition(topic.name, one.partition_index), one


def read_offsets(answer: ListOffsetsResponse) -> dict[TopicPartition, int | None]:
    """None: all records are older than the time that was asked for. Retriable or ReadFailed for an error in the answer."""
    found: dict[TopicPartition, int | None] = {}
    for place, one in offsets_in(answer):
        check(one.error_code, str(place))
        found[place] = one.offset if one.offset >= 0 else None
    return found


def check(error_code: int, what: str) -> None:
    """Retriable or ReadFailed for an error."""
    if error_code in READ_AGAIN:
        raise Retriable(f"{what}: {error_name(error_code)}")
    if error_code:
        raise ReadFailed(f"{what}: {error_name(error_code)}")
