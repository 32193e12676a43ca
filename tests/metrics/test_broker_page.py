"""What one broker's page says after some work was done: counts are exact, times are there, lag is right."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import free_ports
from tests.conftest import BROKER_OPTIONS
from tests.metrics.scraping import scrape, until, value

REQUEST = "kafka_network_requestmetrics"
TOPIC = "kafka_server_brokertopicmetrics"


class Watched(PenstockBroker):
    def __init__(self, directory: Path, **options: str) -> None:
        (self.metrics_port,) = free_ports(1)
        own = {"penstock.metrics.listener": f"127.0.0.1:{self.metrics_port}", **BROKER_OPTIONS, **options}
        super().__init__(directory, options=own)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with Watched(tmp_path_factory.mktemp("watched")) as running:
        yield running
        assert "Traceback" not in running.log_path.read_text()


def write(broker: PenstockBroker, topic: str, count: int, *, size: int = 100) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    for _ in range(count):
        producer.produce(topic, b"x" * size, partition=0)
    assert producer.flush(30) == 0


def consumer_of(broker: PenstockBroker, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap, "group.id": group, "client.id": f"client-{group}",
            "auto.offset.reset": "earliest", "enable.auto.commit": False,
        }
    )  # fmt: skip


def commit(broker: PenstockBroker, group: str, topic: str, offset: int) -> None:
    """As one who is no member."""
    consumer = consumer_of(broker, group)
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def test_records_and_bytes_are_counted_by_topic_and_together(watched: Watched) -> None:
    write(watched, "counted", 500)
    page = scrape(watched.metrics_port)
    assert value(page, f"{TOPIC}_messagesin_total", topic="counted") == 500
    bytes_in = value(page, f"{TOPIC}_bytesin_total", topic="counted") or 0
    assert 50_000 < bytes_in == value(page, "kafka_log_log_size", topic="counted")
    assert (value(page, f"{TOPIC}_messagesin_total") or 0) >= 500
    batches = value(page, f"{TOPIC}_totalproducerequests_total", topic="counted") or 0
    consumer = consumer_of(watched, "reader")
    consumer.assign([TopicPartition("counted", 0, 0)])
    read = 0
    while read < 500:
        read += len(consumer.consume(500 - read, timeout=30))
    consumer.close()
    page = scrape(watched.metrics_port)
    # A slice may end in the middle of a batch, which is then sent again.
    assert (value(page, f"{TOPIC}_bytesout_total", topic="counted") or 0) >= bytes_in
    assert (value(page, f"{REQUEST}_requests_total", request="Produce") or 0) >= batches >= 1
    for name in ("totaltimems", "localtimems", "responsesendtimems", "requestbytes"):
        assert (value(page, f"{REQUEST}_{name}", request="Produce", quantile="0.99") or 0) > 0, name
    count = sum(
        number for labels, number in page[f"{REQUEST}_requests_total"] if labels["request"] == "Produce"
    )
    assert value(page, f"{REQUEST}_totaltimems_count", request="Produce") == count


def test_refused_batches_are_errors_and_rejected_bytes(watched: Watched) -> None:
    consumer = consumer_of(watched, "nobody")
    with pytest.raises(KafkaException):
        consumer.commit(offsets=[TopicPartition("not-there", 7, 1)], asynchronous=False)
    consumer.close()
    page = scrape(watched.metrics_port)
    error = "UNKNOWN_TOPIC_OR_PARTITION"
    assert (value(page, f"{REQUEST}_errors_total", request="OffsetCommit", error=error) or 0) >= 1


def test_a_group_without_members_keeps_its_lag(watched: Watched) -> None:
    write(watched, "lagging", 100)
    commit(watched, "sleepers", "lagging", 40)
    page = scrape(watched.metrics_port)
    labels = {"consumergroup": "sleepers", "topic": "lagging", "partition": "0"}
    assert value(page, "kafka_consumergroup_current_offset", **labels) == 40
    assert value(page, "kafka_consumergroup_lag", **labels) == 60
    assert value(page, "kafka_consumergroup_lag_sum", consumergroup="sleepers", topic="lagging") == 60
    assert value(page, "kafka_consumergroup_members", consumergroup="sleepers") == 0
    mine = {"group": "sleepers", "topic": "lagging", "client_id": "unknown"}
    assert value(page, "kafka_consumergroup_group_lag", **mine) == 60
    seconds = value(page, "kafka_consumergroup_group_lag_seconds", **mine)
    assert seconds is not None
    assert 0 < seconds < 60
    assert value(page, "kafka_consumergroup_group_max_lag", group="sleepers") == 60
    assert value(page, "kafka_partition_latest_offset", topic="lagging") == 100
    commit(watched, "sleepers", "lagging", 100)
    page = scrape(watched.metrics_port)
    assert value(page, "kafka_consumergroup_group_lag_seconds", **mine) == 0


def test_a_member_is_named_beside_what_it_reads(watched: Watched) -> None:
    write(watched, "read", 10)
    consumer = consumer_of(watched, "readers")
    consumer.subscribe(["read"])
    message = until(lambda: consumer.poll(0.2), "a record")
    consumer.commit(message=message, asynchronous=False)
    page = scrape(watched.metrics_port)
    found = [labels for labels, _ in page["kafka_consumergroup_group_offset"] if labels["group"] == "readers"]
    assert [(each["client_id"], each["member_host"]) for each in found] == [("client-readers", "127.0.0.1")]
    assert value(page, "kafka_consumergroup_members", consumergroup="readers") == 1
    assert (value(page, "kafka_coordinator_group_groupmetadatamanager_numgroupsstable") or 0) >= 1
    consumer.close()


def test_a_member_of_a_group_of_the_newer_protocol_is_named_too(watched: Watched) -> None:
    write(watched, "newer", 10)
    consumer = Consumer(
        {
            "bootstrap.servers": watched.bootstrap, "group.id": "newest", "client.id": "newcomer",
            "group.protocol": "consumer", "auto.offset.reset": "earliest", "enable.auto.commit": False,
        }
    )  # fmt: skip
    consumer.subscribe(["newer"])
    message = until(lambda: consumer.poll(0.2), "a record")
    consumer.commit(message=message, asynchronous=False)
    page = scrape(watched.metrics_port)
    mine = [labels for labels, _ in page["kafka_consumergroup_group_lag"] if labels["group"] == "newest"]
    assert [(each["topic"], each["client_id"]) for each in mine] == [("newer", "newcomer")]
    assert value(page, "kafka_server_group_coordinator_metrics_group_count", protocol="consumer") == 1
    consumer.close()


def test_the_offsets_of_a_deleted_topic_go_and_its_traffic_stays_counted(watched: Watched) -> None:
    from confluent_kafka.admin import AdminClient

    write(watched, "short-lived", 70)
    before = value(scrape(watched.metrics_port), f"{TOPIC}_messagesin_total") or 0
    commit(watched, "late", "short-lived", 7)
    admin = AdminClient({"bootstrap.servers": watched.bootstrap})
    for done in admin.delete_topics(["short-lived"]).values():
        done.result(30)

    def is_gone() -> bool:
        page = scrape(watched.metrics_port)
        after = value(page, f"{TOPIC}_messagesin_total") or 0
        assert after >= before  # never back: it is a counter
        return value(page, "kafka_log_log_size", topic="short-lived") is None

    until(is_gone, "no log of the topic")
    page = scrape(watched.metrics_port)
    assert value(page, "kafka_consumergroup_lag", consumergroup="late") is None


def test_lag_is_never_negative_while_offsets_move(watched: Watched) -> None:
    """A consumer commits behind a producer as fast as it can, and each page is looked at."""
    write(watched, "moving", 1)
    stopped = threading.Event()

    def produce() -> None:
        while not stopped.is_set():
            write(watched, "moving", 20)

    def consume() -> None:
        consumer = consumer_of(watched, "chasers")
        consumer.assign([TopicPartition("moving", 0, 0)])
        while not stopped.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                consumer.commit(message=message, asynchronous=True)
        consumer.close()

    threads = [threading.Thread(target=work) for work in (produce, consume)]
    for thread in threads:
        thread.start()
    try:
        seen: set[float] = set()

        def moved() -> bool:
            page = scrape(watched.metrics_port)
            for name in ("kafka_consumergroup_lag", "kafka_consumergroup_group_lag_seconds"):
                assert all(number >= 0 for _, number in page.get(name, ())), name
            offset = value(page, "kafka_consumergroup_current_offset", consumergroup="chasers")
            if offset is not None:
                assert offset <= (value(page, "kafka_partition_latest_offset", topic="moving") or 0)
                seen.add(offset)
            return len(seen) >= 15

        until(moved, "fifteen different offsets")
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def test_groups_beyond_the_bound_are_left_out_and_counted(tmp_path: Path) -> None:
    options = {"penstock.metrics.max.groups": "2", "penstock.metrics.spelling": "confluent"}
    with Watched(tmp_path, **options) as broker:
        write(broker, "orders", 5)
        for number in range(5):
            commit(broker, f"group-{number}", "orders", number)
        page = scrape(broker.metrics_port)
        assert len(page["kafka_consumergroup_lag"]) == 2
        assert value(page, "penstock_metrics_left_out_groups") == 3
        assert value(page, "kafka_coordinator_group_groupmetadatamanager_numgroups") == 5
        # and Confluent's spelling
        assert value(page, f"{TOPIC}_messagesinpersec", topic="orders") == 5
        assert f"{TOPIC}_messagesin_total" not in page
        idle = "kafka_network_socketserver_networkprocessoravgidlepercent"
        assert 0 <= (value(page, idle) or 0) <= 1
