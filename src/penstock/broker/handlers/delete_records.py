"""API 21 DeleteRecords, versions 0–2: forget everything before an offset; -1 means everything up to the high watermark."""

from typing import TYPE_CHECKING

from penstock.broker.call import Call
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from penstock.broker.node import Node

REQUEST = DeleteRecordsRequest
RESPONSE = DeleteRecordsResponse


def handle(node: "Node", call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name, partitions=[_delete(node, topic.name, wanted) for wanted in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _delete(node: "Node", topic: str, wanted: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    try:
        partition = node.partitions.get(topic, wanted.partition_index)
        if node.topics.is_internal(topic):
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        if not partition.log.options.delete_enabled:
            raise ApiError(ErrorCode.POLICY_VIOLATION)
        return DeleteRecordsPartitionResult(
            partition_index=wanted.partition_index,
            low_watermark=node.partitions.delete_records(partition, wanted.offset),
        )
    except ApiError as error:
        return DeleteRecordsPartitionResult(
            partition_index=wanted.partition_index, low_watermark=-1, error_code=error.code
        )
    except OSError as error:
        node.report_disk_fault(f"cannot delete records of {partition}", error, partition)
        return DeleteRecordsPartitionResult(
            partition_index=wanted.partition_index, low_watermark=-1, error_code=ErrorCode.KAFKA_STORAGE_ERROR
        )
