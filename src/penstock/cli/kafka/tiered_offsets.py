"""ListOffsets over the wire, for the special times that librdkafka does not have: -4 and below."""

from penstock.cli.clients import Connection
from penstock.cli.wire_client import UnsupportedByBroker, WireClient
from penstock.model.endpoints import Address
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse


def list_offsets(
    connection: Connection, partitions: list[TopicPartition], timestamp: int
) -> list[tuple[TopicPartition, int, int]]:
    """(partition, error code, offset) of each."""
    with connection.wire() as client:
        addresses, leaders = _leaders(client, partitions)
    answers = []
    for leader, led in leaders.items():
        if leader not in addresses:
            answers += [(one, int(ErrorCode.LEADER_NOT_AVAILABLE), -1) for one in led]
            continue
        with connection.wire(addresses[leader]) as client:
            answers += _ask_leader(client, led, timestamp)
    return answers


def _leaders(
    client: WireClient, partitions: list[TopicPartition]
) -> tuple[dict[int, Address], dict[int, list[TopicPartition]]]:
    names = sorted({one.topic for one in partitions})
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
    )
    answer = client.ask(request, MetadataResponse)
    addresses = {broker.node_id: Address(broker.host, broker.port) for broker in answer.brokers}
    wanted = set(partitions)
    leaders: dict[int, list[TopicPartition]] = {}
    for topic in answer.topics:
        for one in topic.partitions:
            partition = TopicPartition(topic.name or "", one.partition_index)
            if partition in wanted:
                leaders.setdefault(one.leader_id, []).append(partition)
    return addresses, leaders


def _ask_leader(
    client: WireClient, partitions: list[TopicPartition], timestamp: int
) -> list[tuple[TopicPartition, int, int]]:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(
            ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        )
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[ListOffsetsTopic(name=name, partitions=asked) for name, asked in topics.items()],
    )
    try:
        answer = client.ask(request, ListOffsetsResponse)
    except UnsupportedByBroker:
        return [(one, int(ErrorCode.UNSUPPORTED_VERSION), -1) for one in partitions]
    return [
        (TopicPartition(topic.name, one.partition_index), one.error_code, one.offset)
        for topic in answer.topics
        for one in topic.partitions
    ]
