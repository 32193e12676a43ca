"""Transactions in files that go both ways: Apache Kafka's read by Penstock, Penstock's read by Apache Kafka."""

import re
import shutil
from pathlib import Path

import confluent_kafka as ck
import pytest

from penstock.broker.partitions.partition import Partition
from penstock.records.build import build_batch
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from simulation.apache.apache_kafka import ApacheKafka
from simulation.apache.resident_tools import resident_tool
from tests.clients.admin import create_topic
from tests.tools.test_dump_log import COMPLAINTS
from tests.tools.test_files_with_kafka import DUMPERS, SMALL_INTERNAL_TOPICS, compare
from tests.unit.storage.batches import close_cleanly
from tests.unit.storage.committed_reader import read_committed

TOPIC = "ledger"
SEGMENT_BYTES = 1024 * 1024
CONFIGS = {"segment.bytes": str(SEGMENT_BYTES), "retention.ms": "-1"}
OPTIONS = LogOptions(segment_bytes=SEGMENT_BYTES, retention_ms=-1)
FILLING = b"x" * 300_000  # four of them, and a segment is full
STEPS = [
    ("a", "begin"), ("a", "write"), ("b", "begin"), ("b", "write"), ("a", "abort"), ("plain", "write"),
    ("b", "write"), ("b", "commit"), ("a", "begin"), ("a", "write"), ("b", "begin"), ("b", "write"),
    ("plain", "write"), ("b", "abort"), ("a", "write"), ("b", "begin"), ("b", "write"), ("a", "abort"),
    ("b", "commit"), ("plain", "write"), ("a", "begin"), ("a", "write"), ("a", "commit"), ("c", "begin"),
    ("c", "write"), ("plain", "write"), ("b", "begin"), ("b", "write"), ("b", "abort"), ("plain", "write"),
]  # fmt: skip
"""Transactions that interleave, over several segments; that of c stays open."""


def values() -> list[bytes]:
    """Of the writes, in their order."""
    return [
        b"%d of %s " % (number, who.encode()) for number, (who, what) in enumerate(STEPS) if what == "write"
    ]


def stable_values() -> list[bytes]:
    """What a read_committed reader gets: committed or plain, and before the transaction that is open."""
    results: dict[str, str] = {}
    kept = []
    open_from = STEPS.index(("c", "begin"))
    for number, (who, what) in reversed(list(enumerate(STEPS))):
        if what in ("commit", "abort"):
            results[who] = what
        elif what == "write" and number < open_from and results.get(who, "commit") == "commit":
            kept.append(b"%d of %s " % (number, who.encode()))
    return kept[::-1]


def told(value: bytes | None) -> bytes:
    assert value is not None
    return value.removesuffix(FILLING)


# --- by Apache Kafka


def write_with_clients(bootstrap: str) -> list[ck.Producer]:
    common = {"bootstrap.servers": bootstrap, "log_level": 0, "message.max.bytes": 1_000_000}
    producers = {"plain": ck.Producer(common)}
    for who in "abc":
        producers[who] = ck.Producer({**common, "transactional.id": who})
        producers[who].init_transactions(20)
    for number, (who, what) in enumerate(STEPS):
        producer = producers[who]
        if what == "begin":
            producer.begin_transaction()
        elif what == "write":
            producer.produce(TOPIC, b"%d of %s " % (number, who.encode()) + FILLING, partition=0)
            assert producer.flush(20) == 0
        elif what == "commit":
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)
    return list(producers.values())


