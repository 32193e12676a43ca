"""ZooKeeper is gone for longer than a session lasts: records flow, administration waits."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import KafkaException

from penstock.model.errors import ErrorCode
from penstock.testing.clusters import create_topic, wait_until, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.zookeeper import ZooKeeperServer
from tests.cli.conftest import Finished, run_command
from tests.cluster.clients import DirectProducer, SteadyProducer
from tests.cluster.conftest import StartCluster
from tests.crash.plain_client import produce, read_all


def test_without_zookeeper_records_flow_and_administration_says_what_is_missing(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster()
    create_topic(cluster.bootstrap, "flow", assignment=[[1, 2, 3]], config={"min.insync.replicas": "2"})
    create_topic(cluster.bootstrap, "newcomers", assignment=[[3, 2, 1]])
    wait_until_in_sync(cluster.bootstrap, ["flow", "newcomers"])
    with SteadyProducer(cluster.bootstrap, "flow") as producer, ThreadPoolExecutor(1) as aside:
        producer.wait_for_more()
        read_all(cluster.bootstrap, "flow")  # its group makes the internal topic, which needs ZooKeeper
        cluster.zookeeper.kill()
        creating = aside.submit(create_topic, cluster.bootstrap, "new")
        with pytest.raises(KafkaException, match=r"ZooKeeper at \S+ does not answer; nothing was changed"):
            creating.result(120)  # after the sessions' time by far
        producer.wait_for_more()
        with DirectProducer(cluster.port(1)) as direct:
            assert direct.produce("flow", b"0", acks=1) == ErrorCode.NONE
        for broker_id in cluster.broker_ids:  # each has producer ids at hand for those who come now
            produce(cluster.address(broker_id), "newcomers", [b"%d" % broker_id])
        assert read_all(cluster.bootstrap, "newcomers") == [b"1", b"2", b"3"]
        known = len(read_all(cluster.bootstrap, "flow"))
        producer.wait_for_more()
        assert len(read_all(cluster.bootstrap, "flow")) > known
        waiting = aside.submit(create_topic, cluster.bootstrap, "waiting")
        cluster.zookeeper.start()
        waiting.result(120)
        sent = producer.finish()
    create_topic(cluster.bootstrap, "afterwards")
    stored = read_all(cluster.bootstrap, "flow")
    stored.remove(b"0")  # the one that was sent directly, or its twin
    assert sorted(stored) == sorted(sent)


def test_a_broker_that_starts_without_zookeeper_says_so(start_cluster: StartCluster) -> None:
    cluster = start_cluster(brokers=1)
    cluster.stop(1)
    cluster.zookeeper.stop()
    with pytest.raises(Exception, match=r"penstock: ZooKeeper at \S+ does not answer"):
        cluster.start(1)


def test_brokers_of_a_zookeeper_that_was_emptied_under_them_say_so(start_cluster: StartCluster) -> None:
    cluster = start_cluster(brokers=2)
    create_topic(cluster.bootstrap, "orders", partitions=2, replication_factor=2)
    wait_until_in_sync(cluster.bootstrap, ["orders"])
    assert status(cluster).code == 0
    zookeeper = cluster.zookeeper
    assert isinstance(zookeeper, ZooKeeperServer)
    zookeeper.kill()
    zookeeper.wipe()
    zookeeper.start()
    text = f"ZooKeeper at {zookeeper.address} has older data than this broker has seen"
    wait_until(lambda: all(text in cluster.log_text(id) for id in cluster.broker_ids), text, timeout_s=60)
    shown = status(cluster)
    assert shown.code == 1
    for broker_id in cluster.broker_ids:
        assert f"broker {broker_id} has no session with ZooKeeper, which has older data" in shown.out


def status(cluster: PenstockCluster) -> Finished:
    return run_command("penstock", "status", "-b", cluster.bootstrap)
