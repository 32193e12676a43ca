"""A network that fails between brokers, and between a broker and ZooKeeper, while clients still reach everybody."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.model.errors import ErrorCode
from penstock.testing.clusters import create_topic, wait_until, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.processes import free_ports
from penstock.testing.zookeeper import ZooKeeperServer
from tests.cluster.clients import DirectProducer, SteadyProducer, isr_of, wait_for_leader
from tests.cluster.conftest import OPTIONS, SESSION_TIMEOUT_MS, check_logs
from tests.crash.plain_client import produce, read_all
from tests.proxy import Proxy

LAG_MS = 3_000


@dataclass
class Network:
    cluster: PenstockCluster
    to_broker: dict[int, Proxy]  # what other brokers reach this one through; clients do not
    to_zookeeper: dict[int, Proxy]  # what this broker reaches ZooKeeper through


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    with ExitStack() as stack:
        zookeeper = stack.enter_context(ZooKeeperServer(tmp_path / "zookeeper"))
        ports, inner_ports = free_ports(3), free_ports(3)
        to_broker = {
            number: stack.enter_context(Proxy(f"127.0.0.1:{port}"))
            for number, port in enumerate(inner_ports, 1)
        }
        to_zookeeper = {number: stack.enter_context(Proxy(zookeeper.address)) for number in to_broker}
        cluster = stack.enter_context(
            PenstockCluster(
                tmp_path,
                zookeeper=zookeeper,
                ports=ports,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                options={
                    **OPTIONS,
                    "inter.broker.listener.name": "INSIDE",
                    "listener.security.protocol.map": "OUTSIDE:PLAINTEXT,INSIDE:PLAINTEXT",
                    "replica.lag.time.max.ms": str(LAG_MS),
                },
                options_of={
                    number: {
                        "listeners": f"OUTSIDE://127.0.0.1:{port},INSIDE://127.0.0.1:{inner}",
                        "advertised.listeners": f"OUTSIDE://127.0.0.1:{port},INSIDE://{to_broker[number].address}",
                    }
                    for number, (port, inner) in enumerate(zip(ports, inner_ports, strict=True), 1)
                },
                zookeeper_connect_of={number: proxy.address for number, proxy in to_zookeeper.items()},
            )
        )
        yield Network(cluster, to_broker, to_zookeeper)
        for proxy in (*to_broker.values(), *to_zookeeper.values()):
            proxy.heal()
        check_logs(cluster)


def make_topic(cluster: PenstockCluster, *, first: int) -> None:
    """Led by one of them, with the others as followers."""
    replicas = [first, *(each for each in cluster.broker_ids if each != first)]
    create_topic(cluster.bootstrap, "split", assignment=[replicas], config={"min.insync.replicas": "2"})
    wait_until_in_sync(cluster.bootstrap, ["split"])


def test_a_leader_that_is_cut_off_alone_acknowledges_nothing_more(network: Network) -> None:
    """Its clients still reach it, and it has not been told that another leads."""
    cluster = network.cluster
    make_topic(cluster, first=2)
    with DirectProducer(cluster.port(2)) as direct:
        assert direct.produce("split", b"before") == ErrorCode.NONE
        network.to_broker[2].stall()
        network.to_zookeeper[2].stall()
        wait_for_leader(cluster, "split", other_than=2)
        assert direct.produce("split", b"cut off", acks=-1, timeout_ms=1000) != ErrorCode.NONE
        assert direct.produce("split", b"cut off", acks=1, timeout_ms=1000) != ErrorCode.NONE
    produce(cluster.address(1), "split", [b"after"])
    network.to_broker[2].heal()
    network.to_zookeeper[2].heal()
    wait_until_in_sync(cluster.address(1), ["split"])  # broker 2 may still know the old world
    assert read_all(cluster.address(1), "split") == [b"before", b"after"]


def test_a_broker_without_zookeeper_is_replaced_and_joins_again(network: Network) -> None:
    cluster = network.cluster
    make_topic(cluster, first=2)
    with SteadyProducer(cluster.bootstrap, "split") as producer:
        producer.wait_for_more()
        network.to_zookeeper[2].cut()
        wait_for_leader(cluster, "split", other_than=2)
        produce(cluster.address(1), "split", [b"meanwhile"])  # of a client that knows the new leader
        network.to_zookeeper[2].heal()
        producer.wait_for_more()
        sent = producer.finish()
    wait_until_in_sync(cluster.address(1), ["split"])
    stored = read_all(cluster.address(1), "split")
    stored.remove(b"meanwhile")
    assert stored == sent


def test_a_leader_that_followers_do_not_reach_goes_on_without_them(network: Network) -> None:
    """Followers leave the in-sync set, and with fewer than two nothing is acknowledged until they are back."""
    cluster = network.cluster
    make_topic(cluster, first=2)
    with DirectProducer(cluster.port(2)) as direct:
        assert direct.produce("split", b"before") == ErrorCode.NONE
        network.to_broker[2].stall()
        assert direct.produce("split", b"of one", acks=1) == ErrorCode.NONE  # which followers do not get
        wait_until(lambda: isr_of(cluster.bootstrap, "split") == {2}, "the leader alone in the set")
        assert direct.produce("split", b"too few", acks=-1) == ErrorCode.NOT_ENOUGH_REPLICAS
        network.to_broker[2].heal()
        wait_until(lambda: direct.produce("split", b"after") == ErrorCode.NONE, "enough replicas")
    assert read_all(cluster.bootstrap, "split") == [b"before", b"of one", b"after"]
