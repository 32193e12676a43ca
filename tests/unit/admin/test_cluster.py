"""The admin library as programs use it, against a cluster that answers in memory."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.admin import Cluster, ConfigResource, TopicPartition
from penstock.admin.offsets import Span
from penstock.client.errors import NoSuchTopic, Refused, Unreachable
from penstock.metadata.image import PartitionRegistration
from penstock.model.errors import ErrorCode
from tests.unit.admin.answering_cluster import AnsweringCluster

THREADS = 8


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> AnsweringCluster:
    found = AnsweringCluster(
        PartitionRegistration((1, 2), (1, 2), 1), PartitionRegistration((2, 3), (2, 3), 2)
    )
    found.install(monkeypatch)
    return found


@pytest.fixture
def cluster(answering: AnsweringCluster) -> Cluster:
    return Cluster("host-1:1,host-2:2")


def test_nothing_is_connected_before_the_first_call(answering: AnsweringCluster, cluster: Cluster) -> None:
    assert answering.connections == 0
    assert [(one.name, one.partitions, one.replication_factor) for one in cluster.topics.list()] == [
        ("orders", 2, 2)
    ]
    assert answering.connections == 1


def test_calls_one_after_the_other_share_a_connection(answering: AnsweringCluster, cluster: Cluster) -> None:
    for _ in range(3):
        cluster.brokers.describe()
    assert answering.connections == 1


def test_a_connection_that_was_lost_while_idle_is_replaced(
    answering: AnsweringCluster, cluster: Cluster
) -> None:
    cluster.brokers.list()
    answering.lost_connections = 1
    assert [broker.id for broker in cluster.brokers.list()] == [1, 2, 3, 4]
    assert answering.connections == 2


def test_a_cluster_that_is_away_is_unreachable(answering: AnsweringCluster, cluster: Cluster) -> None:
    cluster.brokers.list()
    answering.dead.update(answering.image.brokers)
    with pytest.raises(Unreachable):
        cluster.brokers.list()
    answering.dead.clear()
    assert len(cluster.brokers.list()) == 4


def test_threads_share_a_cluster_and_no_connection(answering: AnsweringCluster, cluster: Cluster) -> None:
    meeting = threading.Barrier(THREADS)
    slow = answering.answer

    def answer(broker: int, request: object) -> object:
        if answering.connections <= THREADS:
            meeting.wait(timeout=30)  # all are inside of a call at once
        return slow(broker, request)

    answering.answer = answer  # type: ignore[method-assign]
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda _: cluster.topics.list()[0].name, range(THREADS)))
        assert found == ["orders"] * THREADS
        assert answering.connections == THREADS
        answering.answer = slow  # type: ignore[method-assign]
        described = list(pool.map(lambda _: cluster.topics.describe("orders")[0].name, range(20 * THREADS)))
    assert set(described) == {"orders"}
    assert answering.connections == THREADS  # the later calls found idle ones


def test_a_call_after_the_close_is_an_error(cluster: Cluster) -> None:
    with cluster:
        cluster.brokers.list()
    with pytest.raises(RuntimeError, match="closed"):
        cluster.brokers.list()


def test_a_topic_is_made_described_grown_and_deleted(answering: AnsweringCluster, cluster: Cluster) -> None:
    assert cluster.topics.create("payments", partitions=2, configs={"retention.ms": "1000"})
    assert not cluster.topics.create("payments", exist_ok=True)
    with pytest.raises(Refused, match="already exists") as refusal:
        cluster.topics.create("payments")
    assert refusal.value.code == ErrorCode.TOPIC_ALREADY_EXISTS
    cluster.topics.add_partitions("payments", 3)
    with pytest.raises(Refused, match="Too few"):
        cluster.topics.add_partitions("payments", 3)
    (described,) = cluster.topics.describe("payments")
    assert [(one.partition, one.leader, one.isr) for one in described.partitions] == [
        (0, 1, (1,)),
        (1, 1, (1,)),
        (2, 1, (1,)),
    ]
    cluster.topics.delete("payments")
    assert "payments" not in answering.image.topics


def test_the_controller_has_time_to_make_a_topic(answering: AnsweringCluster, cluster: Cluster) -> None:
    cluster.topics.create("payments", assignment=[[2, 3], [3, 2]])
    assert [one.replicas for one in answering.image.topics["payments"].partitions] == [(2, 3), (3, 2)]
    assert ("CreateTopicsRequest", 40.0) in answering.timeouts_s


def test_what_is_only_validated_is_not_made(answering: AnsweringCluster, cluster: Cluster) -> None:
    assert cluster.topics.create("payments", validate_only=True)
    assert "payments" not in answering.image.topics


def test_a_topic_that_is_not_there_is_named_with_one_that_is(cluster: Cluster) -> None:
    for ask in (cluster.topics.describe, cluster.topics.delete, cluster.offsets.spans):
        with pytest.raises(NoSuchTopic, match=r"there is no topic 'orderz'\. Did you mean 'orders'\?"):
            ask("orderz")


def test_brokers_that_cannot_describe_partitions_are_asked_for_metadata(
    answering: AnsweringCluster, cluster: Cluster
) -> None:
    by_cursor = cluster.topics.describe("orders")
    answering.knows_topic_partitions = False
    (topic,) = cluster.topics.describe("orders")
    assert [one.elr for one in topic.partitions] == [None, None]
    assert [one._replace(elr=(), last_known_elr=()) for one in topic.partitions] == list(
        by_cursor[0].partitions
    )


def test_offsets_are_asked_again_when_the_leader_has_moved(
    answering: AnsweringCluster, cluster: Cluster
) -> None:
    answering.ends = {("orders", 0): 42, ("orders", 1): 7}
    answering.moved_leaders.add(("orders", 1))
    assert cluster.offsets.spans("orders") == {
        TopicPartition("orders", 0): Span(0, 42),
        TopicPartition("orders", 1): Span(0, 7),
    }


def test_a_partition_that_stays_without_a_leader_is_refused(
    answering: AnsweringCluster, cluster: Cluster
) -> None:
    answering.image.topics["orders"].partitions[1] = PartitionRegistration((2, 3), (2,), -1)
    with pytest.raises(Refused) as refusal:
        cluster.offsets.ends("orders")
    assert refusal.value.code == ErrorCode.LEADER_NOT_AVAILABLE
    assert answering.now_s > 10


def test_records_are_deleted_by_the_leader_of_the_moment(
    answering: AnsweringCluster, cluster: Cluster
) -> None:
    answering.ends = {("orders", 0): 42}
    answering.moved_leaders.add(("orders", 0))
    zero = TopicPartition("orders", 0)
    assert cluster.topics.delete_records({zero: 10}) == {zero: 10}
    with pytest.raises(Refused, match="orders-0: The requested offset is not within the range"):
        cluster.topics.delete_records({zero: 43})


def test_configs_are_set_with_their_source_and_deleted(answering: AnsweringCluster, cluster: Cluster) -> None:
    orders = ConfigResource.topic("orders")
    cluster.configs.alter(orders, set={"retention.ms": "1000", "segment.ms": "9"})
    cluster.configs.alter(orders, delete=["segment.ms"])
    assert [(one.name, one.value, one.source_name) for one in cluster.configs.describe(orders)] == [
        ("retention.ms", "1000", "DYNAMIC_TOPIC_CONFIG")
    ]
    cluster.configs.alter(ConfigResource.broker(2), set={"log.cleaner.threads": "2"})
    assert answering.settings[4, "2"] == {"log.cleaner.threads": "2"}
    assert [str(one) for one in (orders, ConfigResource.broker(2), ConfigResource.all_brokers())] == [
        "orders",
        "broker 2",
        "all brokers",
    ]


def test_a_broker_is_drained_and_moves_are_cancelled(answering: AnsweringCluster, cluster: Cluster) -> None:
    shown = []
    assert cluster.moves.drain(1, show=lambda progress: shown.append(progress.done)) == 1
    assert 1 not in answering.replicas()[0]
    assert shown
    answering.copies = False
    one = TopicPartition("orders", 1)
    assert cluster.moves.start({one: [3, 4]}) == {}
    assert cluster.moves.ongoing()[one].adding == [4]
    assert cluster.moves.cancel(cluster.moves.ongoing()) == {}
    assert cluster.moves.ongoing() == {}


def test_the_replication_factor_is_changed(answering: AnsweringCluster, cluster: Cluster) -> None:
    assert cluster.topics.set_replication_factor("orders", 3) == 2
    assert {len(replicas) for replicas in answering.replicas()} == {3}


def test_health_is_asked_for(answering: AnsweringCluster, cluster: Cluster) -> None:
    assert cluster.health.examine().is_healthy
    answering.lose(3)
    health = cluster.health.examine()
    assert not health.is_healthy
    assert health.missing_brokers == [3]
