"""A cluster of Apache Kafka 3.9.1 becomes one of ours, broker by broker, while it serves."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from penstock.testing.clusters import create_topic, describe, wait_until, wait_until_in_sync
from simulation.apache.mixed_cluster import KAFKA, PENSTOCK, MixedCluster
from tests.cluster.clients import SteadyProducer
from tests.docs.pages import HOW_TO
from tests.mixed.brokers import PROPERTIES, SESSION_TIMEOUT_MS, read, wait_for_replicas, wait_until_known
from tests.mixed.transactor import Transactor

KAFKAS, OURS = (1, 2), (3, 4)
TOPICS = ("plain", "transactional")


def commands_of_the_page() -> list[list[str]]:
    """What follows on `bin/penstock takeover` and before the address, in the order of the page."""
    text = (HOW_TO / "join-kafka.md").read_text()
    found = re.findall(r"^ *bin/penstock takeover (.*) -b localhost:9092$", text, re.MULTILINE)
    assert len(found) == 4
    return [command.split() for command in found]


def takeover(cluster: MixedCluster, *args: str) -> str:
    command = [sys.executable, "-m", "penstock", "takeover", *args, "-b", cluster.bootstrap, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout[done.stdout.index("[\n") if "[\n" in done.stdout else done.stdout.index("[") :]


def replicas(cluster: MixedCluster) -> set[int]:
    """All brokers that keep anything."""
    topics = describe(cluster.bootstrap).topics.values()
    return {broker for topic in topics for one in topic.partitions.values() for broker in one.replicas}


def test_broker_by_broker_and_one_of_them_back_again(tmp_path: Path) -> None:
    shown = commands_of_the_page()
    kinds = {**dict.fromkeys(KAFKAS, KAFKA), **dict.fromkeys(OURS, PENSTOCK)}
    more = {"offsets.topic.replication.factor": "2", "transaction.state.log.replication.factor": "2",
            "transaction.state.log.min.isr": "1"}  # fmt: skip
    with MixedCluster(
        tmp_path,
        kinds,
        properties={**PROPERTIES, **more},
        session_timeout_ms=SESSION_TIMEOUT_MS,
        starts_all=False,
    ) as cluster:
        for broker_id in KAFKAS:
            cluster.start(broker_id)
        wait_until_known(cluster)
        for topic in TOPICS:
            create_topic(cluster.bootstrap, topic, assignment=[[1, 2], [2, 1], [1, 2]])
        wait_until_in_sync(cluster.bootstrap, TOPICS)
        with (
            SteadyProducer(cluster.bootstrap, "plain", partitions=3) as producer,
            Transactor(cluster.bootstrap, "transactional", partitions=3) as transactor,
        ):
            producer.wait_for_more()
            transactor.wait_for_more()
            for broker_id in OURS:
                cluster.start(broker_id)
            wait_until_known(cluster)
            plan = json.loads(takeover(cluster, *shown.pop(0)))
            assert [(each["old"], each["new"]) for each in plan] == [(1, 3), (2, 4)]
            assert all(each["partitions"] >= 6 for each in plan)
            (there, second), (back,) = shown[:2], shown[2:]
            for command in (there, back, there, second):
                (done,) = json.loads(takeover(cluster, *command))
                assert done["left"] == 0
                assert done["records"] > 0
                assert set(done["not_compared"]) == {"__transaction_state"}
                producer.wait_for_more()
                transactor.wait_for_more()
            assert replicas(cluster) == set(OURS)
            for broker_id in KAFKAS:
                cluster.stop(broker_id)
                producer.wait_for_more()
                transactor.wait_for_more()
            wait_until(lambda: describe(cluster.bootstrap).controller_id in OURS, "a controller of ours")
            sent = producer.finish()
            transactor.finish()
        for partition in range(3):
            assert read(cluster.bootstrap, "plain", partition) == sent[partition::3]
            values = read(cluster.bootstrap, "transactional", partition)
            assert [int(value) for value in values] == transactor.committed
        for broker_id in OURS:
            assert "Traceback" not in cluster.log_text(broker_id), (
                f"broker {broker_id} logged a bug of its own"
            )


def test_in_place_and_back_with_the_file_and_the_data_of_the_other(tmp_path: Path) -> None:
    more = {"offsets.topic.replication.factor": "2", "transaction.state.log.replication.factor": "2",
            "transaction.state.log.min.isr": "1"}  # fmt: skip
    with MixedCluster(
        tmp_path,
        dict.fromkeys(KAFKAS, KAFKA),
        properties={**PROPERTIES, **more},
        session_timeout_ms=SESSION_TIMEOUT_MS,
    ) as cluster:
        wait_until_known(cluster)
        for topic in TOPICS:
            create_topic(cluster.bootstrap, topic, assignment=[[1, 2], [2, 1], [1, 2]])
        wait_until_in_sync(cluster.bootstrap, TOPICS)
        with (
            SteadyProducer(cluster.bootstrap, "plain", partitions=3) as producer,
            Transactor(cluster.bootstrap, "transactional", partitions=3) as transactor,
        ):
            for broker_id, kind in ((2, PENSTOCK), (1, PENSTOCK), (2, KAFKA)):
                producer.wait_for_more()
                transactor.wait_for_more()
                cluster.stop(broker_id)
                cluster.become(broker_id, kind)
                cluster.start(broker_id)
                internal = [topic for topic in describe(cluster.bootstrap).topics if topic.startswith("__")]
                wait_for_replicas(cluster, [*TOPICS, *internal])
            producer.wait_for_more()
            transactor.wait_for_more()
            sent = producer.finish()
            transactor.finish()
        for partition in range(3):
            assert read(cluster.bootstrap, "plain", partition) == sent[partition::3]
            values = read(cluster.bootstrap, "transactional", partition)
            assert [int(value) for value in values] == transactor.committed
        assert "Traceback" not in cluster.log_text(1), "the broker logged a bug of its own"
