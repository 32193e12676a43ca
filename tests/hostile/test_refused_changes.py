"""Topics, configs and offsets that cannot be: each gets Kafka's error code, and nothing changes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.model.errors import ErrorCode
from penstock.records.build import build_batch
from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from penstock.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.hostile.raw_client import RawClient

E = ErrorCode
LARGEST = 2**31 - 1
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture
def client(broker: PenstockBroker) -> Iterator[RawClient]:
    with RawClient(broker.port) as connected:
        yield connected


@pytest.fixture
def topic(client: RawClient, topic_name: str) -> str:
    """With three records in partition 0."""
    assert create(client, CreatableTopic(name=topic_name, num_partitions=2, replication_factor=1)) == 0
    batch = bytes(build_batch([(b"key", b"value", (), 1_700_000_000_000)] * 3))
    data = TopicProduceData(name=topic_name, partition_data=[PartitionProduceData(index=0, records=batch)])
    response = client.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 12)
    assert response.responses[0].partition_responses[0].error_code == 0
    return topic_name


def create(client: RawClient, *topics: CreatableTopic) -> int:
    response = client.ask(CreateTopicsRequest(topics=list(topics), timeout_ms=5000), 7)
    code = response.topics[0].error_code
    assert isinstance(code, int)
    return code


def known_topics(client: RawClient) -> dict[str, int]:
    """Topic names and their numbers of partitions."""
    response = client.ask(MetadataRequest(topics=None), 12)
    return {topic.name: len(topic.partitions) for topic in response.topics}


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a b", "ä", "a\x00b", "x" * 250, "x" * 32_767, "a\nb", "../../x"]
)
def test_a_topic_name_that_is_none_is_refused(client: RawClient, name: str) -> None:
    before = known_topics(client)
    wanted = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    assert create(client, wanted) == E.INVALID_TOPIC_EXCEPTION
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    (answered,) = client.ask(asked, 12).topics
    assert answered.error_code in (E.INVALID_TOPIC_EXCEPTION, E.UNKNOWN_TOPIC_OR_PARTITION)
    assert known_topics(client) == before


def test_a_topic_name_of_249_characters_is_good(client: RawClient) -> None:
    name = "y" * 249
    assert create(client, CreatableTopic(name=name, num_partitions=1, replication_factor=1)) == 0
    response = client.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=5000), 6)
    assert response.responses[0].error_code == 0


@pytest.mark.parametrize("count", [0, -2, -(2**31)])
def test_a_number_of_partitions_that_is_none_is_refused(
    client: RawClient, topic_name: str, count: int
) -> None:
    wanted = CreatableTopic(name=topic_name, num_partitions=count, replication_factor=1)
    assert create(client, wanted) == E.INVALID_PARTITIONS
    assert topic_name not in known_topics(client)


@pytest.mark.parametrize("count", [LARGEST, 10_001])
def test_more_partitions_than_one_request_may_have_are_refused(
    client: RawClient, topic_name: str, count: int
) -> None:
    wanted = CreatableTopic(name=topic_name, num_partitions=count, replication_factor=1)
    assert create(client, wanted) in (E.INVALID_PARTITIONS, E.POLICY_VIOLATION, E.INVALID_REQUEST)
    assert topic_name not in known_topics(client)


@pytest.mark.parametrize("factor", [0, -2, 2, 32767])
def test_a_replication_factor_that_cannot_be_is_refused(
    client: RawClient, topic_name: str, factor: int
) -> None:
    wanted = CreatableTopic(name=topic_name, num_partitions=1, replication_factor=factor)
    assert create(client, wanted) == E.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize(
    "assignment",
    [{0: [99]}, {0: []}, {0: [1, 1]}, {1: [1]}, {0: [1], 2: [1]}, {-1: [1]}],
    ids=["unknown broker", "nobody", "twice", "starts at 1", "a gap", "negative"],
)
def test_an_assignment_that_cannot_be_is_refused(
    client: RawClient, topic_name: str, assignment: dict[int, list[int]]
) -> None:
    wanted = CreatableTopic(
        name=topic_name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
            for index, ids in assignment.items()
        ],
    )
    assert create(client, wanted) == E.INVALID_REPLICA_ASSIGNMENT
    assert topic_name not in known_topics(client)


def test_a_topic_twice_in_a_request_is_refused(client: RawClient, topic_name: str) -> None:
    wanted = CreatableTopic(name=topic_name, num_partitions=1, replication_factor=1)
    assert create(client, wanted, wanted) == E.INVALID_REQUEST
    assert topic_name not in known_topics(client)


BAD_CONFIGS = [
    ("retention.ms", "soon"),
    ("retention.ms", "-2"),
    ("retention.ms", str(2**63)),
    ("retention.ms", ""),
    ("segment.bytes", "0"),
    ("segment.bytes", "1.5"),
    ("max.message.bytes", "-1"),
    ("cleanup.policy", "burn"),
    ("cleanup.policy", "compact,burn"),
    ("compression.type", "rar"),
    ("message.timestamp.type", "Yesterday"),
    ("unclean.leader.election.enable", "perhaps"),
    ("min.cleanable.dirty.ratio", "1.1"),
    ("min.cleanable.dirty.ratio", "nan"),
    ("no.such.option", "1"),
    ("x" * 32_000, "1"),
]


@pytest.mark.parametrize(
    ("name", "value"), BAD_CONFIGS, ids=[f"{name[:30]}={value}" for name, value in BAD_CONFIGS]
)
def test_a_config_value_that_does_not_parse_is_refused(
    client: RawClient, topic: str, name: str, value: str
) -> None:
    wanted = CreatableTopic(
        name=topic + "-more",
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=name, value=value)],
    )
    assert create(client, wanted) == E.INVALID_CONFIG
    assert alter(client, TOPIC, topic, name, value) == E.INVALID_CONFIG
    assert topic + "-more" not in known_topics(client)


def alter(
    client: RawClient, kind: int, resource: str, name: str, value: str | None, operation: int = SET
) -> int:
    config = AlterableConfig(name=name, config_operation=operation, value=value)
    changed = AlterConfigsResource(resource_type=kind, resource_name=resource, configs=[config])
    response = client.ask(IncrementalAlterConfigsRequest(resources=[changed]), 1)
    code = response.responses[0].error_code
    assert isinstance(code, int)
    return code


@pytest.mark.parametrize(
    ("kind", "resource", "name", "value", "operation"),
    [
        (BROKER, "1", "log.retention.ms", "soon", SET),
        (BROKER, "", "log.retention.ms", "soon", SET),
        (BROKER, "99", "log.retention.ms", "1000", SET),
        (BROKER, "one", "log.retention.ms", "1000", SET),
        (TOPIC, "no-such-topic", "retention.ms", "1000", SET),
        (TOPIC, "a/b", "retention.ms", "1000", SET),
        (99, "x", "retention.ms", "1000", SET),
        (-128, "x", "retention.ms", "1000", SET),
        (TOPIC, "", "retention.ms", "1000", SET),
    ],
)
def test_a_config_of_nothing_or_nobody_is_refused(
    client: RawClient, kind: int, resource: str, name: str, value: str, operation: int
) -> None:
    assert alter(client, kind, resource, name, value, operation) not in (0, E.UNKNOWN_SERVER_ERROR)


@pytest.mark.parametrize(
    ("name", "value", "operation"),
    [
        ("retention.ms", "1", APPEND),
        ("retention.ms", None, SET),
        ("retention.ms", "1", 9),
        ("retention.ms", "1", -1),
    ],
)
def test_a_config_operation_that_cannot_be_is_refused(
    client: RawClient, topic: str, name: str, value: str | None, operation: int
) -> None:
    assert alter(client, TOPIC, topic, name, value, operation) in (E.INVALID_CONFIG, E.INVALID_REQUEST)


@pytest.mark.parametrize("count", [-1, 0, 1, 2])
def test_fewer_or_as_many_partitions_are_refused(client: RawClient, topic: str, count: int) -> None:
    assert grow(client, topic, count) == E.INVALID_PARTITIONS
    assert known_topics(client)[topic] == 2


def test_partitions_without_bound_are_refused(client: RawClient, topic: str) -> None:
    assert grow(client, topic, LARGEST) in (E.INVALID_PARTITIONS, E.POLICY_VIOLATION, E.INVALID_REQUEST)
    assert known_topics(client)[topic] == 2


def grow(client: RawClient, topic: str, count: int) -> int:
    wanted = CreatePartitionsTopic(name=topic, count=count, assignments=None)
    response = client.ask(CreatePartitionsRequest(topics=[wanted], timeout_ms=5000), 3)
    code = response.results[0].error_code
    assert isinstance(code, int)
    return code


def list_offsets(
    client: RawClient, topic: str, *, index: int = 0, timestamp: int = -1, epoch: int = -1
) -> Any:
    wanted = ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
    return client.ask(request, 11).topics[0].partitions[0]


def test_offsets_of_nonsense_are_told_so(client: RawClient, topic: str) -> None:
    assert list_offsets(client, topic).offset == 3
    for index in (2, -1, LARGEST):
        assert list_offsets(client, topic, index=index).error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert list_offsets(client, "a/b").error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert list_offsets(client, topic, epoch=99).error_code == E.UNKNOWN_LEADER_EPOCH
    for timestamp in (-7, -100, -(2**63)):
        assert list_offsets(client, topic, timestamp=timestamp).error_code != E.UNKNOWN_SERVER_ERROR
    assert list_offsets(client, topic, timestamp=2**63 - 1).offset == -1
    assert list_offsets(client, topic, timestamp=0).offset == 0


@pytest.mark.parametrize("offset", [4, -2, -(2**63), 2**63 - 1])
def test_records_outside_of_the_log_cannot_be_deleted(client: RawClient, topic: str, offset: int) -> None:
    (answered,) = delete_records(client, topic, offset)
    assert answered.error_code == E.OFFSET_OUT_OF_RANGE
    assert list_offsets(client, topic, timestamp=-2).offset == 0


def test_records_of_nobody_cannot_be_deleted(client: RawClient, topic: str) -> None:
    assert delete_records(client, "a/b", 0)[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    for index in (2, -1, LARGEST):
        assert delete_records(client, topic, 0, index=index)[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert list_offsets(client, topic, timestamp=-2).offset == 0


def delete_records(client: RawClient, topic: str, offset: int, *, index: int = 0) -> Any:
    wanted = DeleteRecordsPartition(partition_index=index, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=1000
    )
    return client.ask(request, 2).topics[0].partitions


@pytest.mark.parametrize("name", ["no-such-topic", "a/b", "", "x" * 32_767])
def test_deleting_what_is_not_there_is_told_so(client: RawClient, name: str) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=5000)
    assert client.ask(request, 6).responses[0].error_code in (
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.INVALID_TOPIC_EXCEPTION,
    )


@pytest.mark.parametrize("retention_time_ms", [-2, 2**63 - 1])
def test_an_offset_may_be_kept_for_any_time(tmp_path: Path, topic_name: str, retention_time_ms: int) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    request = OffsetCommitRequest(
        group_id="group",
        retention_time_ms=retention_time_ms,
        topics=[OffsetCommitRequestTopic(name=topic_name, partitions=[partition])],
    )
    with PenstockBroker(tmp_path) as broker, RawClient(broker.port) as client:
        assert create(client, CreatableTopic(name=topic_name, num_partitions=1, replication_factor=1)) == 0
        assert client.ask(request, 3).topics[0].partitions[0].error_code == 0
