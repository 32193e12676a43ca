"""Retention, timestamps and recompression as a user sees them."""

import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from penstock.model.errors import ErrorCode
from penstock.records.batch import iterate_headers
from penstock.records.compression import CODECS
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import StartBroker
from tests.crash.plain_client import admin, create_topic, produce, read_all, wait_until
from tests.hostile.raw_client import RawClient
from tests.log.brokers import fetch_error, list_offset, send

QUICK = {"log.retention.check.interval.ms": "50", "log.initial.task.delay.ms": "0"}
DAY_MS = 86_400_000


def now_ms() -> int:
    return int(time.time() * 1000)


def set_config(broker: PenstockBroker, topic: str, **values: str) -> None:
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in values.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    asking = admin(broker.bootstrap)
    asking.incremental_alter_configs([resource])[resource].result(10)


def earliest(client: RawClient, topic: str) -> int:
    return list_offset(client, topic, 0)[1]


def test_old_segments_go_by_time_once_a_live_change_says_so_and_stay_gone(start_broker: StartBroker) -> None:
    broker = start_broker(options=QUICK)
    create_topic(broker.bootstrap, "orders", config={"retention.ms": "-1", "file.delete.delay.ms": "0"})
    with RawClient(broker.port) as client:
        for number in range(5):
            assert send(client, "orders", 0, timestamp=now_ms() - DAY_MS) == 0, number
        assert earliest(client, "orders") == 0
        set_config(broker, "orders", retention_ms="3600000")
        wait_until(lambda: earliest(client, "orders") == 5, what="the end of the old records")
        assert fetch_error(client, "orders", 0, 4) == ErrorCode.OFFSET_OUT_OF_RANGE
        assert send(client, "orders", 0, b"new", timestamp=now_ms()) == 0
        directory = broker.data_dir / "orders-0"
        wait_until(
            lambda: [path.name for path in directory.glob("*.log*")] == ["00000000000000000005.log"],
            what="the removal of the files",
        )
    broker.kill()
    again = start_broker(options=QUICK, port=broker.port)
    with RawClient(again.port) as client:
        assert earliest(client, "orders") == 5
    assert read_all(again.bootstrap, "orders") == [b"new"]


def test_a_broker_default_limits_the_size_and_the_files_wait_for_their_delay(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(options={**QUICK, "log.retention.bytes": "2000000", "log.segment.bytes": "1048576"})
    create_topic(broker.bootstrap, "orders")
    produce(broker.bootstrap, "orders", [bytes(100_000)] * 60)
    with RawClient(broker.port) as client:
        wait_until(lambda: earliest(client, "orders") > 30, what="the end of the oldest records")
        left = 60 - earliest(client, "orders")
        assert left * 100_000 >= 2_000_000
        assert len(read_all(broker.bootstrap, "orders")) == left
    renamed = list((broker.data_dir / "orders-0").glob("*.log.deleted"))
    assert renamed
    broker.kill()
    again = start_broker(options=QUICK, port=broker.port)
    assert len(read_all(again.bootstrap, "orders")) == left
    assert not list((again.data_dir / "orders-0").glob("*.deleted"))


def test_a_compacted_topic_loses_nothing_by_age(start_broker: StartBroker) -> None:
    broker = start_broker(options={**QUICK, "log.cleaner.enable": "false"})
    create_topic(broker.bootstrap, "deleted", config={"retention.ms": "1000"})
    create_topic(broker.bootstrap, "kept", config={"retention.ms": "1000", "cleanup.policy": "compact"})
    with RawClient(broker.port) as client:
        assert send(client, "deleted", 0, timestamp=now_ms() - DAY_MS) == 0
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        producer.produce("kept", b"value", b"key", timestamp=now_ms() - DAY_MS)
        assert producer.flush(10) == 0
        wait_until(lambda: earliest(client, "deleted") == 1, what="the end of the old record")
        assert earliest(client, "kept") == 0


def test_times_outside_the_bounds_are_refused_and_append_time_replaces_them(
    broker: PenstockBroker, topic_name: str
) -> None:
    bounded = {"message.timestamp.before.max.ms": "60000", "message.timestamp.after.max.ms": "1000"}
    create_topic(broker.bootstrap, topic_name, config=bounded)
    with RawClient(broker.port) as client:
        first_ms = now_ms()
        assert send(client, topic_name, 0, timestamp=first_ms) == 0
        assert send(client, topic_name, 0, timestamp=-1) == 0
        for wrong in (now_ms() - 120_000, now_ms() + 60_000):
            assert send(client, topic_name, 0, timestamp=wrong) == ErrorCode.INVALID_TIMESTAMP
        wait_until(lambda: now_ms() > first_ms, what="the next millisecond")
        before_ms = now_ms()
        set_config(broker, topic_name, message_timestamp_type="LogAppendTime")
        assert send(client, topic_name, 0, timestamp=5) == 0
        assert list_offset(client, topic_name, 0, time=before_ms) == (0, 2)
        assert list_offset(client, topic_name, 0, time=-3) == (0, 2)
        assert list_offset(client, topic_name, 0, time=now_ms() + 60_000) == (0, -1)


@pytest.mark.parametrize("target", sorted(CODECS))
def test_batches_are_stored_in_the_codec_the_topic_asks_for(
    broker: PenstockBroker, topic_name: str, target: str
) -> None:
    create_topic(broker.bootstrap, topic_name, config={"compression.type": target})
    values = [b"value %d" % number * 20 for number in range(200)]
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "compression.type": codec,
                "linger.ms": 20,
                "log_level": 0,
            }
        )
        for value in values:
            producer.produce(topic_name, value)
        assert producer.flush(10) == 0
    assert read_all(broker.bootstrap, topic_name) == values * 5
    stored = Path(broker.data_dir / f"{topic_name}-0" / "00000000000000000000.log").read_bytes()
    headers = [header for _, header in iterate_headers(stored)]
    assert {header.codec for header in headers} == {CODECS[target]}
    assert headers[0].base_offset == 0
    assert headers[-1].last_offset == 999


def test_the_clients_codec_stays_where_the_topic_asks_for_none(
    broker: PenstockBroker, topic_name: str
) -> None:
    create_topic(broker.bootstrap, topic_name)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "gzip", "log_level": 0})
    producer.produce(topic_name, bytes(1000))
    assert producer.flush(10) == 0
    stored = Path(broker.data_dir / f"{topic_name}-0" / "00000000000000000000.log").read_bytes()
    assert {header.codec for _, header in iterate_headers(stored)} == {CODECS["gzip"]}
