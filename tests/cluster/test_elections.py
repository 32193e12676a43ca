"""Who leads when replicas are missing, how many must be in sync for an acknowledgement, and who leads when all are back."""

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from penstock.model.errors import ErrorCode
from penstock.testing.clusters import create_topic, describe, wait_until, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from tests.cluster.clients import WAIT_S, DirectProducer, SteadyProducer, isr_of, leader_of, wait_for_leader
from tests.cluster.conftest import StartCluster
from tests.crash.plain_client import produce, read_all

NOBODY = -1


def allow_unclean_elections(cluster: PenstockCluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    entry = ConfigEntry("unclean.leader.election.enable", "true", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)


def test_a_replica_that_lacks_records_leads_only_where_the_topic_allows_it(
    cluster: PenstockCluster, topic_name: str
) -> None:
    create_topic(cluster.bootstrap, topic_name, assignment=[[1, 2]])
    wait_until_in_sync(cluster.bootstrap, [topic_name])
    produce(cluster.bootstrap, topic_name, [b"on both"])
    cluster.stop(2)
    produce(cluster.address(1), topic_name, [b"on broker 1 only"])
    cluster.kill(1)
    witness = cluster.address(3)
    wait_until(lambda: leader_of(witness, topic_name) == NOBODY, "the loss of the leader")
    cluster.start(2)
    create_topic(witness, f"{topic_name}-later", assignment=[[2]])  # the controller has acted on its return
    assert (leader_of(witness, topic_name), isr_of(witness, topic_name)) == (NOBODY, {1})
    with DirectProducer(cluster.port(2)) as direct:
        assert direct.produce(topic_name, b"refused", acks=1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    allow_unclean_elections(cluster, topic_name)
    wait_until(lambda: leader_of(witness, topic_name) == 2, "an unclean election")
    assert isr_of(witness, topic_name) == {2}
    produce(cluster.address(2), topic_name, [b"on both again"])
    cluster.start(1)
    wait_until_in_sync(cluster.bootstrap, list(describe(cluster.bootstrap).topics))
    assert read_all(cluster.bootstrap, topic_name) == [b"on both", b"on both again"]


def test_with_too_few_in_sync_acks_all_is_refused_and_nothing_written(
    cluster: PenstockCluster, topic_name: str
) -> None:
    create_topic(cluster.bootstrap, topic_name, assignment=[[1, 2]], config={"min.insync.replicas": "2"})
    wait_until_in_sync(cluster.bootstrap, [topic_name])
    with DirectProducer(cluster.port(1)) as direct:
        assert direct.produce(topic_name, b"of all") == ErrorCode.NONE
        cluster.stop(2)
        assert direct.produce(topic_name, b"of all, in vain") == ErrorCode.NOT_ENOUGH_REPLICAS
        assert direct.produce(topic_name, b"of one", acks=1) == ErrorCode.NONE
        cluster.start(2)
        wait_until_in_sync(cluster.bootstrap, list(describe(cluster.bootstrap).topics))
        assert direct.produce(topic_name, b"of all again") == ErrorCode.NONE
    assert read_all(cluster.bootstrap, topic_name) == [b"of all", b"of one", b"of all again"]


def test_leaders_go_back_to_the_brokers_that_are_preferred(start_cluster: StartCluster) -> None:
    cluster = start_cluster(
        brokers=2,
        options={
            "leader.imbalance.check.interval.seconds": "1",
            "offsets.topic.replication.factor": "2",
        },
    )
    create_topic(cluster.bootstrap, "balanced", assignment=[[1, 2]])
    wait_until_in_sync(cluster.bootstrap, ["balanced"])
    with SteadyProducer(cluster.bootstrap, "balanced") as producer:
        producer.wait_for_more()
        cluster.stop(1)
        assert wait_for_leader(cluster, "balanced", other_than=1) == 2
        producer.wait_for_more()
        cluster.start(1)
        wait_until(lambda: leader_of(cluster.bootstrap, "balanced") == 1, "the preferred leader")
        producer.wait_for_more()
        sent = producer.finish()
    assert read_all(cluster.bootstrap, "balanced") == sent


def test_the_last_of_three_brokers_has_all_and_goes_on_where_one_in_sync_is_enough(
    cluster: PenstockCluster, topic_name: str
) -> None:
    enough, too_few = f"{topic_name}-1", f"{topic_name}-2"
    for topic, min_insync in ((enough, "1"), (too_few, "2")):
        create_topic(
            cluster.bootstrap, topic, assignment=[[1, 2, 3]], config={"min.insync.replicas": min_insync}
        )
    wait_until_in_sync(cluster.bootstrap, [enough, too_few])
    with (
        SteadyProducer(cluster.bootstrap, enough) as goes_on,
        SteadyProducer(cluster.bootstrap, too_few) as waits,
    ):
        goes_on.wait_for_more()
        waits.wait_for_more()
        cluster.kill(1)
        cluster.kill(2)
        acknowledged = list(waits.acknowledged)
        last = cluster.address(3)
        for topic in (enough, too_few):
            wait_until(
                lambda: (leader_of(last, topic), isr_of(last, topic)) == (3, {3}),  # noqa: B023
                "the last one's leadership",
            )
        goes_on.wait_for_more()
        with DirectProducer(cluster.port(3)) as direct:
            assert direct.produce(too_few, b"in vain") == ErrorCode.NOT_ENOUGH_REPLICAS
        assert read_all(last, too_few)[: len(acknowledged)] == acknowledged
        cluster.start(1)
        cluster.start(2)
        wait_until_in_sync(cluster.bootstrap, list(describe(cluster.bootstrap).topics))
        sent = {enough: goes_on.finish(), too_few: waits.finish()}
    assert {topic: read_all(cluster.bootstrap, topic) for topic in sent} == sent
