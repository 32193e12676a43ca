"""What is wrong with a cluster, from what its Metadata says."""

import pytest

from penstock.admin.health import BrokerView, FailedDirectory, Health, Told, judge
from penstock.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def examined(
    *partitions: tuple[int, list[int], list[int]], live: tuple[int, ...] = (1, 2, 3), min_isr: int = 1
) -> Health:
    """Each partition: its leader, its replicas and those in sync."""
    described = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=one, host="h", port=9092) for one in live],
        controller_id=1,
        topics=[
            MetadataResponseTopic(
                name="orders",
                partitions=[
                    MetadataResponsePartition(
                        partition_index=index, leader_id=leader, replica_nodes=replicas, isr_nodes=isr
                    )
                    for index, (leader, replicas, isr) in enumerate(partitions)
                ],
            )
        ],
    )
    return judge(described, {"orders": min_isr})


def test_a_cluster_with_all_replicas_in_sync_is_healthy() -> None:
    health = examined((1, [1, 2], [1, 2]), (2, [2, 3], [2, 3]), (3, [3, 1], [1, 3]), min_isr=2)
    assert health.is_healthy
    assert health.leader_skew == 1.0
    assert [(broker.id, broker.partitions, broker.leaders) for broker in health.brokers] == [
        (1, 2, 1),
        (2, 2, 1),
        (3, 2, 1),
    ]


def test_a_replica_that_is_behind_is_named() -> None:
    health = examined((1, [1, 2], [1]))
    assert not health.is_healthy
    assert [str(state.partition) for state in health.under_replicated] == ["orders-0"]
    assert health.offline == health.below_min_isr == []


def test_too_few_in_sync_are_named() -> None:
    assert [state.isr for state in examined((1, [1, 2, 3], [1]), min_isr=2).below_min_isr] == [[1]]


def test_a_partition_without_a_leader_is_offline_and_not_counted_as_short_of_replicas_too() -> None:
    health = examined((-1, [3], [3]), live=(1, 2))
    assert health.missing_brokers == [3]
    assert (len(health.offline), health.below_min_isr) == (1, [])
    assert not health.is_healthy


def test_a_leader_that_is_gone_makes_its_partition_offline() -> None:
    assert len(examined((3, [3, 1], [3, 1]), live=(1, 2)).offline) == 1


def test_a_cluster_without_a_controller_is_not_well() -> None:
    assert not examined((2, [2], [2]), live=(2, 3)).is_healthy


def test_leaders_elsewhere_than_preferred_are_told_and_no_fault() -> None:
    health = examined((2, [1, 2], [1, 2]), (2, [2, 1], [1, 2]), live=(1, 2))
    assert health.is_healthy
    assert health.leader_skew == 2.0
    assert [str(state.partition) for state in health.not_preferred] == ["orders-0"]


@pytest.mark.parametrize(
    "told",
    [
        Told(failed_directories=(FailedDirectory(1, "/data", "No space left on device"),)),
        Told(without_session=((1, "does not answer"),)),
        Told(disagreeing=(BrokerView(2, 3, (2, 3)),)),
    ],
)
def test_what_a_broker_says_of_itself_may_be_a_fault(told: Told) -> None:
    health = examined((1, [1, 2], [1, 2]))
    assert health.is_healthy
    assert not health._replace(told=told).is_healthy
