"""Nothing lost and nothing twice, whoever dies."""

import threading
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.clients.admin import create_topic
from tests.conftest import StartBroker
from tests.mirror.conftest import Clusters
from tests.mirror.mirrors import MirrorProcess, count, numbers, properties, read, until, write

RECORDS = 24_000


def write_slowly(bootstrap: str, topic: str, stopped: threading.Event) -> None:
    """In transactions, some of which are taken back, until all are written or nobody wants more."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": topic, "linger.ms": 1, "log_level": 0}
    )
    producer.init_transactions(20)
    step = RECORDS // 120
    for start in range(0, RECORDS, step):
        for is_kept in (False, True) if start % (10 * step) == 0 else (True,):
            producer.begin_transaction()
            for number in range(start, start + step):
                producer.produce(topic, b"%d" % number, b"k%d" % number, number % 2)
            producer.flush(20)
            if is_kept:
                producer.commit_transaction(20)
            else:
                producer.abort_transaction(20)
        if stopped.wait(0.02):
            return


def test_a_killed_mirror_copies_each_record_exactly_once(clusters: Clusters, tmp_path: Path) -> None:
    create_topic(clusters.a, "counted", partitions=2)
    given = properties(clusters.a, clusters.b, exactly_once_source_support="enabled", topics="counted")
    stopped = threading.Event()
    writer = threading.Thread(target=write_slowly, args=(clusters.a, "counted", stopped))
    writer.start()
    try:
        with MirrorProcess(tmp_path, given) as mirror:
            for part in (1, 3):
                until(lambda part=part: count(clusters.b, "A.counted") > part * RECORDS // 8, f"part {part}")
                mirror.kill()
                mirror.again()
            writer.join(60)
            until(lambda: count(clusters.b, "A.counted") >= RECORDS, "all records")
            assert mirror.stop() == 0
    finally:
        stopped.set()
        writer.join()
    assert numbers(read(clusters.b, "A.counted")) == list(range(RECORDS))
    assert read(clusters.b, "A.counted") == read(clusters.a, "counted")


@pytest.mark.parametrize("side", ["A", "B"])
def test_a_brokers_death_is_waited_for(side: str, start_broker: StartBroker, tmp_path: Path) -> None:
    brokers = {name: start_broker(name=name) for name in "AB"}
    create_topic(brokers["A"].bootstrap, "orders", partitions=2)
    write(brokers["A"].bootstrap, "orders", range(2000), partitions=2)
    given = properties(brokers["A"].bootstrap, brokers["B"].bootstrap, exactly_once_source_support="enabled")
    with MirrorProcess(tmp_path, given) as mirror:
        until(lambda: count(brokers["B"].bootstrap, "A.orders") == 2000, "the first records")
        brokers[side].kill()
        brokers[side] = start_broker(name=side, port=brokers[side].port)
        write(brokers["A"].bootstrap, "orders", range(2000, 5000), partitions=2)
        until(lambda: count(brokers["B"].bootstrap, "A.orders") >= 5000, "the later records")
        assert numbers(read(brokers["B"].bootstrap, "A.orders")) == list(range(5000))
        mirror.process.stop(timeout_s=20)


def test_without_transactions_nothing_is_lost(clusters: Clusters, tmp_path: Path) -> None:
    create_topic(clusters.a, "plain", partitions=2)
    write(clusters.a, "plain", range(20_000), partitions=2)
    with MirrorProcess(tmp_path, properties(clusters.a, clusters.b, topics="plain")) as mirror:
        until(lambda: count(clusters.b, "A.plain") > 0, "some records")
        mirror.kill()
        write(clusters.a, "plain", range(20_000, 21_000), partitions=2)
        mirror.again()
        until(lambda: set(numbers(read(clusters.b, "A.plain"))) == set(range(21_000)), "all records")
        assert mirror.stop() == 0
