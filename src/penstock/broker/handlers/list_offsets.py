"""API 2 ListOffsets, versions 1–11: offsets by time, and the special times below.

-1 latest, -2 earliest, -3 the record with the largest timestamp, -4 earliest local (the same as earliest: no tiers),
-5 latest tiered and -6 earliest pending upload (unknown, -1: no tiers). For read_committed the log ends at the last stable
offset: that is its latest, and what a time would find behind it is not found. A follower (replica_id ≥ 0) is told of all that
the log has; -2 asks any replica, not only the leader. A leader whose followers have not confirmed yet what it had when it
began answers OFFSET_NOT_AVAILABLE: its high watermark may be lower than what its predecessor has told.
Not done: tiers.
"""

from typing import TYPE_CHECKING

from penstock.broker.partitions.partition import READ_COMMITTED
from penstock.broker.requests.call import Call
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from penstock.broker.node import Node
    from penstock.broker.partitions.partition import Partition

REQUEST = ListOffsetsRequest
RESPONSE = ListOffsetsResponse

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
CONSUMER = -1
ANY_REPLICA = -2
OFFSET_NOT_AVAILABLE_FROM = 5
FIRST_VERSION_WITH = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}

Found = tuple[int, int, int]
"""timestamp, offset, leader epoch; -1 where there is none."""


def handle(node: "Node", call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse:
    seen: set[tuple[str, int]] = set()
    topics: list[ListOffsetsTopicResponse] = []
    for wanted in request.topics:
        results = []
        for partition in wanted.partitions:
            key = (wanted.name, partition.partition_index)
            try:
                if key in seen:
                    raise ApiError(ErrorCode.INVALID_REQUEST)
                seen.add(key)
                found = _find(node, call, request, wanted.name, partition)
                results.append(
                    ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index,
                        timestamp=found[0],
                        offset=found[1],
                        leader_epoch=found[2],
                    )
                )
            except ApiError as error:
                results.append(
                    ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index, error_code=error.code
                    )
                )
            except OSError as error:
                node.report_disk_fault(
                    f"cannot search {wanted.name}-{partition.partition_index}", error,
                    node.partitions.get(*key),
                )  # fmt: skip
                results.append(
                    ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index, error_code=ErrorCode.KAFKA_STORAGE_ERROR
                    )
                )
        topics.append(ListOffsetsTopicResponse(name=wanted.name, partitions=results))
    return ListOffsetsResponse(topics=topics)


def _find(
    node: "Node", call: Call, request: ListOffsetsRequest, topic: str, wanted: ListOffsetsPartition
) -> Found:
    partition = node.partitions.get(topic, wanted.partition_index)
    if request.replica_id == ANY_REPLICA:
        partition.check_epoch(wanted.current_leader_epoch)
    else:
        partition.check_leader(wanted.current_leader_epoch)
    time = wanted.timestamp
    if call.api_version < FIRST_VERSION_WITH.get(time, 0) or time < EARLIEST_PENDING_UPLOAD:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    if request.replica_id != CONSUMER:
        end_offset = partition.log.end_offset
    elif request.isolation_level == READ_COMMITTED:
        end_offset = partition.last_stable_offset
    else:
        end_offset = partition.high_watermark
    if time == LATEST:
        _check_known(partition, request, call)
        return (-1, end_offset, partition.leader_epoch)
    if time in (EARLIEST, EARLIEST_LOCAL):
        return (
            -1,
            partition.log.start_offset,
            partition.log.leader_epochs.epoch_at(partition.log.start_offset),
        )
    if time in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return (-1, -1, -1)
    found = (
        partition.log.max_timestamp_offset()
        if time == MAX_TIMESTAMP
        else partition.log.offset_for_timestamp(time)
    )
    if found is None or found.offset >= end_offset:
        _check_known(partition, request, call)
        return (-1, -1, -1)
    return found


def _check_known(partition: "Partition", request: ListOffsetsRequest, call: Call) -> None:
    """OFFSET_NOT_AVAILABLE while a consumer could see the end go back."""
    leadership = partition.leadership
    if (
        request.replica_id == CONSUMER
        and leadership is not None
        and leadership.epoch_start_offset > partition.high_watermark
    ):
        is_new = call.api_version >= OFFSET_NOT_AVAILABLE_FROM
        raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE if is_new else ErrorCode.LEADER_NOT_AVAILABLE)
