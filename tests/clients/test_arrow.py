"""Topics as Arrow tables from real brokers: the same records that confluent-kafka reads."""

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

import penstock.arrow
from penstock.arrow import BadOption, NoSuchTopic, ReadFailed
from penstock.client import fetching
from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import free_port
from simulation.apache.apache_kafka import ApacheKafka
from tests.clients.admin import create_topic, delete_records, delete_topic
from tests.clients.driver import WAIT_S, wait_until
from tests.conftest import MakeTopic, StartBroker

Row = tuple[int, int, int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]
# An hour ago: what is older than retention.ms may be deleted at any moment.
TIMESTAMP_MS = (int(time.time()) - 3600) * 1000


def send(bootstrap: str, topic: str, count: int, *, partitions: int = 1, **options: Any) -> None:
    """Keys and values of all kinds, a second between their timestamps."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 0, **options})
    for number in range(count):
        producer.produce(
            topic,
            None if number % 7 == 3 else b"value %d " % number * (number % 20),
            None if number % 5 == 2 else b"key %d" % number,
            partition=number % partitions,
            timestamp=TIMESTAMP_MS + number * 1000,
            headers=[("número", b"%d" % number), ("none", None), ("número", b"")]
            if number % 3 == 0
            else None,
        )
    assert producer.flush(WAIT_S) == 0


def by_confluent(
    bootstrap: str, topic: str, *, partitions: int = 1, isolation: str = "read_committed"
) -> list[Row]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "not used",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, partition, -2) for partition in range(partitions)])
    rows: list[Row] = []
    unfinished = set(range(partitions))
    deadline = time.monotonic() + WAIT_S
    try:
        while unfinished:
            assert time.monotonic() < deadline, "confluent-kafka has not come to the end"
            for message in consumer.consume(500, 0.1):
                if message.error() is not None:
                    assert message.error().code() == KafkaError._PARTITION_EOF
                    unfinished.discard(message.partition())
                    continue
                kind, timestamp = message.timestamp()
                rows.append(
                    (
                        message.partition(),
                        message.offset(),
                        kind - 1,  # 1 is create time there
                        timestamp,
                        message.key(),
                        message.value(),
                        message.headers(),
                    )
                )
    finally:
        consumer.close()
    return sorted(rows, key=lambda row: row[:2])


def rows_of(table: pa.Table) -> list[Row]:
    table.validate(full=True)
    timestamps = table["timestamp"].cast(pa.int64()).to_pylist()
    rows = [
        (
            row["partition"],
            row["offset"],
            row["timestampType"],
            timestamp,
            row["key"],
            row["value"],
            None if row["headers"] is None else [(one["key"], one["value"]) for one in row["headers"]],
        )
        for row, timestamp in zip(table.to_pylist(), timestamps, strict=True)
    ]
    return sorted(rows, key=lambda row: row[:2])


def read(bootstrap: str, topic: str, **arguments: Any) -> list[Row]:
    return rows_of(penstock.arrow.read(topic, bootstrap=bootstrap, include_headers=True, **arguments))


def offsets(bootstrap: str, topic: str, **arguments: Any) -> list[int]:
    table = penstock.arrow.read(topic, bootstrap=bootstrap, columns=["offset"], **arguments)
    return sorted(table["offset"].to_pylist())


# --- the same rows


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_gives_the_rows_that_confluent_kafka_reads(
    broker: PenstockBroker, make_topic: MakeTopic, codec: str
) -> None:
    topic = make_topic(partitions=3)
    send(broker.bootstrap, topic, 1000, partitions=3, **{"compression.type": codec})
    expected = by_confluent(broker.bootstrap, topic, partitions=3)
    assert len(expected) == 1000
    assert read(broker.bootstrap, topic) == expected


@pytest.mark.parametrize("version", [4, 5, 7, 9, 11, 12, 13, 16, 17])
def test_every_form_of_fetch_gives_the_same(
    broker: PenstockBroker, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    monkeypatch.setattr(fetching, "_HIGHEST_VERSION", version)
    topic = make_topic(partitions=2)
    send(broker.bootstrap, topic, 50, partitions=2)
    assert read(broker.bootstrap, topic) == by_confluent(broker.bootstrap, topic, partitions=2)


def test_log_append_time_is_the_time_of_the_broker(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"message.timestamp.type": "LogAppendTime"})
    send(broker.bootstrap, topic, 20)
    rows = read(broker.bootstrap, topic)
    assert {row[2] for row in rows} == {1}
    assert rows == by_confluent(broker.bootstrap, topic)


def test_a_compacted_topic_has_gaps_and_no_error(start_broker: StartBroker, topic_name: str) -> None:
    broker = start_broker(options={"log.cleaner.backoff.ms": "50"})
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.001", "segment.bytes": "1048576"}
    create_topic(broker.bootstrap, topic_name, configs=configs)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.size": 50_000, "log_level": 0})
    for number in range(1500):
        producer.produce(topic_name, bytes(1500), b"key %d" % (number % 100))
    assert producer.flush(WAIT_S) == 0
    wait_until(lambda: f"compacted {topic_name}-0" in broker.log_path.read_text(), "compaction", timeout_s=90)
    rows = read(broker.bootstrap, topic_name)
    assert 100 <= len(rows) < 1500
    assert rows == by_confluent(broker.bootstrap, topic_name)


def test_a_reader_of_committed_records_sees_no_aborted_and_no_open_transaction(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    send(broker.bootstrap, topic, 5)
    producer = transactional(broker.bootstrap, topic)
    for number, ends in enumerate((producer.commit_transaction, producer.abort_transaction) * 3):
        producer.begin_transaction()
        for part in range(20):
            producer.produce(topic, b"%d in transaction %d" % (part, number))
        assert producer.flush(WAIT_S) == 0  # an abort would take back what has not been sent
        ends(WAIT_S)
        send(broker.bootstrap, topic, 2, **{"compression.type": "zstd"})
    producer.begin_transaction()
    producer.produce(topic, b"open")
    assert producer.flush(WAIT_S) == 0
    committed = read(broker.bootstrap, topic)
    assert len(committed) == 5 + 3 * 20 + 6 * 2
    assert committed == by_confluent(broker.bootstrap, topic)
    everything = read(broker.bootstrap, topic, isolation="read_uncommitted")
    assert len(everything) == 5 + 6 * 20 + 6 * 2 + 1
    assert everything == by_confluent(broker.bootstrap, topic, isolation="read_uncommitted")
    producer.abort_transaction(WAIT_S)


def transactional(bootstrap: str, name: str) -> Producer:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0, "log_level": 0}
    )
    producer.init_transactions(WAIT_S)
    return producer


def test_a_topic_without_records_is_a_table_without_rows(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    table = penstock.arrow.read(make_topic(), bootstrap=broker.bootstrap)
    assert table.num_rows == 0
    assert table.column_names == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
    ]


# --- from where to where


def test_a_truncated_topic_begins_where_its_records_begin(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    send(broker.bootstrap, topic, 100)
    delete_records(broker.bootstrap, topic, 0, 42)
    assert offsets(broker.bootstrap, topic) == list(range(42, 100))
    assert offsets(broker.bootstrap, topic, start=10, end=50) == list(range(42, 50))


def test_offsets_may_lie_within_a_batch_and_differ_by_partition(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2)
    send(broker.bootstrap, topic, 200, partitions=2)
    assert offsets(broker.bootstrap, topic, start=30, end=33) == [30, 30, 31, 31, 32, 32]
    assert offsets(broker.bootstrap, topic, start={0: 98, 1: 99}) == [98, 99, 99]
    assert offsets(broker.bootstrap, topic, end={0: 2, 1: 0}) == [0, 1]
    assert offsets(broker.bootstrap, topic, partitions=[1], start=97, end=1000) == [97, 98, 99]
    assert offsets(broker.bootstrap, topic, start="latest") == []
    assert offsets(broker.bootstrap, topic, start=50, end=20) == []


def test_times_are_the_first_record_at_or_after(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    send(broker.bootstrap, topic, 100)
    at = {n: datetime.fromtimestamp((TIMESTAMP_MS + n * 1000) / 1000, tz=UTC) for n in (10, 20, 1000)}
    assert offsets(broker.bootstrap, topic, start=at[10], end=at[20]) == list(range(10, 20))
    assert offsets(broker.bootstrap, topic, start=at[1000]) == []
    assert offsets(broker.bootstrap, topic, start=97, end=at[1000]) == [97, 98, 99]


def test_only_the_chosen_columns_come(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    send(broker.bootstrap, topic, 3)
    table = penstock.arrow.read(topic, bootstrap=broker.bootstrap, columns=["topic", "key"])
    assert table.to_pydict() == {"topic": [topic] * 3, "key": [b"key 0", b"key 1", None]}


def test_json_values_come_as_typed_columns(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in (b'{"id": 1, "tags": ["a", "b"], "other": 0}', b"broken", None):
        producer.produce(topic, value)
    assert producer.flush(WAIT_S) == 0
    schema = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string()))])
    table = penstock.arrow.read(topic, bootstrap=broker.bootstrap, value_schema=schema)
    assert table["value"].to_pylist() == [{"id": 1, "tags": ["a", "b"]}, {"id": None, "tags": None}, None]


def test_a_reader_gives_batches_of_the_size_asked_for(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    send(broker.bootstrap, topic, 1000, **{"batch.num.messages": 50})
    reader = penstock.arrow.batches(topic, bootstrap=broker.bootstrap, batch_rows=100)
    sizes = [batch.num_rows for batch in reader]
    assert sum(sizes) == 1000
    assert max(sizes) < 150


def test_small_fetches_come_to_the_same_end(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=4)
    send(broker.bootstrap, topic, 2000, partitions=4, **{"batch.num.messages": 20})
    options = {"fetch.max.bytes": 3000, "max.partition.fetch.bytes": 500}
    expected = by_confluent(broker.bootstrap, topic, partitions=4)
    assert read(broker.bootstrap, topic, options=options) == expected


def test_a_reader_that_is_left_early_leaves_nothing_running(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    send(broker.bootstrap, topic, 1000, **{"batch.num.messages": 10})
    scan = penstock.arrow.TopicScan(
        topic, bootstrap=broker.bootstrap, batch_rows=1, options={"max.partition.fetch.bytes": 500}
    )
    batches = scan.batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name == f"penstock-fetch-{topic}"]


def test_a_scan_can_be_read_again(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    send(broker.bootstrap, topic, 10)
    scan = penstock.arrow.TopicScan(topic, bootstrap=broker.bootstrap)
    send(broker.bootstrap, topic, 10)
    assert [scan.reader().read_all().num_rows for _ in range(2)] == [10, 10]
    assert pa.table(scan).num_rows == 10


# --- what goes wrong


def test_a_broker_that_comes_back_is_read_on(start_broker: StartBroker, topic_name: str) -> None:
    port = free_port()
    broker = start_broker(port=port)
    create_topic(broker.bootstrap, topic_name)
    send(broker.bootstrap, topic_name, 3000, **{"batch.num.messages": 20})
    expected = by_confluent(broker.bootstrap, topic_name)
    scan = penstock.arrow.TopicScan(
        topic_name, bootstrap=broker.bootstrap, include_headers=True, batch_rows=100,
        options={"max.partition.fetch.bytes": 2000},
    )  # fmt: skip
    batches = scan.batches()
    read_before = [next(batches), next(batches)]
    broker.kill()
    start_broker(port=port)
    assert rows_of(pa.Table.from_batches([*read_before, *batches])) == expected


def test_a_broker_that_stays_away_is_told(start_broker: StartBroker, topic_name: str) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, topic_name)
    send(broker.bootstrap, topic_name, 3000, **{"batch.num.messages": 20})
    reader = penstock.arrow.batches(
        topic_name, bootstrap=broker.bootstrap, batch_rows=100,
        options={"max.partition.fetch.bytes": 2000, "default.api.timeout.ms": 300},
    )  # fmt: skip
    next(reader)
    broker.kill()
    with pytest.raises(ReadFailed, match="cannot reach a broker"):
        list(reader)


def test_records_that_are_deleted_meanwhile_are_told(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    send(broker.bootstrap, topic, 500)
    scan = penstock.arrow.TopicScan(topic, bootstrap=broker.bootstrap)
    delete_records(broker.bootstrap, topic, 0, 400)
    with pytest.raises(ReadFailed, match=f"{topic}-0: the records from offset 0 on were deleted"):
        list(scan.batches())


def test_a_topic_made_anew_meanwhile_is_told(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    send(broker.bootstrap, topic, 5)
    scan = penstock.arrow.TopicScan(topic, bootstrap=broker.bootstrap)
    delete_topic(broker.bootstrap, topic)
    create_topic(broker.bootstrap, topic)
    with pytest.raises(ReadFailed, match="deleted and created anew"):
        list(scan.batches())


def test_a_topic_that_is_not_there_is_told_with_one_of_a_similar_name(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    with pytest.raises(NoSuchTopic, match=f"there is no topic '{topic}x'. Did you mean '{topic}'"):
        penstock.arrow.read(f"{topic}x", bootstrap=broker.bootstrap)


def test_a_partition_that_is_not_there_is_told(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    with pytest.raises(BadOption, match=f"partitions: {topic} has no partition 2: it has 2"):
        penstock.arrow.read(topic, bootstrap=broker.bootstrap, partitions=[0, 2])
    with pytest.raises(BadOption, match=r"start: .* has no partition 9"):
        penstock.arrow.read(topic, bootstrap=broker.bootstrap, start={9: 0})


# --- Apache Kafka


@pytest.fixture(scope="module")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    directory: Path = tmp_path_factory.mktemp("apache")
    with ApacheKafka(directory, quick=True) as running:
        yield running


def test_apache_kafka_is_read_the_same_way(apache_kafka: ApacheKafka, topic_name: str) -> None:
    bootstrap = apache_kafka.bootstrap
    create_topic(bootstrap, topic_name, partitions=3)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        send(bootstrap, topic_name, 200, partitions=3, **{"compression.type": codec})
    producer = transactional(bootstrap, topic_name)
    for ends in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for number in range(30):
            producer.produce(topic_name, b"in a transaction", partition=number % 3)
        assert producer.flush(WAIT_S) == 0
        ends(WAIT_S)
    rows = read(bootstrap, topic_name)
    assert len(rows) == 1030
    assert rows == by_confluent(bootstrap, topic_name, partitions=3)
    assert len(read(bootstrap, topic_name, isolation="read_uncommitted")) == 1060
    at = datetime.fromtimestamp((TIMESTAMP_MS + 190_000) / 1000, tz=UTC)
    assert min(offsets(bootstrap, topic_name, start=at)) == 63
