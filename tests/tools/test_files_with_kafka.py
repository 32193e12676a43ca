"""Files go both ways: what Penstock writes Apache Kafka opens, and what Apache Kafka wrote Penstock takes over."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import confluent_kafka as ck
import pytest

from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import ProcessFailed, free_port
from simulation.apache.apache_kafka import ApacheKafka
from simulation.apache.resident_tools import resident_tool
from tests.clients.admin import CODEC_NAMES, admin_client, create_topic, delete_records, topic_configs
from tests.clients.confluent_driver import ConfluentDriver
from tests.clients.driver import Received, Record, consume, produce, read
from tests.tools.conftest import JAVA_SETUP, TOOLS
from tests.tools.test_dump_log import COMPLAINTS, FIRST_RECORD_OF_A_LATER_SEGMENT

TOPIC = "orders"
PARTITIONS = 2
RECORDS_PER_CODEC = 1200  # enough for two segments in each partition
DELETED_BEFORE = 300
BASE_MS = 1_700_000_000_000
CONFIGS = {"segment.bytes": "1048576", "index.interval.bytes": "512", "retention.ms": "-1"}
SMALL_INTERNAL_TOPICS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
DUMPERS = {"4.3.1": f"{TOOLS}.DumpLogSegments", "3.9.1": "kafka.tools.DumpLogSegments"}
OUR_DUMPER = Path(__file__).resolve().parents[2] / "bin" / "kafka-dump-log"


@pytest.fixture(scope="session", autouse=True)
def older_jars() -> None:
    done = subprocess.run([JAVA_SETUP, "3.9.1"], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def record(number: int) -> Record:
    """Without key, without value, with headers of all kinds, and text that does not compress much."""
    return Record(
        None if number % 11 == 0 else b"%d-%x" % (number, pow(3, 9000 + number, 1 << 2400)),
        None if number % 7 == 0 else b"key-%d" % (number % 50),
        (("h", b"1"), ("none", None), ("h", b"")) if number % 5 == 0 else (),
        BASE_MS + number,
        number % PARTITIONS,
    )


def write_some_of_everything(bootstrap: str) -> dict[int, list[Record]]:
    """What each partition holds afterwards, from its first offset; the first ones of partition 1 are deleted again."""
    create_topic(bootstrap, TOPIC, partitions=PARTITIONS, configs=CONFIGS)
    driver = ConfluentDriver()
    written: dict[int, list[Record]] = {partition: [] for partition in range(PARTITIONS)}
    for start, codec in enumerate(CODEC_NAMES):
        records = [record(start * RECORDS_PER_CODEC + number) for number in range(RECORDS_PER_CODEC)]
        produce(driver, bootstrap, TOPIC, records, codec=codec, idempotent=True)
        for one in records:
            written[one.partition].append(one)
    consumer = driver.consumer(bootstrap, group="readers", topics=[TOPIC])
    read(consumer, RECORDS_PER_CODEC)
    consumer.commit()
    consumer.close()
    delete_records(bootstrap, TOPIC, 1, DELETED_BEFORE)
    return written


class Written(NamedTuple):
    data_dir: Path
    records: dict[int, list[Record]]
    committed: tuple[int, ...] = ()
    """The offsets of the group `readers`, by partition."""


def committed_offsets(bootstrap: str) -> tuple[int, ...]:
    consumer = ck.Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "log_level": 0})
    try:
        asked = [ck.TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
        return tuple(found.offset for found in consumer.committed(asked, timeout=20))
    finally:
        consumer.close()


@pytest.fixture(scope="module")
def penstocks(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Written by Penstock, which was killed, opened again and stopped."""
    directory = tmp_path_factory.mktemp("penstock")
    options = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
    broker = PenstockBroker(directory, options=options)
    records = write_some_of_everything(broker.bootstrap)
    broker.kill()
    broker = PenstockBroker(directory, options=options)
    last = record(0)
    produce(ConfluentDriver(), broker.bootstrap, TOPIC, [last], idempotent=True)
    records[0].append(last)
    assert broker.stop() == 0
    return Written(broker.data_dir, records)


