"""Brokers that believe to be what they are no more."""

import subprocess
from pathlib import Path

import pytest

from penstock.model.errors import ErrorCode
from penstock.testing.clusters import create_topic, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster, broker_command
from penstock.testing.processes import free_port
from tests.cluster.clients import DirectProducer, wait_for_leader
from tests.crash.plain_client import produce, read_all


def test_a_leader_that_wakes_after_its_session_acknowledges_nothing(
    cluster: PenstockCluster, topic_name: str
) -> None:
    """The requests wait in its sockets when it wakes: it reads them before it can learn that it leads no more."""
    create_topic(cluster.bootstrap, topic_name, assignment=[[2, 3, 1]], config={"min.insync.replicas": "2"})
    wait_until_in_sync(cluster.bootstrap, [topic_name])
    with DirectProducer(cluster.port(2)) as of_all, DirectProducer(cluster.port(2)) as of_one:
        assert of_one.produce(topic_name, b"of one", acks=1) == ErrorCode.NONE
        assert (
            of_all.produce(topic_name, b"of all") == ErrorCode.NONE
        )  # and what was before it is everywhere too
        cluster.pause(2)
        try:
            of_all.send(topic_name, b"zombie", acks=-1)
            of_one.send(topic_name, b"zombie", acks=1)
            wait_for_leader(cluster, topic_name, other_than=2)
            produce(cluster.address(1), topic_name, [b"after"])
        finally:
            cluster.resume(2)
        assert of_all.answer() != ErrorCode.NONE
        assert of_one.answer() != ErrorCode.NONE
    wait_until_in_sync(cluster.bootstrap, [topic_name])
    assert read_all(cluster.bootstrap, topic_name) == [b"of one", b"of all", b"after"]


@pytest.mark.parametrize("says_the_same_address", [False, True])
def test_a_second_broker_with_the_same_id_refuses_to_start(
    cluster: PenstockCluster, topic_name: str, tmp_path: Path, says_the_same_address: bool
) -> None:
    """Whatever address it advertises: who is registered is told by the session that owns the node."""
    advertised = {"advertised.listeners": f"PLAINTEXT://{cluster.address(2)}"}
    log_before = cluster.log_text(2)
    create_topic(cluster.bootstrap, topic_name, assignment=[[2, 3, 1]])
    command = broker_command(
        2,
        port=free_port(),
        data_dir=tmp_path / "second",
        connect=cluster.zookeeper.address,
        options={"zookeeper.session.timeout.ms": "1000", **(advertised if says_the_same_address else {})},
    )
    second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 1
    assert second.stderr.splitlines()[-1] == (
        f"penstock: broker 2 is already in the cluster, at {cluster.address(2)}; "
        "stop it, or give this one another id (--broker-id)"
    )
    assert "Traceback" not in second.stderr
    assert "has ended" not in cluster.log_text(2).removeprefix(log_before)
    produce(cluster.bootstrap, topic_name, [b"the first goes on"])
