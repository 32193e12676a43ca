"""Reassignments asked of a broker without a cluster: Kafka's answers, partition by partition."""

from collections.abc import Iterator

import pytest

from penstock.model.errors import ErrorCode
from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.conftest import MakeTopic
from tests.hostile.raw_client import RawClient

E = ErrorCode


@pytest.fixture
def client(broker: PenstockBroker) -> Iterator[RawClient]:
    with RawClient(broker.port) as connected:
        yield connected


def moved(client: RawClient, topic: str, partition_index: int, replicas: list[int] | None) -> int:
    wanted = ReassignablePartition(partition_index=partition_index, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=topic, partitions=[wanted])])
    response = client.ask(request, 1)
    assert response.error_code == E.NONE
    ((answered,),) = [topic.partitions for topic in response.responses]
    return int(answered.error_code)


def test_a_move_to_the_broker_itself_is_complete_at_once(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    assert moved(client, topic, 1, [1]) == E.NONE
    named = ListPartitionReassignmentsTopics(name=topic, partition_indexes=[0, 1, 9])
    for topics in (None, [named], [ListPartitionReassignmentsTopics(name="none", partition_indexes=[0])]):
        listed = client.ask(ListPartitionReassignmentsRequest(topics=topics), 0)
        assert (listed.error_code, list(listed.topics)) == (E.NONE, [])


@pytest.mark.parametrize("replicas", [[2], [1, 2], [1, 1], [], [-1]])
def test_other_replicas_than_the_broker_are_refused(
    client: RawClient, make_topic: MakeTopic, replicas: list[int]
) -> None:
    assert moved(client, make_topic(), 0, replicas) == E.INVALID_REPLICA_ASSIGNMENT


def test_what_does_not_exist_or_does_not_move_is_refused(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    assert moved(client, topic, 7, [1]) == E.UNKNOWN_TOPIC_OR_PARTITION
    assert moved(client, "no-such-topic", 0, [1]) == E.UNKNOWN_TOPIC_OR_PARTITION
    assert moved(client, topic, 0, None) == E.NO_REASSIGNMENT_IN_PROGRESS


def test_the_answer_repeats_whether_the_replication_factor_may_change(client: RawClient) -> None:
    for allowed in (False, True):
        response = client.ask(AlterPartitionReassignmentsRequest(allow_replication_factor_change=allowed), 1)
        assert response.allow_replication_factor_change is allowed
