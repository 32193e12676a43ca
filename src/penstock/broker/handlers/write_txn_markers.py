"""API 27 WriteTxnMarkers, versions 1–2: ends transactions in partitions of this broker.

From coordinators on other brokers, and from an operator who ends a transaction that hangs (`kafka-transactions abort`).
"""

from typing import TYPE_CHECKING

from penstock.broker.call import Call
from penstock.broker.transaction_markers import write_markers
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from penstock.broker.node import Node

REQUEST = WriteTxnMarkersRequest
RESPONSE = WriteTxnMarkersResponse


def handle(node: "Node", call: Call, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(markers=[_write(node, marker) for marker in request.markers])


def _write(node: "Node", marker: WritableTxnMarker) -> WritableTxnMarkerResult:
    places = [
        TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes
    ]
    if marker.producer_id < 0 or marker.producer_epoch < 0:
        return _result(marker, dict.fromkeys(places, ErrorCode.INVALID_REQUEST))  # the marker of nobody
    results = write_markers(
        node,
        places,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        committed=marker.transaction_result,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )
    return _result(marker, results)


def _result(marker: WritableTxnMarker, results: dict[TopicPartition, ErrorCode]) -> WritableTxnMarkerResult:
    topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
    for (name, index), error in results.items():
        result = WritableTxnMarkerPartitionResult(partition_index=index, error_code=error)
        topics.setdefault(name, []).append(result)
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
    )
