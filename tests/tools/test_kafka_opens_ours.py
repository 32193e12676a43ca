"""An Apache Kafka broker is given a directory that Penstock wrote: plain, idempotent and compacted logs, start offset moved."""

import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from simulation.apache.apache_kafka import ApacheKafka
from simulation.apache.class_archive import make_archive
from simulation.apache.resident_tools import resident_tool
from tests.clients.admin import CODEC_NAMES, create_topic, delete_records
from tests.clients.confluent_driver import ConfluentDriver
from tests.clients.driver import Received, Record, consume, produce, read
from tests.log.test_compaction import COMPACTED, compactions, wait_for
from tests.tools.conftest import JAVA_SETUP, TOOLS

PLAIN, COMPACT = "plain", "compact"
CONFIGS = {
    PLAIN: {"segment.bytes": "1048576", "index.interval.bytes": "512", "retention.ms": "-1"},
    COMPACT: {**dict(pair.split("=") for pair in COMPACTED), "segment.ms": "200", "retention.ms": "-1"},
}
RECORDS_PER_CODEC = 600
DELETED_BEFORE = 250
BASE_MS = int(time.time() * 1000) - 60_000  # Kafka forgets producers whose records are a day old
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.cleaner.enable": "false",  # what we compacted, not what Kafka would
}
CHECKPOINTS = ("recovery-point", "replication", "log-start", "cleaner")
# Of a broker that is new, or alone; nothing to do with the files.
EXPECTED = re.compile(
    r"StandardAuthorizer|QuorumController|RaftManager|RaftClient|quorum|NetworkClient|Share|share|AppInfo|"
    r"Selector|BrokerLifecycleManager|ControllerRegistrationManager|NodeToControllerRequestThread|"
    r"`log.cleaner.enable` is deprecated"
)


class Written(NamedTuple):
    data_dir: Path
    received: dict[str, list[Received]]


