"""A cluster while it is upgraded: brokers of the previous commit beside one of this commit, and one that becomes of this commit.

Where git has no previous commit (a shallow clone, an archive) the brokers that should be of it are of this one; the names of the
tests end with the one or the other.
"""

import io
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from penstock.model.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from penstock.testing.clusters import create_topic, describe, wait_until, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from tests.cluster.clients import QUIET, WAIT_S, SteadyProducer, coordinator, leader_of, wait_for_leader
from tests.cluster.conftest import OPTIONS, SESSION_TIMEOUT_MS, check_logs
from tests.crash.plain_client import read_all

ROOT = Path(__file__).resolve().parents[2]
# In commits without it a leader could wait for ever after another broker was stopped.
OLDEST_WITH = "tests/unit/broker/test_refused_isr.py"
PREVIOUS, THIS = "HEAD~1", "no-history-so-this-commit-twice"


def git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)


def older_commit() -> str:
    return PREVIOUS if git("cat-file", "-e", f"{PREVIOUS}:{OLDEST_WITH}").returncode == 0 else THIS


def unpack_source(commit: str, directory: Path) -> None:
    """`src` of a commit."""
    if commit == THIS:
        shutil.copytree(ROOT / "src", directory / "src", ignore=shutil.ignore_patterns("__pycache__"))
        return
    archive = git("archive", "--format=tar", commit, "src").stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        # Python before 3.11.4 has no filters, Python 3.12 and 3.13 warn where none is named.
        packed.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        packed.extractall(directory)


class MixedCluster(PenstockCluster):
    """Brokers 1 and 2 are of an older commit, until they are upgraded."""

    def __init__(self, directory: Path, commit: str) -> None:
        self._code = {broker_id: directory / f"code-of-{broker_id}" for broker_id in (1, 2)}
        for code in self._code.values():
            unpack_source(commit, code)
        super().__init__(
            directory,
            options=OPTIONS,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            environment_of={
                broker_id: {"PYTHONPATH": str(code / "src")} for broker_id, code in self._code.items()
            },
        )

    def upgrade(self, broker_id: int) -> None:
        """Started again on the same data, without the older code in the way of that of this commit."""
        self.stop(broker_id)
        shutil.rmtree(self._code[broker_id])
        self.start(broker_id)


@pytest.fixture(scope="module", params=[older_commit()])
def mixed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedCluster]:
    with MixedCluster(tmp_path_factory.mktemp("mixed"), request.param) as running:
        yield running
        check_logs(running)


def test_brokers_of_this_and_of_the_previous_commit_replicate_and_take_over_from_each_other(
    mixed: MixedCluster,
) -> None:
    # The new one leads, then an old one, then the new one again.
    create_topic(mixed.bootstrap, "mixed", assignment=[[3, 1, 2]], config={"min.insync.replicas": "2"})
    wait_until_in_sync(mixed.bootstrap, ["mixed"])
    with SteadyProducer(mixed.bootstrap, "mixed") as producer:
        producer.wait_for_more()
        mixed.stop(3)
        wait_for_leader(mixed, "mixed", other_than=3)
        producer.wait_for_more()
        mixed.start(3)
        wait_until_in_sync(mixed.bootstrap, ["mixed"])
        mixed.stop(1)
        assert wait_for_leader(mixed, "mixed", other_than=1) == 3
        producer.wait_for_more()
        mixed.start(1)
        wait_until_in_sync(mixed.bootstrap, ["mixed"])
        sent = producer.finish()
    assert read_all(mixed.bootstrap, "mixed") == sent


