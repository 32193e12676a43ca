"""Where partitions begin and end, and where a time is in them, by ListOffsets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from penstock.client.cluster_client import ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import Refused
from penstock.client.leaders import Leader, offset_requests, offsets_in
from penstock.client.patience import Patience
from penstock.model.errors import RETRIABLE, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.wire.messages.list_offsets import ListOffsetsResponse

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
NO_OFFSET = -1
PATIENCE_S = 15.0


class Span(NamedTuple):
    """The offsets that a partition has: `end_offset` is that of the next record."""

    start_offset: int
    end_offset: int


class Position(NamedTuple):
    """What a timestamp leads to: the first record that is as late."""

    offset: int
    """-1 where no record is as late."""
    timestamp_ms: int | None
    leader_epoch: int | None


def spans(client: ClusterClient, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Span]:
    """Refused where one cannot be asked."""
    asked = list(partitions)
    starts, ends = (all_positions(client, asked, when) for when in (EARLIEST, LATEST))
    return {one: Span(starts[one].offset, ends[one].offset) for one in asked}


def all_positions(
    client: ClusterClient,
    partitions: Iterable[TopicPartition],
    timestamp: int,
    *,
    isolation_level: int = READ_UNCOMMITTED,
) -> dict[TopicPartition, Position]:
    """Refused where one cannot be asked."""
    found = positions(client, partitions, timestamp, isolation_level=isolation_level, patience_s=PATIENCE_S)
    known = {}
    for partition, position in found.items():
        if isinstance(position, Refused):
            raise position
        known[partition] = position
    return known


def positions(
    client: ClusterClient,
    partitions: Iterable[TopicPartition],
    timestamp: int,
    *,
    isolation_level: int = READ_UNCOMMITTED,
    patience_s: float = 0.0,
) -> dict[TopicPartition, Position | Refused]:
    """LATEST, EARLIEST, MAX_TIMESTAMP or a time in ms, of each partition: its position, or why there is none. `patience_s` is
    how long partitions without a leader, or with a new one, are asked for again."""
    found: dict[TopicPartition, Position | Refused] = dict.fromkeys(
        partitions, refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    )
    left = list(found)
    patience = Patience(patience_s)
    while left:
        answered = _asked_once(client, left, timestamp, isolation_level)
        found |= answered
        # A partition that Metadata does not have is not among the answers, and not waited for.
        left = [one for one, said in answered.items() if isinstance(said, Refused) and said.code in RETRIABLE]
        if left and not patience.pause():
            break
    return found


def _asked_once(
    client: ClusterClient, partitions: list[TopicPartition], timestamp: int, isolation_level: int
) -> dict[TopicPartition, Position | Refused]:
    asked = set(partitions)
    nodes, described = client.leaders(one.topic for one in asked)
    found: dict[TopicPartition, Position | Refused] = {}
    leaders: dict[TopicPartition, Leader] = {}
    for topic in described.topics:
        for one in topic.partitions:
            partition = TopicPartition(topic.name or "", one.partition_index)
            if partition not in asked:
                continue
            if one.leader_id in nodes:
                leaders[partition] = Leader(one.leader_id)
            else:
                found[partition] = refused(ErrorCode.LEADER_NOT_AVAILABLE)
    requests = offset_requests(dict.fromkeys(leaders, timestamp), leaders, isolation_level=isolation_level)
    for node_id, request in requests.items():
        answer = client.ask_node(nodes[node_id], request, ListOffsetsResponse)
        for partition, each in offsets_in(answer):
            found[partition] = (
                refused(each.error_code)
                if each.error_code
                else Position(
                    each.offset,
                    each.timestamp if each.timestamp >= 0 else None,
                    each.leader_epoch if each.leader_epoch >= 0 else None,
                )
            )
    return found
