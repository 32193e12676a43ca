"""API 61 DescribeProducers, version 0: The producers of a partition, and where their open transactions begin.

Tells what the partition's log remembers: idempotent and transactional producers, the idle ones until they expire. Any replica
answers, as with Kafka: `kafka-transactions find-hanging --broker-id` asks a broker for all that it holds. A broker without a
replica answers NOT_LEADER_OR_FOLLOWER.
Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.controller.names import check_name
from penstock.model.errors import ApiError
from penstock.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithPartitions

REQUEST = DescribeProducersRequest
RESPONSE = DescribeProducersResponse
PORTIONS = (Portions(("topics", "partition_indexes"), ("topics", "partitions")),)


def handle(
    node: "WithPartitions", call: Call, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_describe(node, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _describe(node: "WithPartitions", topic: str, index: int) -> PartitionResponse:
    try:
        check_name(topic)
        partition = node.partitions.get(topic, index)
    except ApiError as error:
        return PartitionResponse(partition_index=index, error_code=error.code, error_message=error.detail)
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=known.producer_id,
                producer_epoch=known.epoch,
                last_sequence=known.last_sequence,
                last_timestamp=known.last_timestamp,
                coordinator_epoch=known.coordinator_epoch,
                current_txn_start_offset=known.transaction_first_offset,
            )
            for known in partition.log.producers.known()
        ],
    )
