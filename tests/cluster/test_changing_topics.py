"""Topics that are made again, grow, or are configured while a broker is away are the same on it when it is back."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from penstock.model.errors import ErrorCode
from penstock.testing.clusters import create_topic, describe, wait_until, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.cluster.clients import WAIT_S
from tests.crash.plain_client import delete_topic, produce, read_all
from tests.hostile.raw_client import RawClient
from tests.log.brokers import send

AWAY = 3
ONE_ON_EACH = [[1], [2], [3]]
TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
EVERY_BROKER = ""


@pytest.fixture
def cluster_again(cluster: PenstockCluster) -> Iterator[PenstockCluster]:
    yield cluster
    wait_until_in_sync(cluster.bootstrap, list(describe(cluster.bootstrap).topics))


def set_config(cluster: PenstockCluster, kind: int, name: str, option: str, value: str | None) -> None:
    config = AlterableConfig(name=option, config_operation=DELETE if value is None else SET, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    with RawClient(cluster.port(1)) as client:
        response = client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert [each.error_code for each in response.responses] == [ErrorCode.NONE]


def move(cluster: PenstockCluster, topic: str, broker_id: int) -> None:
    wanted = ReassignablePartition(partition_index=0, replicas=[broker_id])
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=topic, partitions=[wanted])])
    with RawClient(cluster.port(1)) as client:
        response = client.ask(request, 0)
    assert response.error_code == response.responses[0].partitions[0].error_code == ErrorCode.NONE

    def is_moved() -> bool:
        partition = describe(cluster.bootstrap).topics[topic].partitions[0]
        return (partition.leader, list(partition.replicas)) == (broker_id, [broker_id])

    wait_until(is_moved, f"{topic} on broker {broker_id}")


def answers(cluster: PenstockCluster, topic: str, value: bytes, broker_ids: list[int]) -> set[int]:
    """The error codes for a record in the partitions that these brokers lead, as ONE_ON_EACH has it."""
    codes = set()
    for broker_id in broker_ids:
        with RawClient(cluster.port(broker_id)) as client:
            codes.add(send(client, topic, broker_id - 1, value))
    return codes


def test_a_topic_made_again_while_a_broker_was_away_has_nothing_of_the_old_one_there(
    cluster_again: PenstockCluster, topic_name: str
) -> None:
    cluster = cluster_again
    create_topic(cluster.bootstrap, topic_name, assignment=[[AWAY, 1]])
    produce(cluster.bootstrap, topic_name, [b"old"] * 10)
    cluster.stop(AWAY)
    delete_topic(cluster.bootstrap, topic_name)
    create_topic(cluster.bootstrap, topic_name, assignment=[[1, 2]])
    produce(cluster.bootstrap, topic_name, [b"new"])
    cluster.start(AWAY)
    move(cluster, topic_name, AWAY)
    produce(cluster.bootstrap, topic_name, [b"newer"])
    assert read_all(cluster.bootstrap, topic_name) == [b"new", b"newer"]


def test_partitions_that_were_added_while_a_broker_was_away_are_known_to_it(
    cluster_again: PenstockCluster, topic_name: str
) -> None:
    cluster = cluster_again
    create_topic(cluster.bootstrap, topic_name, assignment=[[1, AWAY]])
    cluster.stop(AWAY)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.create_partitions([NewPartitions(topic_name, 3, [[2, 1], [1, 2]])])[topic_name].result(WAIT_S)
    cluster.start(AWAY)
    for broker_id in cluster.broker_ids:
        partitions = describe(cluster.address(broker_id)).topics[topic_name].partitions
        assert {index: partition.leader for index, partition in partitions.items()} == {0: 1, 1: 2, 2: 1}
    for index in range(3):
        produce(cluster.address(AWAY), topic_name, [b"%d" % index], partition=index)
        assert read_all(cluster.address(AWAY), topic_name, partition=index) == [b"%d" % index]


def test_a_topic_is_configured_on_every_broker_that_leads_some_of_it(
    cluster_again: PenstockCluster, topic_name: str
) -> None:
    cluster = cluster_again
    create_topic(cluster.bootstrap, topic_name, assignment=ONE_ON_EACH)
    large = bytes(1000)
    assert answers(cluster, topic_name, large, [1, 2, 3]) == {ErrorCode.NONE}
    cluster.stop(AWAY)
    set_config(cluster, TOPIC, topic_name, "max.message.bytes", "500")
    too_large = {ErrorCode.MESSAGE_TOO_LARGE}
    wait_until(lambda: answers(cluster, topic_name, large, [1, 2]) == too_large, "the new limit")
    cluster.start(AWAY)
    wait_until(lambda: answers(cluster, topic_name, large, [AWAY]) == too_large, "the new limit")
    set_config(cluster, TOPIC, topic_name, "max.message.bytes", None)
    wait_until(lambda: answers(cluster, topic_name, large, [1, 2, 3]) == {ErrorCode.NONE}, "no limit")


def test_a_default_for_all_brokers_holds_on_each(cluster_again: PenstockCluster, topic_name: str) -> None:
    cluster = cluster_again
    create_topic(cluster.bootstrap, topic_name, assignment=ONE_ON_EACH)
    large = bytes(1000)
    set_config(cluster, BROKER, EVERY_BROKER, "message.max.bytes", "500")
    try:
        wait_until(
            lambda: answers(cluster, topic_name, large, [1, 2, 3]) == {ErrorCode.MESSAGE_TOO_LARGE},
            "the new limit",
        )
    finally:
        set_config(cluster, BROKER, EVERY_BROKER, "message.max.bytes", None)
    wait_until(lambda: answers(cluster, topic_name, large, [1, 2, 3]) == {ErrorCode.NONE}, "no limit")
