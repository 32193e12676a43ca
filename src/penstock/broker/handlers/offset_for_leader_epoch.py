"""API 23 OffsetForLeaderEpoch, versions 2–4: Where a leader epoch ended, so that clients and followers notice a truncated log.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.model.errors import ApiError
from penstock.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithPartitions

REQUEST = OffsetForLeaderEpochRequest
RESPONSE = OffsetForLeaderEpochResponse
PORTIONS = (Portions(("topics", "partitions"), ("topics", "partitions")),)


def handle(
    node: "WithPartitions", call: Call, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_find(node, topic.topic, wanted) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _find(node: "WithPartitions", topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = node.partitions.get(topic, wanted.partition)
        partition.check_leader(wanted.current_leader_epoch)
        if wanted.leader_epoch == partition.leader_epoch:
            return EpochEndOffset(
                partition=wanted.partition,
                leader_epoch=wanted.leader_epoch,
                end_offset=partition.log.end_offset,
            )
        epoch, end_offset = partition.log.epoch_end_offset(wanted.leader_epoch)
        return EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)
    except ApiError as error:
        return EpochEndOffset(partition=wanted.partition, error_code=error.code)
