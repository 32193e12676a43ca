"""Splits that leave part of the ways open: between two of three brokers, and to ZooKeeper only."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from penstock.model.errors import ErrorCode
from penstock.testing.clusters import create_topic, describe, wait_until, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.zookeeper import ZooKeeperServer
from tests.cluster.clients import DirectProducer, SteadyProducer, isr_of, others, wait_for_leader
from tests.cluster.conftest import OPTIONS, SESSION_TIMEOUT_MS, check_logs
from tests.cluster.network import Network
from tests.crash.plain_client import delete_topic, produce, read_all

LAG_MS = 1_000


class Split(NamedTuple):
    cluster: PenstockCluster
    network: Network


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Split]:
    directory = tmp_path_factory.mktemp("splits")
    with (
        ZooKeeperServer(directory / "zookeeper") as zookeeper,
        Network(brokers=3, zookeeper=zookeeper.address) as network,
        PenstockCluster(
            directory,
            options={**OPTIONS, "replica.lag.time.max.ms": str(LAG_MS)},
            options_of=network.options_of,
            ports=network.ports,
            zookeeper=zookeeper,
            zookeeper_connect_of=network.zookeeper_connect_of,
            session_timeout_ms=SESSION_TIMEOUT_MS,
        ) as cluster,
    ):
        yield Split(cluster, network)
        check_logs(cluster)


@pytest.fixture
def split(whole: Split) -> Iterator[Split]:
    yield whole
    whole.network.heal()


def test_a_follower_that_cannot_reach_its_leader_leaves_the_set_and_comes_back(
    split: Split, topic_name: str
) -> None:
    cluster, network = split
    third = describe(
        cluster.bootstrap
    ).controller_id  # a leader that is split from the controller can change no set
    leader, follower = others(cluster, third)
    config = {"min.insync.replicas": "2"}
    create_topic(cluster.bootstrap, topic_name, assignment=[[leader, follower, third]], config=config)
    wait_until_in_sync(cluster.bootstrap, [topic_name])
    with SteadyProducer(cluster.bootstrap, topic_name) as producer:
        producer.wait_for_more()
        network.split(leader, follower)
        wait_until(
            lambda: isr_of(cluster.address(third), topic_name) == {leader, third},
            "a set without the follower",
        )
        producer.wait_for_more()
        # All is well between the other two: a follower goes on where it can.
        cluster.kill(leader)
        assert wait_for_leader(cluster, topic_name, other_than=leader) == third
        producer.wait_for_more()
        wait_until(
            lambda: isr_of(cluster.address(third), topic_name) == {follower, third}, "the follower in the set"
        )
        network.heal()
        cluster.start(leader)
        wait_until_in_sync(cluster.bootstrap, [topic_name])
        sent = producer.finish()
    assert read_all(cluster.bootstrap, topic_name) == sent


def test_a_leader_without_followers_and_controller_shows_nothing_that_only_it_has(
    split: Split, topic_name: str
) -> None:
    """The set of in-sync replicas stays as it is, as nobody can be asked to change it."""
    cluster, network = split
    controller = describe(cluster.bootstrap).controller_id
    leader, *followers = [*others(cluster, controller), controller]
    create_topic(cluster.bootstrap, topic_name, assignment=[[leader, *followers]])
    wait_until_in_sync(cluster.bootstrap, [topic_name])
    with DirectProducer(cluster.port(leader)) as direct:
        assert direct.produce(topic_name, b"of all") == ErrorCode.NONE
        for follower in followers:
            network.split(leader, follower)
        assert direct.produce(topic_name, b"of one", acks=1) == ErrorCode.NONE
        unanswered = direct.produce(topic_name, b"of all, in vain", timeout_ms=2 * LAG_MS)
        assert unanswered == ErrorCode.REQUEST_TIMED_OUT
        assert isr_of(cluster.address(leader), topic_name) == {leader, *followers}
        assert read_all(cluster.address(leader), topic_name) == [b"of all"]
        network.heal()
        assert direct.produce(topic_name, b"of all again") == ErrorCode.NONE
    wait_until_in_sync(cluster.bootstrap, [topic_name])
    assert read_all(cluster.bootstrap, topic_name) == [
        b"of all",
        b"of one",
        b"of all, in vain",
        b"of all again",
    ]


def test_a_broker_that_hears_late_of_a_topic_made_again_takes_the_new_one(
    split: Split, topic_name: str
) -> None:
    cluster, network = split
    controller = describe(cluster.bootstrap).controller_id
    late, third = others(cluster, controller)
    create_topic(cluster.bootstrap, topic_name, assignment=[[late, controller]])
    wait_until_in_sync(cluster.bootstrap, [topic_name])
    produce(cluster.bootstrap, topic_name, [b"old"] * 10)
    network.split(late, controller)
    delete_topic(cluster.address(controller), topic_name)
    create_topic(cluster.address(controller), topic_name, assignment=[[third, late]])
    produce(cluster.address(controller), topic_name, [b"new"])
    network.heal()
    wait_until_in_sync(cluster.bootstrap, [topic_name])
    cluster.stop(third)
    assert wait_for_leader(cluster, topic_name, other_than=third) == late
    assert read_all(cluster.address(late), topic_name) == [b"new"]
    cluster.start(third)
    wait_until_in_sync(cluster.bootstrap, [topic_name])


@pytest.mark.parametrize("is_controller", [False, True], ids=["broker", "controller"])
def test_a_leader_without_zookeeper_acknowledges_nothing_once_others_lead(
    split: Split, topic_name: str, *, is_controller: bool
) -> None:
    cluster, network = split
    controller = describe(cluster.bootstrap).controller_id
    zombie = controller if is_controller else others(cluster, controller)[0]
    # One replica would be enough: it is not for want of them that nothing is acknowledged.
    create_topic(cluster.bootstrap, topic_name, assignment=[[zombie, *others(cluster, zombie)]])
    wait_until_in_sync(cluster.bootstrap, [topic_name])
    with DirectProducer(cluster.port(zombie)) as of_all, DirectProducer(cluster.port(zombie)) as of_one:
        assert of_all.produce(topic_name, b"of all") == ErrorCode.NONE
        assert of_one.produce(topic_name, b"of one", acks=1) == ErrorCode.NONE
        network.split_from_zookeeper(zombie)
        leader = wait_for_leader(cluster, topic_name, other_than=zombie)
        of_all.send(topic_name, b"zombie", acks=-1, timeout_ms=2 * LAG_MS)
        of_one.send(topic_name, b"zombie", acks=1, timeout_ms=2 * LAG_MS)
        produce(cluster.address(leader), topic_name, [b"after"])
        assert of_all.answer() != ErrorCode.NONE
        assert of_one.answer() != ErrorCode.NONE
        network.heal()
        # Asked elsewhere: until it is told, it believes to lead, with all in sync.
        wait_until_in_sync(cluster.address(leader), [topic_name])
    assert read_all(cluster.address(leader), topic_name) == [b"of all", b"of one", b"after"]
    # It cut what nobody else had, and all logs are the same.
    cluster.stop(leader)
    wait_for_leader(cluster, topic_name, other_than=leader)
    produce(cluster.address(zombie), topic_name, [b"at last"])
    cluster.start(leader)
    wait_until_in_sync(cluster.bootstrap, [topic_name])
    assert read_all(cluster.bootstrap, topic_name) == [b"of all", b"of one", b"after", b"at last"]
