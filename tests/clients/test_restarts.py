"""Stopped or killed and started again, a broker is what it was: data, offsets, topic ids, configurations."""

import base64
from typing import Any

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import (
    admin_client,
    create_topic,
    delete_records,
    delete_topic,
    topic_configs,
)
from tests.clients.driver import WAIT_S, Driver, Record, consume, produce, read, wait_until
from tests.conftest import StartBroker


def topic_id(admin: AdminClient, name: str) -> str:
    described = admin.describe_topics(TopicCollection([name]))[name].result(WAIT_S)
    return str(described.topic_id)


def end(broker: PenstockBroker, how: str) -> None:
    if how == "stop":
        assert broker.stop() == 0
    else:
        broker.kill()


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_topics_records_and_configurations_are_as_they_were(
    start_broker: StartBroker, topic_name: str, drivers: dict[str, Driver], ending: str
) -> None:
    broker = start_broker()
    driver = drivers["confluent"]
    admin = admin_client(broker.bootstrap)
    # Small segments, so that more than the last of them has a say.
    create_topic(
        broker.bootstrap, topic_name, partitions=3, configs={"segment.bytes": "1048576", "retention.ms": "-1"}
    )
    create_topic(broker.bootstrap, "deleted")
    delete_topic(broker.bootstrap, "deleted")
    change = ConfigEntry("retention.bytes", "123456789", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic_name, incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)
    sent = [
        Record(b"%06d" % number + bytes(1000), timestamp_ms=1_700_000_000_000 + number, partition=number % 3)
        for number in range(6000)
    ]
    produce(driver, broker.bootstrap, topic_name, sent, codec="none")
    delete_records(broker.bootstrap, topic_name, 1, 500)
    identity = topic_id(admin, topic_name)
    configs = topic_configs(broker.bootstrap, topic_name)
    cluster = admin.describe_cluster().result(WAIT_S).cluster_id
    assert len(list((broker.data_dir / f"{topic_name}-0").glob("*.log"))) == 2

    # Kafka promises a moved start only after a while; ours is on the disk within a second or so.
    starts = broker.data_dir / "log-start-offset-checkpoint"
    wait_until(
        lambda: starts.exists() and f"{topic_name} 1 500\n" in starts.read_text(),
        "the start offset is on the disk",
    )
    end(broker, ending)
    start_broker(port=broker.port)

    admin = admin_client(broker.bootstrap)
    listed: dict[str, Any] = admin.list_topics(timeout=WAIT_S).topics
    assert topic_name in listed
    assert "deleted" not in listed
    assert len(listed[topic_name].partitions) == 3
    assert topic_id(admin, topic_name) == identity
    assert len(base64.urlsafe_b64decode(identity + "==")) == 16
    assert topic_configs(broker.bootstrap, topic_name) == configs
    assert configs["retention.bytes"] == "123456789"
    assert admin.describe_cluster().result(WAIT_S).cluster_id == cluster
    for index in range(3):
        expected = [record for record in sent if record.partition == index]
        if index == 1:
            expected = expected[500:]
        received = consume(driver, broker.bootstrap, topic_name, len(expected), partitions=[index])
        assert [each.record for each in received] == expected
    consumer = driver.consumer(broker.bootstrap, partitions=[(topic_name, 0)])
    assert [consumer.offsets(topic_name, index) for index in range(3)] == [(0, 2000), (500, 2000), (0, 2000)]
    assert consumer.offset_for_time(topic_name, 0, 1_700_000_000_000 + 3000) == 1000
    consumer.close()
    assert produce(driver, broker.bootstrap, topic_name, [Record(b"next")]) == [2000]


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_a_consumer_reads_on_through_a_restart(
    start_broker: StartBroker, topic_name: str, driver: Driver, ending: str
) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, topic_name)
    consumer = driver.consumer(broker.bootstrap, partitions=[(topic_name, 0)])
    try:
        produce(driver, broker.bootstrap, topic_name, [Record(b"before")])
        assert [each.record.value for each in read(consumer, 1)] == [b"before"]
        end(broker, ending)
        start_broker(port=broker.port)
        produce(driver, broker.bootstrap, topic_name, [Record(b"after")])
        assert [(each.offset, each.record.value) for each in read(consumer, 1)] == [(1, b"after")]
    finally:
        consumer.close()
