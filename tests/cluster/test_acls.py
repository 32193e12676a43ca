"""Access rules in a cluster of real brokers on ZooKeeper."""

import json
import subprocess
import sys
from typing import Any

from kazoo.client import KazooClient

from penstock.testing.penstock_cluster import PenstockCluster
from tests.clients.driver import wait_until
from tests.cluster.conftest import StartCluster

OPTIONS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def penstock(cluster: PenstockCluster, broker_id: int, *words: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "acls", *words, "-o", "json", "-b", cluster.address(broker_id)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def names(cluster: PenstockCluster, broker_id: int) -> set[str]:
    return {one["resource_name"] for one in penstock(cluster, broker_id, "list")}


def test_rules_are_the_nodes_of_kafka_and_in_force_everywhere(start_cluster: StartCluster) -> None:
    cluster = start_cluster(brokers=2, options=OPTIONS)
    allow = ("--principal", "User:alice", "--allow")
    penstock(cluster, 1, "add", *allow, "Read", "--topic", "orders")
    penstock(cluster, 2, "add", *allow, "Read", "--topic", "ord", "--prefixed")
    for broker_id in cluster.broker_ids:
        wait_until(lambda at=broker_id: names(cluster, at) == {"orders", "ord"}, "the rules")  # type: ignore[misc]
    zookeeper = KazooClient(cluster.zookeeper.address)
    zookeeper.start()
    try:
        # As Kafka 3.9.1 wrote them for the same words.
        node = b'{"acls":[{"principal":"User:alice","permissionType":"Allow","host":"*","operation":"Read"}],"version":1}'
        assert zookeeper.get("/kafka-acl/Topic/orders")[0] == node
        assert zookeeper.get("/kafka-acl-extended/prefixed/Topic/ord")[0] == node
        (change,) = zookeeper.get_children("/kafka-acl-changes")
        assert change == "acl_changes_0000000000"
        assert zookeeper.get(f"/kafka-acl-changes/{change}")[0] == b"TOPIC:orders"
        (change,) = zookeeper.get_children("/kafka-acl-extended-changes")
        told = b'{"version":1,"resourceType":"TOPIC","name":"ord","patternType":"PREFIXED"}'
        assert zookeeper.get(f"/kafka-acl-extended-changes/{change}")[0] == told
        zookeeper.create("/kafka-acl/Group/readers", node)  # as a Kafka broker or its tool does
    finally:
        zookeeper.stop()
        zookeeper.close()
    for broker_id in cluster.broker_ids:
        wait_until(lambda at=broker_id: "readers" in names(cluster, at), "a rule of others")  # type: ignore[misc]
    for broker_id in cluster.broker_ids:
        cluster.stop(broker_id)
        cluster.start(broker_id)
    penstock(cluster, 2, "remove", "--topic", "orders", "--yes")
    for broker_id in cluster.broker_ids:
        wait_until(lambda at=broker_id: names(cluster, at) == {"ord", "readers"}, "what is left")  # type: ignore[misc]
