"""producer.id.expiration.ms as a client sees it, through DescribeProducers."""

from confluent_kafka import Producer

from penstock.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from tests.conftest import StartBroker
from tests.crash.plain_client import create_topic, wait_until
from tests.hostile.raw_client import RawClient

QUICK = {
    "producer.id.expiration.ms": "1500",
    "producer.id.expiration.check.interval.ms": "50",
    "log.retention.check.interval.ms": "50",
}


def known_producers(client: RawClient, topic: str) -> list[int]:
    asked = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    (partition,) = client.ask(asked, 0).topics[0].partitions
    assert partition.error_code == 0
    return [producer.producer_id for producer in partition.active_producers]


def test_a_producer_is_forgotten_when_it_is_idle_and_may_go_on_all_the_same(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(options=QUICK)
    create_topic(broker.bootstrap, "orders")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "log_level": 0})
    producer.produce("orders", b"1", partition=0)
    assert producer.flush(20) == 0
    with RawClient(broker.port) as client:
        (producer_id,) = known_producers(client, "orders")
        wait_until(lambda: known_producers(client, "orders") == [], what="the expiry", timeout_s=15)
        producer.produce("orders", b"2", partition=0)
        assert producer.flush(20) == 0
        assert known_producers(client, "orders") == [producer_id]