def make_internal_topics(cluster: PenstockCluster) -> None:
    """While all brokers are there: so each leads a part of them."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "first", **QUIET})
    consumer.committed([TopicPartition("read", 0)], timeout=WAIT_S)
    consumer.close()
    Producer(
        {"bootstrap.servers": cluster.bootstrap, "transactional.id": "first", **QUIET}
    ).init_transactions(WAIT_S)
    wait_until_in_sync(cluster.bootstrap, [CONSUMER_OFFSETS, TRANSACTION_STATE])


def key_of(cluster: PenstockCluster, topic: str, broker_id: int) -> str:
    """A group or transactional id that this broker coordinates."""
    keys = (f"upgraded-{number}" for number in range(100))
    return next(key for key in keys if coordinator(cluster, topic, key) == broker_id)


class GroupReader(threading.Thread):
    """The only member of its group; commits what it has read, all the time."""

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        super().__init__(daemon=True, name="group reader")
        self._topic = topic
        self._config = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 100,
            "isolation.level": "read_committed",
            **QUIET,
        }
        self._ends = threading.Event()
        self.values: list[bytes] = []

    def run(self) -> None:
        consumer = Consumer(self._config)
        consumer.subscribe([self._topic])
        while not self._ends.is_set():
            for message in consumer.consume(1000, timeout=0.1):
                if message.error() is None:
                    self.values.append(message.value() or b"")
        consumer.close()

    def wait_for(self, value: bytes) -> None:
        wait_until(lambda: value in self.values[-1:], f"record {value!r}")

    def finish(self) -> list[bytes]:
        """What it has read; what came again, since its commit did not, is left out."""
        self._ends.set()
        self.join(WAIT_S)
        return list(dict.fromkeys(self.values))


def test_a_broker_that_is_upgraded_goes_on_with_its_groups_transactions_and_records(
    mixed: MixedCluster,
) -> None:
    config = {"min.insync.replicas": "2"}
    create_topic(mixed.bootstrap, "read", assignment=[[1, 2, 3]], config=config)
    create_topic(mixed.bootstrap, "in-transactions", assignment=[[1, 2, 3]], config=config)
    make_internal_topics(mixed)
    group, transactional_id = key_of(mixed, CONSUMER_OFFSETS, 1), key_of(mixed, TRANSACTION_STATE, 1)
    transactional = Producer(
        {"bootstrap.servers": mixed.bootstrap, "transactional.id": transactional_id, **QUIET}
    )
    transactional.init_transactions(WAIT_S)
    transactional.begin_transaction()
    transactional.produce("in-transactions", b"before", partition=0)
    assert transactional.flush(WAIT_S) == 0
    reader = GroupReader(mixed.bootstrap, "read", group)
    reader.start()
    with SteadyProducer(mixed.bootstrap, "read") as producer:
        wait_until(lambda: len(reader.values) > 20, "records of the group")
        mixed.upgrade(1)
        wait_until_in_sync(mixed.bootstrap, list(describe(mixed.bootstrap).topics))
        # What it led and coordinated as the older one it does again as the newer one, with what the older one had stored.
        admin = AdminClient({"bootstrap.servers": mixed.bootstrap, **QUIET})
        admin.elect_leaders(ElectionType.PREFERRED).result(WAIT_S)
        wait_until(lambda: leader_of(mixed.bootstrap, "read") == 1, "the preferred leader")
        wait_until(lambda: leader_of(mixed.bootstrap, "in-transactions") == 1, "the preferred leader")
        wait_until(lambda: coordinator(mixed, CONSUMER_OFFSETS, group) == 1, "its group")
        wait_until(lambda: coordinator(mixed, TRANSACTION_STATE, transactional_id) == 1, "its transaction")
        producer.wait_for_more()
        transactional.produce("in-transactions", b"after", partition=0)
        transactional.commit_transaction(WAIT_S)
        sent = producer.finish()
    reader.wait_for(sent[-1])
    assert reader.finish() == sent
    assert read_all(mixed.bootstrap, "read") == sent
    checking = GroupReader(mixed.bootstrap, "in-transactions", f"{group}-check")
    checking.start()
    checking.wait_for(b"after")
    assert checking.finish() == [b"before", b"after"]