@pytest.fixture(scope="module", autouse=True)
def older_jars() -> None:
    done = subprocess.run([JAVA_SETUP, "3.9.1"], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    make_archive("3.9.1")


def plain_record(number: int) -> Record:
    value = None if number % 11 == 0 else b"%d-%x" % (number, pow(3, 9000 + number, 1 << 8000))
    headers = (("h", b"1"), ("none", None)) if number % 5 == 0 else ()
    return Record(value, b"key-%d" % (number % 50), headers, BASE_MS + number, 0)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """What a consumer of Penstock reads of each topic, and the directory after a clean stop."""
    driver = ConfluentDriver()
    options = {"log.cleaner.backoff.ms": "50", "offsets.topic.num.partitions": "1"}
    folder = tmp_path_factory.mktemp("ours")
    broker = PenstockBroker(folder, options=options)
    try:
        for topic, configs in CONFIGS.items():
            create_topic(broker.bootstrap, topic, partitions=1, configs=configs)
        for start, codec in enumerate(CODEC_NAMES):
            records = [
                plain_record(start * RECORDS_PER_CODEC + number) for number in range(RECORDS_PER_CODEC)
            ]
            produce(driver, broker.bootstrap, PLAIN, records, codec=codec, idempotent=True)
        delete_records(broker.bootstrap, PLAIN, 0, DELETED_BEFORE)
        rounds = 0

        def is_compacted() -> bool:
            nonlocal rounds
            codec = CODEC_NAMES[rounds % len(CODEC_NAMES)]
            now_ms = int(time.time() * 1000)  # segment.ms goes by the records' own times
            records = [
                Record(b"%d.%d" % (rounds, key), b"k%d" % key, (), now_ms, 0) for key in range(rounds % 7, 9)
            ]
            produce(driver, broker.bootstrap, COMPACT, records, codec=codec, idempotent=True)
            rounds += 1
            return len(compactions(broker, COMPACT)) > 2

        wait_for(is_compacted, "three compactions")
    finally:
        assert broker.stop() == 0
    # What is read must be what stays: from here on nothing is compacted any more.
    with PenstockBroker(folder, options={**options, "log.cleaner.enable": "false"}) as broker:
        received = {topic: everything(broker.bootstrap, topic) for topic in CONFIGS}
        assert broker.stop() == 0
    compacted = received[COMPACT]
    assert compacted[-1].offset + 1 > len(compacted)  # with gaps
    assert received[PLAIN][0].offset == DELETED_BEFORE
    return Written(broker.data_dir, received)


def everything(bootstrap: str, topic: str) -> list[Received]:
    """Up to the last record, whatever their number."""
    driver = ConfluentDriver()
    produce(driver, bootstrap, topic, [Record(b"end", b"end", (), BASE_MS, 0)])
    consumer = driver.consumer(bootstrap, partitions=[(topic, 0)])
    found: list[Received] = []
    try:
        while not found or found[-1].record.value != b"end":
            found += read(consumer, 1)
    finally:
        consumer.close()
    return found


def put_ours_in(ours: Written, data_dir: Path, *, is_clean: bool) -> None:
    """Our logs and checkpoints in the place of those that Apache Kafka has for these topics."""
    for topic in CONFIGS:
        target = data_dir / f"{topic}-0"
        metadata = (target / "partition.metadata").read_bytes()
        shutil.rmtree(target)
        shutil.copytree(ours.data_dir / target.name, target)
        (target / "partition.metadata").write_bytes(metadata)  # Kafka gave the topic an id of its own
    for name in CHECKPOINTS:
        source = ours.data_dir / f"{name}-offset-checkpoint"
        if source.exists():
            shutil.copy(source, data_dir)
    if not is_clean:
        (data_dir / ".kafka_cleanshutdown").unlink()
        (data_dir / "recovery-point-offset-checkpoint").unlink()


def check_served(kafka: ApacheKafka, ours: Written, *, producers_of: str) -> None:
    for topic, expected in ours.received.items():
        assert consume(ConfluentDriver(), kafka.bootstrap, topic, len(expected)) == expected
    described = resident_tool(
        f"{TOOLS}.TransactionsCommand",
        *("--bootstrap-server", kafka.bootstrap),
        *("describe-producers", "--topic", producers_of, "--partition", "0"),
        version=kafka.version,
    )
    assert len(described.stdout.splitlines()) > 1, "the state of our idempotent producers is not there"
    for topic in ours.received:
        # Not idempotent: this cluster is new, and gives out ids of producers that our logs know already.
        produce(ConfluentDriver(), kafka.bootstrap, topic, [Record(b"and on", b"key")])


@pytest.mark.parametrize("version", ["4.3.1", "3.9.1"])
def test_an_apache_broker_serves_every_record_of_ours_without_a_complaint(
    ours: Written, tmp_path: Path, version: str
) -> None:
    with ApacheKafka(tmp_path, version=version, properties=PROPERTIES, quick=True) as kafka:
        for topic, configs in CONFIGS.items():
            create_topic(kafka.bootstrap, topic, partitions=1, configs=configs)
    put_ours_in(ours, kafka.data_dir, is_clean=True)  # its files are believed
    with ApacheKafka(tmp_path, version=version, properties=PROPERTIES, quick=True) as kafka:
        check_served(kafka, ours, producers_of=COMPACT)
    put_ours_in(ours, kafka.data_dir, is_clean=False)  # every batch is checked and every index made anew
    with ApacheKafka(tmp_path, version=version, properties=PROPERTIES, quick=True) as kafka:
        check_served(kafka, ours, producers_of=PLAIN)
    said = kafka.log_path.read_text().splitlines()  # of all three lives
    complaints = [line for line in said if re.search(r" (WARN|ERROR) ", line)]
    assert not [line for line in complaints if not EXPECTED.search(line)], "\n".join(complaints)
