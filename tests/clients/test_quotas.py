"""A producer over its quota is slowed down, and neither it nor its neighbour sees an error."""

import json

from confluent_kafka import KafkaError, Producer

from penstock.admin import Cluster
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.driver import WAIT_S, wait_until
from tests.conftest import StartBroker
from tests.hostile.raw_client import RawClient

RATE = 20_000
VALUE = b"x" * 10_000


class Watched:
    """A producer that keeps what librdkafka says of waits and errors."""

    def __init__(self, broker: PenstockBroker, client_id: str) -> None:
        self.errors: list[KafkaError] = []
        self.throttled_ms = 0
        self.connects = 0
        self.producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "client.id": client_id,
                "linger.ms": 0,
                "batch.num.messages": 1,
                "statistics.interval.ms": 50,
                "stats_cb": self._statistics,
                "error_cb": self.errors.append,
            }
        )

    def _statistics(self, text: str) -> None:
        for broker in json.loads(text)["brokers"].values():
            self.throttled_ms = max(self.throttled_ms, broker["throttle"]["max"])
            self.connects = max(self.connects, broker["disconnects"])

    def send(self, count: int) -> None:
        for _ in range(count):
            self.producer.produce("t", VALUE, on_delivery=self._delivered)

    def _delivered(self, error: KafkaError | None, _: object) -> None:
        if error is not None:
            self.errors.append(error)


def test_a_producer_over_its_quota_waits_and_its_neighbour_does_not(start_broker: StartBroker) -> None:
    broker = start_broker()
    with Cluster(broker.bootstrap) as cluster:
        cluster.topics.create("t", partitions=1)
        cluster.quotas.set({"producer_byte_rate": RATE}, client_id="eager")
        eager, neighbour = Watched(broker, "eager"), Watched(broker, "neighbour")
        eager.send(25)  # 250,000 bytes, of which 200,000 may go at once
        neighbour.send(25)
        assert neighbour.producer.flush(WAIT_S) == 0
        assert eager.producer.flush(WAIT_S) == 0
        wait_until(lambda: eager.producer.poll(0.05) is not None and eager.throttled_ms > 0, "a wait")
        assert neighbour.throttled_ms == 0
        assert not eager.errors + neighbour.errors
        assert eager.connects == neighbour.connects == 0
        # Without the quota it does not wait any more.
        cluster.quotas.remove(client_id="eager")
        again = Watched(broker, "eager")
        again.send(50)
        assert again.producer.flush(WAIT_S) == 0
        assert (again.errors, again.throttled_ms) == ([], 0)


def test_quotas_survive_a_restart(start_broker: StartBroker) -> None:
    first = start_broker()
    with Cluster(first.bootstrap) as cluster:
        cluster.quotas.set({"producer_byte_rate": RATE}, user="ana", client_id="app")
        cluster.quotas.set({"consumer_byte_rate": RATE}, user="ana")
        cluster.users.set("ana", "s3cret")
        before = cluster.quotas.list()
    first.stop()
    with Cluster(start_broker().bootstrap) as cluster:
        assert cluster.quotas.list() == before
        assert [user.name for user in cluster.users.list()] == ["ana"]


def test_an_address_over_its_quota_is_served_later(start_broker: StartBroker) -> None:
    """With a window of a second one connection may come at once, and the others wait for it."""
    broker = start_broker(options={"quota.window.num": "1"})
    with Cluster(broker.bootstrap) as cluster:
        cluster.quotas.set({"connection_creation_rate": 1}, ip="127.0.0.1")
        clients = [RawClient(broker.port) for _ in range(3)]
        for client in clients:
            assert client.is_served()
            client.close()
        cluster.quotas.remove(ip="127.0.0.1")
