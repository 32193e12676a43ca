"""API 21 DeleteRecords, versions 0–2: Delete all records before an offset; -1 means up to the high watermark.

Answered when all in-sync replicas have deleted the records too, so that they do not return with another leader. If that takes
longer than the client waits, the answer is REQUEST_TIMED_OUT, and the deletion continues. The low watermark is the log start
offset on all replicas.
Not done: nothing that Kafka documents.
"""

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.requests.call import Call
from penstock.broker.requests.later import Later, NowOrLater
from penstock.broker.requests.portions import Portions
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.internal_topics import is_internal
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithDiskFaults, WithLoop, WithPartitions
    from penstock.broker.partitions.partition import Partition

    class Needs(WithDiskFaults, WithLoop, WithPartitions, Protocol): ...


REQUEST = DeleteRecordsRequest
RESPONSE = DeleteRecordsResponse
PORTIONS = (Portions(("topics", "partitions"), ("topics", "partitions")),)

LONGEST_WAIT_MS: Final = 600_000
"""Whatever the client says."""
UNKNOWN: Final = -1


def handle(node: "Needs", call: Call, request: DeleteRecordsRequest) -> NowOrLater[DeleteRecordsResponse]:
    waiting: list[Deletion] = []
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_delete(node, topic.name, wanted, waiting) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )
    if not waiting:
        return response
    return Later(_when_all_have(response, waiting, timeout_ms=request.timeout_ms))


class Deletion:
    """Done here, but not yet on every replica."""

    def __init__(self, node: "Needs", partition: "Partition", result: DeleteRecordsPartitionResult) -> None:
        self._partition = partition
        self._result = result
        self.done: asyncio.Future[ErrorCode] = node.loop.create_future()
        self._wait = partition.when_deleted(result.low_watermark, self._told)

    def _told(self, error: ErrorCode) -> None:
        if not self.done.done():
            self.done.set_result(error)

    def settle(self) -> None:
        """Put what came of it into the answer."""
        result = self._result
        if not self.done.done():
            result.error_code = ErrorCode.REQUEST_TIMED_OUT
            result.low_watermark = self._partition.replica.low_watermark
            if self._wait is not None:
                self._wait.cancel()
        elif self.done.result():
            result.error_code = self.done.result()
            result.low_watermark = UNKNOWN


def _delete(
    node: "Needs", topic: str, wanted: DeleteRecordsPartition, waiting: list[Deletion]
) -> DeleteRecordsPartitionResult:
    try:
        partition = node.partitions.get(topic, wanted.partition_index)
        if is_internal(topic):
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        partition.check_leader()
        if not partition.log.options.delete_enabled:
            raise ApiError(ErrorCode.POLICY_VIOLATION)
        result = DeleteRecordsPartitionResult(
            partition_index=wanted.partition_index,
            low_watermark=node.partitions.delete_records(partition, wanted.offset),
        )
        if partition.replica.low_watermark < result.low_watermark:
            waiting.append(Deletion(node, partition, result))
        return result
    except ApiError as error:
        return DeleteRecordsPartitionResult(
            partition_index=wanted.partition_index, low_watermark=UNKNOWN, error_code=error.code
        )
    except OSError as error:
        node.report_disk_fault(f"cannot delete records of {partition}", error, partition)
        return DeleteRecordsPartitionResult(
            partition_index=wanted.partition_index,
            low_watermark=UNKNOWN,
            error_code=ErrorCode.KAFKA_STORAGE_ERROR,
        )


async def _when_all_have(
    response: DeleteRecordsResponse, waiting: list[Deletion], *, timeout_ms: int
) -> DeleteRecordsResponse:
    seconds = min(max(timeout_ms, 0), LONGEST_WAIT_MS) / 1000
    await asyncio.wait([deletion.done for deletion in waiting], timeout=seconds)
    for deletion in waiting:
        deletion.settle()
    return response
