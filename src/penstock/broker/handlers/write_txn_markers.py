"""API 27 WriteTxnMarkers, versions 1–2: Write transaction markers to partitions that this broker leads.

From coordinators on other brokers, and from an operator who ends a transaction that hangs (`kafka-transactions abort`).
Answered when the markers are committed.
Not done: nothing that Kafka documents.
"""

from asyncio import Future
from typing import TYPE_CHECKING

from penstock.broker.coordinators.markers import Results, write_markers
from penstock.broker.requests.call import Call
from penstock.broker.requests.later import Later, NowOrLater
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
    from penstock.broker.coordinators.markers import Needs

REQUEST = WriteTxnMarkersRequest
RESPONSE = WriteTxnMarkersResponse


def handle(node: "Needs", call: Call, request: WriteTxnMarkersRequest) -> NowOrLater[WriteTxnMarkersResponse]:
    written = [_write(node, marker) for marker in request.markers]
    if all(results.done() for results in written):
        return _response(request, written)
    return Later(_when_written(request, written))


async def _when_written(
    request: WriteTxnMarkersRequest, written: "list[Future[Results]]"
) -> WriteTxnMarkersResponse:
    for results in written:
        await results
    return _response(request, written)


def _response(request: WriteTxnMarkersRequest, written: "list[Future[Results]]") -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            _result(marker, results.result())
            for marker, results in zip(request.markers, written, strict=True)
        ]
    )


def _write(node: "Needs", marker: WritableTxnMarker) -> "Future[Results]":
    written: Future[Results] = node.loop.create_future()
    topic_partitions = [
        TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes
    ]
    if marker.producer_id < 0 or marker.producer_epoch < 0:
        written.set_result(dict.fromkeys(topic_partitions, ErrorCode.INVALID_REQUEST))  # the marker of nobody
        return written
    write_markers(
        node,
        topic_partitions,
        written.set_result,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        committed=marker.transaction_result,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )
    return written


def _result(marker: WritableTxnMarker, results: Results) -> WritableTxnMarkerResult:
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


def refuse(request: WriteTxnMarkersRequest, code: ErrorCode, detail: str | None) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