@pytest.fixture(scope="module")
def apaches(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Written by Apache Kafka, with a transaction that was aborted among the rest, and stopped."""
    with ApacheKafka(
        tmp_path_factory.mktemp("apache"), properties=SMALL_INTERNAL_TOPICS, quick=True
    ) as kafka:
        records = write_some_of_everything(kafka.bootstrap)
        _abort_a_transaction(kafka.bootstrap)
        committed = committed_offsets(kafka.bootstrap)
    return Written(kafka.data_dir, records, committed)


def _abort_a_transaction(bootstrap: str) -> None:
    producer = ck.Producer({"bootstrap.servers": bootstrap, "transactional.id": "tx", "log_level": 0})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("undecided", b"never mind")
    producer.flush(20)  # so that there is something in the log to abort
    producer.abort_transaction(20)


@pytest.fixture(scope="module", params=["penstocks", "apaches"])
def written(request: pytest.FixtureRequest) -> Written:
    found: Written = request.getfixturevalue(request.param)
    return found


def paths(data_dir: Path, *suffixes: str, topic: str = "*") -> str:
    found = sorted(path for suffix in suffixes for path in data_dir.glob(f"{topic}-*/*.{suffix}"))
    assert found
    return ",".join(map(str, found))


# --- what Penstock wrote


@pytest.mark.parametrize("version", DUMPERS)
def test_apaches_dump_log_has_nothing_to_complain_about(penstocks: Written, version: str) -> None:
    def dump(*words: str) -> str:
        done = resident_tool(DUMPERS[version], *words, version=version)
        assert not COMPLAINTS.search(done.stdout), done.stdout[-3000:]
        assert FIRST_RECORD_OF_A_LATER_SEGMENT.sub("", done.stderr) == ""
        return done.stdout

    logs = paths(penstocks.data_dir, "log", topic=TOPIC)
    said = dump("--files", logs, "--deep-iteration", "--print-data-log")
    assert len(re.findall(r"^\| offset: ", said, re.MULTILINE)) == sum(map(len, penstocks.records.values()))
    assert len(logs.split(",")) >= 2 * PARTITIONS
    indexes = paths(penstocks.data_dir, "index", "timeindex")
    assert "passed sanity check" in dump("--files", indexes, "--index-sanity-check")
    dump("--files", indexes, "--verify-index-only")
    assert "producerId: " in dump("--files", paths(penstocks.data_dir, "snapshot"))
    offsets = paths(penstocks.data_dir, "log", topic="__consumer_offsets")
    assert '"group":"readers"' in dump("--files", offsets, "--offsets-decoder")


def test_an_apache_broker_goes_on_with_our_log(penstocks: Written, tmp_path: Path) -> None:
    partition = f"{TOPIC}-0"
    with ApacheKafka(tmp_path, properties=SMALL_INTERNAL_TOPICS, quick=True) as kafka:
        create_topic(kafka.bootstrap, TOPIC, partitions=PARTITIONS, configs=CONFIGS)
    topic_id = (kafka.data_dir / partition / "partition.metadata").read_bytes()
    shutil.rmtree(kafka.data_dir / partition)
    shutil.copytree(penstocks.data_dir / partition, kafka.data_dir / partition)
    (kafka.data_dir / partition / "partition.metadata").write_bytes(topic_id)
    expected = penstocks.records[0]
    with ApacheKafka(tmp_path, properties=SMALL_INTERNAL_TOPICS, quick=True) as kafka:
        received = consume(ConfluentDriver(), kafka.bootstrap, TOPIC, len(expected))
        assert [one.record for one in received] == expected
        assert [one.offset for one in received] == list(range(len(expected)))
        produce(ConfluentDriver(), kafka.bootstrap, TOPIC, [Record(b"and on")], idempotent=True)


# --- our kafka-dump-log beside Apache's


@pytest.mark.parametrize(
    ("suffixes", "words"),
    [
        (("log", "index", "timeindex", "snapshot"), ()),
        (("log",), ("--deep-iteration",)),
        (("log",), ("--print-data-log", "--skip-record-metadata")),
        (("log",), ("--max-bytes", "40000", "--print-data-log")),
        (("index", "timeindex"), ("--index-sanity-check",)),
        (("index", "timeindex"), ("--verify-index-only",)),
    ],
    ids=lambda value: " ".join(value) or "all",
)
def test_our_dump_log_says_what_apaches_says(
    written: Written, suffixes: tuple[str, ...], words: tuple[str, ...]
) -> None:
    compare("--files", paths(written.data_dir, *suffixes, topic=TOPIC), *words)


def test_our_dump_log_decodes_what_apaches_decodes(written: Written) -> None:
    compare("--files", paths(written.data_dir, "log", topic="__consumer_offsets"), "--offsets-decoder")


def test_our_dump_log_reads_transactions_and_the_quorums_log(apaches: Written) -> None:
    data_dir = apaches.data_dir
    compare("--files", paths(data_dir, "log", topic="__transaction_state"), "--transaction-log-decoder")
    compare("--files", paths(data_dir, "log", "txnindex", topic="undecided"), "--deep-iteration")
    compare("--files", paths(data_dir, "log", "checkpoint", topic="__cluster_metadata"), "--deep-iteration")


def test_our_dump_log_complains_as_apaches_does(penstocks: Written, tmp_path: Path) -> None:
    damaged = tmp_path / f"{TOPIC}-0"
    shutil.copytree(penstocks.data_dir / f"{TOPIC}-0", damaged)
    first = damaged / f"{0:020d}.log"
    for path, position in (
        (first, 5000),
        (first.with_suffix(".index"), 11),
        (first.with_suffix(".timeindex"), 31),
    ):
        data = bytearray(path.read_bytes())
        data[position] ^= 1
        path.write_bytes(data if path != first else data + bytes(9))  # and a torn header
    compare("--files", f"{first},{first.with_suffix('.index')},{first.with_suffix('.timeindex')}")


def compare(*words: str) -> None:
    theirs = resident_tool(DUMPERS["4.3.1"], *words)
    ours = subprocess.run([OUR_DUMPER, *words], capture_output=True, text=True, timeout=60, check=False)
    assert ours.stdout.splitlines() == theirs.stdout.splitlines()
    assert ours.stderr.splitlines() == theirs.stderr.splitlines()
    assert ours.returncode == theirs.returncode
    assert len(ours.stdout.splitlines()) > 1


# --- what Apache Kafka wrote


def take_over(data_dir: Path, directory: Path, **more: object) -> PenstockBroker:
    shutil.copytree(data_dir, directory / "data")
    return PenstockBroker(directory, options={"group.initial.rebalance.delay.ms": "0"}, **more)  # type: ignore[arg-type]


def everything(bootstrap: str, written: Written) -> dict[int, list[Received]]:
    received: dict[int, list[Received]] = {}
    for partition, records in written.records.items():
        count = len(records) - (DELETED_BEFORE if partition == 1 else 0)
        received[partition] = consume(ConfluentDriver(), bootstrap, TOPIC, count, partitions=[partition])
    return received


def test_penstock_serves_every_record_that_apache_kafka_wrote(apaches: Written, tmp_path: Path) -> None:
    with take_over(apaches.data_dir, tmp_path) as broker:
        received = everything(broker.bootstrap, apaches)
        for partition, records in apaches.records.items():
            start = DELETED_BEFORE if partition == 1 else 0
            assert [one.record for one in received[partition]] == records[start:]
            assert [one.offset for one in received[partition]] == list(range(start, len(records)))
        assert f"took over topic {TOPIC}: {PARTITIONS} partitions" in broker.log_path.read_text()
        assert "__cluster_metadata" not in admin_client(broker.bootstrap).list_topics(timeout=20).topics


def test_topic_ids_and_configs_come_along(apaches: Written, tmp_path: Path) -> None:
    metadata = apaches.data_dir / f"{TOPIC}-0" / "partition.metadata"
    with take_over(apaches.data_dir, tmp_path) as broker:
        configs = topic_configs(broker.bootstrap, TOPIC)
        assert {name: configs[name] for name in CONFIGS} == CONFIGS
        assert topic_configs(broker.bootstrap, "__consumer_offsets")["cleanup.policy"] == "compact"
    assert (broker.data_dir / f"{TOPIC}-0" / "partition.metadata").read_bytes() == metadata.read_bytes()


def test_committed_offsets_come_along(apaches: Written, tmp_path: Path) -> None:
    assert sum(offset for offset in apaches.committed if offset > 0) >= RECORDS_PER_CODEC
    with take_over(apaches.data_dir, tmp_path) as broker:
        assert committed_offsets(broker.bootstrap) == apaches.committed


def test_a_producer_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    """The same client, with its producer id and its sequence, before and after the change of the broker."""
    port = free_port()
    kafka = ApacheKafka(tmp_path, port=port, properties=SMALL_INTERNAL_TOPICS, quick=True)
    try:
        create_topic(kafka.bootstrap, TOPIC)
        producer = ConfluentDriver().producer(kafka.bootstrap, idempotent=True)
        producer.send(TOPIC, Record(b"to Apache Kafka"))
        assert producer.flush() == [0]
    finally:
        kafka.stop()
    with PenstockBroker(tmp_path, port=port) as broker:
        producer.send(TOPIC, Record(b"to Penstock"))
        assert producer.flush() == [1]
        # A new one gets an id of its own, not one that the log remembers.
        assert produce(ConfluentDriver(), broker.bootstrap, TOPIC, [Record(b"new")], idempotent=True) == [2]
    producer.close()
    said = subprocess.run(
        [OUR_DUMPER, "--files", broker.data_dir / f"{TOPIC}-0" / f"{0:020d}.log"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    ids = re.findall(r"baseSequence: (\d+) .* producerId: (\d+) .* partitionLeaderEpoch: (\d+)", said)
    assert [(sequence, epoch) for sequence, _, epoch in ids] == [("0", "0"), ("1", "1"), ("0", "1")]
    assert ids[0][1] == ids[1][1] != ids[2][1]


def test_a_directory_of_a_killed_apache_kafka_is_recovered(tmp_path: Path) -> None:
    kafka = ApacheKafka(tmp_path, properties=SMALL_INTERNAL_TOPICS, quick=True)
    try:
        records = write_some_of_everything(kafka.bootstrap)
    finally:
        kafka.kill()
    shutil.rmtree(
        kafka.data_dir / "__cluster_metadata-0", ignore_errors=True
    )  # nothing but the logs themselves
    with PenstockBroker(tmp_path) as broker:
        received = consume(ConfluentDriver(), broker.bootstrap, TOPIC, len(records[0]))
        assert [one.record for one in received] == records[0]
        produce(ConfluentDriver(), broker.bootstrap, TOPIC, [Record(b"and on")], idempotent=True)


def test_a_directory_of_the_zookeeper_era_is_taken_over(apaches: Written, tmp_path: Path) -> None:
    """As a broker of the ZooKeeper era left it: no log of metadata, no topic ids, an older meta.properties."""
    data = tmp_path / "data"
    shutil.copytree(apaches.data_dir, data)
    shutil.rmtree(data / "__cluster_metadata-0")
    (data / "bootstrap.checkpoint").unlink()
    for path in data.glob("*/partition.metadata"):
        path.unlink()
    (data / "meta.properties").write_text("#\nversion=0\nbroker.id=1\ncluster.id=AAECAwQFBgcICQoLDA0ODw\n")
    with PenstockBroker(tmp_path) as broker:
        assert admin_client(broker.bootstrap).list_topics(timeout=20).cluster_id == "AAECAwQFBgcICQoLDA0ODw"
        received = consume(ConfluentDriver(), broker.bootstrap, TOPIC, len(apaches.records[0]))
        assert [one.record for one in received] == apaches.records[0]
        produce(ConfluentDriver(), broker.bootstrap, TOPIC, [Record(b"new")], idempotent=True)
        assert re.search(
            r"the configs of \d+ topics are lost, so they keep all records .*orders",
            broker.log_path.read_text(),
        )
    assert len({path.read_bytes() for path in data.glob(f"{TOPIC}-*/partition.metadata")}) == 1


def test_a_directory_of_another_node_is_refused(apaches: Written, tmp_path: Path) -> None:
    shutil.copytree(apaches.data_dir, tmp_path / "data")
    with pytest.raises(ProcessFailed, match=r"says node\.id=1, but this broker has node\.id=7"):
        PenstockBroker(tmp_path, options={"node.id": "7"})


def test_a_directory_that_apache_kafka_holds_is_refused(tmp_path: Path) -> None:
    with (
        ApacheKafka(tmp_path, quick=True),
        pytest.raises(ProcessFailed, match="is in use by another broker process"),
    ):
        PenstockBroker(tmp_path)


def test_a_topic_that_was_deleted_does_not_come_back(apaches: Written, tmp_path: Path) -> None:
    """Logs become topics once; a second start believes the metadata and nothing else."""
    with take_over(apaches.data_dir, tmp_path) as broker:
        admin = admin_client(broker.bootstrap)
        for future in admin.delete_topics(list(admin.list_topics(timeout=20).topics)).values():
            future.result(20)
    shutil.copytree(apaches.data_dir / f"{TOPIC}-0", broker.data_dir / f"{TOPIC}-0")
    with PenstockBroker(tmp_path) as broker:
        assert TOPIC not in admin_client(broker.bootstrap).list_topics(timeout=20).topics