@pytest.fixture(scope="module")
def apaches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the partition."""
    with ApacheKafka(
        tmp_path_factory.mktemp("apache"), properties=SMALL_INTERNAL_TOPICS, quick=True
    ) as kafka:
        create_topic(kafka.bootstrap, TOPIC, partitions=1, configs=CONFIGS)
        producers = write_with_clients(kafka.bootstrap)
    del producers
    return kafka.data_dir / f"{TOPIC}-0"


def indexes(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*.txnindex") if path.stat().st_size}


def opened(directory: Path, *, clean: bool) -> Partition:
    clock = SystemClock()
    log = Log.open(OsDisk(), str(directory), OPTIONS, clock, clean=clean)
    return Partition(TOPIC, 0, log, clock, leader_epoch=log.leader_epochs.latest)


@pytest.mark.parametrize("clean", [True, False], ids=["believed", "recovered"])
def test_penstock_reads_only_what_is_committed_of_apaches_log(
    apaches: Path, tmp_path: Path, clean: bool
) -> None:
    directory = tmp_path / f"{TOPIC}-0"
    shutil.copytree(apaches, directory)
    if not clean:
        for path in [*directory.glob("*.txnindex"), *directory.glob("*.snapshot")]:
            path.unlink()
    partition = opened(directory, clean=clean)
    assert len(partition.log.segments) > 3
    found = read_committed(partition, 0)
    assert [told(record.value) for record in found] == stable_values()
    assert partition.last_stable_offset < partition.high_watermark
    assert indexes(directory) == indexes(apaches)
    assert len(indexes(directory)) > 1
    opens = [known for known in partition.log.producers.known() if known.transaction_first_offset >= 0]
    assert [known.transaction_first_offset for known in opens] == [partition.last_stable_offset]
    partition.append_marker(
        producer_id=opens[0].producer_id,
        producer_epoch=opens[0].epoch + 1,
        committed=False,
        coordinator_epoch=opens[0].coordinator_epoch,
        transaction_version=2,
    )
    assert partition.last_stable_offset == partition.high_watermark
    everything = [told(record.value) for record in read_committed(partition, 0)]
    assert everything == [*stable_values(), *(value for value in values()[-4:] if b"plain" in value)]


# --- by Penstock


@pytest.fixture(scope="module")
def penstocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same by a partition of ours, with epochs of either transaction version; closed cleanly."""
    directory = tmp_path_factory.mktemp("penstock") / f"{TOPIC}-0"
    partition = opened(directory, clean=False)
    ids = {"a": 1001, "b": 1002, "c": 1003}
    epochs = dict.fromkeys(ids, 0)
    sequences = dict.fromkeys(ids, 0)
    clock = SystemClock()
    for number, (who, what) in enumerate(STEPS):
        if what == "write":
            value = b"%d of %s " % (number, who.encode()) + FILLING
            batch = build_batch(
                [(None, value, (), clock.now_ms())],
                producer_id=ids.get(who, -1),
                producer_epoch=epochs.get(who, -1),
                base_sequence=sequences.get(who, -1),
                transactional=who in ids,
            )
            partition.append(memoryview(batch), verified_transaction=True)
            if who in ids:
                sequences[who] += 1
        elif what != "begin":
            if who == "a":  # with transaction version 2
                epochs[who] += 1
                sequences[who] = 0
            partition.append_marker(
                producer_id=ids[who],
                producer_epoch=epochs[who],
                committed=what == "commit",
                coordinator_epoch=3,
                transaction_version=2 if who == "a" else 1,
            )
    close_cleanly(partition.log)
    return directory


def files(directory: Path, *suffixes: str) -> str:
    return ",".join(str(path) for suffix in suffixes for path in sorted(directory.glob(f"*.{suffix}")))


def test_apaches_dump_log_reads_our_transactions(penstocks: Path) -> None:
    dumper = DUMPERS["4.3.1"]
    done = resident_tool(dumper, "--files", files(penstocks, "txnindex", "snapshot"))
    assert not COMPLAINTS.search(done.stdout)
    assert len(re.findall("^version: 0 producerId: ", done.stdout, re.MULTILINE)) == STEPS.count(
        ("a", "abort")
    ) + STEPS.count(("b", "abort"))
    assert "currentTxnFirstOffset: OptionalLong[" in done.stdout
    done = resident_tool(dumper, "--files", files(penstocks, "log"), "--deep-iteration")
    assert not COMPLAINTS.search(done.stdout)
    assert done.stdout.count("endTxnMarker: ABORT coordinatorEpoch: 3") == 4
    assert done.stdout.count("endTxnMarker: COMMIT coordinatorEpoch: 3") == 3


def test_our_dump_log_says_the_same_of_our_transactions(penstocks: Path) -> None:
    compare("--files", files(penstocks, "txnindex", "snapshot", "log"), "--deep-iteration")


def test_an_apache_broker_serves_only_what_is_committed_of_our_log(penstocks: Path, tmp_path: Path) -> None:
    with ApacheKafka(tmp_path, properties=SMALL_INTERNAL_TOPICS, quick=True) as kafka:
        create_topic(kafka.bootstrap, TOPIC, partitions=1, configs=CONFIGS)
    target = kafka.data_dir / f"{TOPIC}-0"
    topic_id = (target / "partition.metadata").read_bytes()
    shutil.rmtree(target)
    shutil.copytree(penstocks, target)
    (target / "partition.metadata").write_bytes(topic_id)
    expected = stable_values()
    with ApacheKafka(tmp_path, properties=SMALL_INTERNAL_TOPICS, quick=True) as kafka:
        consumer = ck.Consumer(
            {
                "bootstrap.servers": kafka.bootstrap,
                "group.id": "readers",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        consumer.assign([ck.TopicPartition(TOPIC, 0, 0)])
        found = []
        while True:
            message = consumer.poll(20)
            assert message is not None
            if message.error() is not None:
                assert message.error().code() == ck.KafkaError._PARTITION_EOF
                break
            found.append(told(message.value()))
        consumer.close()
    assert found == expected
    assert indexes(target) == indexes(penstocks)
