"""A quota that is set at one broker of a cluster counts at the others, and is where Kafka would keep it."""

import json

from kazoo.client import KazooClient

from penstock.admin import Cluster
from penstock.wire.messages.metadata import MetadataRequest
from tests.clients.driver import wait_until
from tests.cluster.conftest import StartCluster
from tests.hostile.raw_client import RawClient


def test_a_cluster_follows_its_quotas(start_cluster: StartCluster) -> None:
    cluster = start_cluster(brokers=2)
    first, second = (f"127.0.0.1:{cluster.port(number)}" for number in (1, 2))
    with Cluster(first) as one, Cluster(second) as other:
        other.users.set("alice", "s3cret")
        for each in (one, other):  # one of them is not the controller
            each.quotas.set({"producer_byte_rate": 1024}, user="alice", client_id="app")
            each.quotas.set({"request_percentage": 1e-6}, client_id="slow")
            wait_until(lambda: one.quotas.list() == other.quotas.list() != [], "both brokers know it")
        for number in (1, 2):
            with RawClient(cluster.port(number), client_id="slow") as client:
                assert client.ask(MetadataRequest(topics=[]), 9).throttle_time_ms > 0
        store = KazooClient(hosts=cluster.zookeeper.address)
        store.start(timeout=30)
        try:
            data, _ = store.get("/config/users/alice/clients/app")
            assert data == b'{"version":1,"config":{"producer_byte_rate":"1024"}}'
            assert store.get("/config/users/alice/clients")[0] == b""
            assert list(json.loads(store.get("/config/users/alice")[0])["config"]) == ["SCRAM-SHA-512"]
            changes = [
                store.get(f"/config/changes/{name}")[0] for name in store.get_children("/config/changes")
            ]
            assert b'{"version":2,"entity_path":"users/alice/clients/app"}' in changes
            # Another broker, or Kafka's own, changes it.
            store.set("/config/users/alice/clients/app", b'{"version":1,"config":{"consumer_byte_rate":"7"}}')
        finally:
            store.stop()
            store.close()
        for each in (one, other):
            wait_until(
                lambda each=each: (
                    [q.values for q in each.quotas.list() if q.user == "alice"]  # type: ignore[misc]
                    == [{"consumer_byte_rate": 7.0}]
                ),
                "the new quota",
            )
