"""API 2 ListOffsets, versions 1–11: Offsets by timestamp, and by the special timestamps (earliest, latest, largest timestamp).

-1 latest, -2 earliest, -3 the record with the largest timestamp, -4 earliest local (the same as earliest: no tiers),
-5 latest tiered and -6 earliest pending upload (unknown, -1: no tiers). For read_committed the log ends at the last stable
offset: that is its latest, and what a time would find behind it is not found. A follower (replica_id ≥ 0) is told of all that
the log has; -2 asks any replica, not only the leader. A leader whose followers have not confirmed yet what it had when it
began answers OFFSET_NOT_AVAILABLE: its high watermark may be lower than what its predecessor has told.
A search for a time that takes long, in a batch of many records or past many batches, lets others have their turn.
Not done: tiered storage.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, cast

from penstock.broker.partitions.partition import READ_COMMITTED
from penstock.broker.requests.call import Call
from penstock.broker.requests.later import Later, NowOrLater, settled
from penstock.broker.requests.slices import GIVE_WAY_EVERY, in_slices
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from typing import Protocol

    from penstock.broker.facets import WithDiskFaults, WithOpenings, WithPartitions
    from penstock.broker.partitions.partition import Partition
    from penstock.storage.segment import TimestampOffset

    class Needs(WithDiskFaults, WithOpenings, WithPartitions, Protocol): ...


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

SEARCHES_AT_ONCE: Final = 8
"""Searches for a time that others wait for. Each opens a batch, and one step of it takes up to a millisecond."""

Found = tuple[int, int, int]
"""timestamp, offset, leader epoch; -1 where there is none."""
UNKNOWN: Final[Found] = (-1, -1, -1)
Asked = tuple[str, ListOffsetsPartition, bool]
"""topic, what is asked of a partition, whether that was asked before in the same request"""


def handle(node: "Needs", call: Call, request: ListOffsetsRequest) -> NowOrLater[ListOffsetsResponse]:
    slice_size = GIVE_WAY_EVERY
    if any(_is_search(wanted.timestamp) for topic in request.topics for wanted in topic.partitions):
        slice_size = SEARCHES_AT_ONCE
    if sum(len(topic.partitions) for topic in request.topics) > slice_size:
        return Later(_answer_in_slices(node, call, request, slice_size))
    answers = [_answer(node, call, request, *asked) for asked in _asked(request)]
    if any(isinstance(answer, Later) for answer in answers):
        return Later(_answer_later(request, answers))
    return _response(request, cast("list[ListOffsetsPartitionResponse]", answers))


async def _answer_later(
    request: ListOffsetsRequest, answers: list[NowOrLater[ListOffsetsPartitionResponse]]
) -> ListOffsetsResponse:
    return _response(request, [await settled(answer) for answer in answers])


async def _answer_in_slices(
    node: "Needs", call: Call, request: ListOffsetsRequest, slice_size: int
) -> ListOffsetsResponse:
    async def answer(asked: Asked) -> ListOffsetsPartitionResponse:
        return await settled(_answer(node, call, request, *asked))

    return _response(request, await in_slices(answer, _asked(request), slice_size=slice_size))


def _is_search(time: int) -> bool:
    return time >= 0 or time == MAX_TIMESTAMP


def _asked(request: ListOffsetsRequest) -> Iterator[Asked]:
    seen: set[tuple[str, int]] = set()
    for topic in request.topics:
        for wanted in topic.partitions:
            place = (topic.name, wanted.partition_index)
            yield topic.name, wanted, place in seen
            seen.add(place)


def _response(
    request: ListOffsetsRequest, answers: Iterable[ListOffsetsPartitionResponse]
) -> ListOffsetsResponse:
    each = iter(answers)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name=topic.name, partitions=list(islice(each, len(topic.partitions))))
            for topic in request.topics
        ]
    )


def _answer(
    node: "Needs",
    call: Call,
    request: ListOffsetsRequest,
    topic: str,
    wanted: ListOffsetsPartition,
    is_repeated: bool,
) -> NowOrLater[ListOffsetsPartitionResponse]:
    index = wanted.partition_index
    try:
        if is_repeated:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        found = _find(node, call, request, topic, wanted)
    except (ApiError, OSError) as error:
        return _refused(node, topic, index, error)
    if isinstance(found, Later):
        return Later(_found_later(node, topic, index, found))
    return _found(index, found)


async def _found_later(
    node: "Needs", topic: str, index: int, found: Later[Found]
) -> ListOffsetsPartitionResponse:
    try:
        return _found(index, await found)
    except (ApiError, OSError) as error:
        return _refused(node, topic, index, error)


def _found(index: int, found: Found) -> ListOffsetsPartitionResponse:
    timestamp, offset, leader_epoch = found
    return ListOffsetsPartitionResponse(
        partition_index=index, timestamp=timestamp, offset=offset, leader_epoch=leader_epoch
    )


def _refused(
    node: "Needs", topic: str, index: int, error: ApiError | OSError
) -> ListOffsetsPartitionResponse:
    if isinstance(error, ApiError):
        return ListOffsetsPartitionResponse(partition_index=index, error_code=error.code)
    try:
        partition = node.partitions.get(topic, index)
    except ApiError as gone:  # deleted, or offline, since the search began
        return ListOffsetsPartitionResponse(partition_index=index, error_code=gone.code)
    node.report_disk_fault(f"cannot search {topic}-{index}", error, partition)
    return ListOffsetsPartitionResponse(partition_index=index, error_code=ErrorCode.KAFKA_STORAGE_ERROR)


def _find(
    node: "Needs", call: Call, request: ListOffsetsRequest, topic: str, wanted: ListOffsetsPartition
) -> NowOrLater[Found]:
    partition = node.partitions.get(topic, wanted.partition_index)
    _check_role(partition, request, wanted)
    time = wanted.timestamp
    if call.api_version < FIRST_VERSION_WITH.get(time, 0) or time < EARLIEST_PENDING_UPLOAD:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    if time == LATEST:
        _check_known(partition, request, call)
        return (-1, _end_offset(partition, request), partition.leader_epoch)
    if time in (EARLIEST, EARLIEST_LOCAL):
        return (
            -1,
            partition.log.start_offset,
            partition.log.leader_epochs.epoch_at(partition.log.start_offset),
        )
    if time in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return UNKNOWN

    def below_end(found: Found | None) -> Found:
        if found is None or found[1] >= _end_offset(partition, request):
            _check_known(partition, request, call)
            return UNKNOWN
        return found

    async def below_end_later(found: "Later[TimestampOffset | None]") -> Found:
        answer = await found
        _check_role(partition, request, wanted)  # which may be another's by now
        return below_end(answer)

    found = node.openings.search(
        partition.log.max_timestamp_offset()
        if time == MAX_TIMESTAMP
        else partition.log.offset_for_timestamp(time)
    )
    return Later(below_end_later(found)) if isinstance(found, Later) else below_end(found)


def _check_role(partition: "Partition", request: ListOffsetsRequest, wanted: ListOffsetsPartition) -> None:
    if request.replica_id == ANY_REPLICA:
        partition.check_epoch(wanted.current_leader_epoch)
    else:
        partition.check_leader(wanted.current_leader_epoch)


def _end_offset(partition: "Partition", request: ListOffsetsRequest) -> int:
    if request.replica_id != CONSUMER:
        return partition.log.end_offset
    if request.isolation_level == READ_COMMITTED:
        return partition.last_stable_offset
    return partition.high_watermark


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
