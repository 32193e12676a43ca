"""Two brokers of Apache Kafka 3.9.1 and one of ours are one cluster, whoever is its controller."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from penstock.testing.clusters import create_topic, describe, wait_until
from simulation.apache.java import DEFAULT_VERSION, QUIET_TOOL, java_command
from simulation.apache.kafka_cluster import ZOOKEEPER_MODE_VERSION
from simulation.apache.mixed_cluster import MixedCluster
from tests.cluster.clients import QUIET, WAIT_S
from tests.mixed.brokers import (
    KINDS,
    OURS,
    PROPERTIES,
    SESSION_TIMEOUT_MS,
    nodes,
    read,
    wait_for_replicas,
    wait_until_known,
    zookeeper,
)
from tests.mixed.transactor import Transactor


@pytest.fixture(
    scope="module", params=[(1, 2, OURS), (OURS, 1, 2)], ids=["Kafka's controller", "our controller"]
)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MixedCluster]:
    """They start in this order, and the first is the controller."""
    kinds = {number: KINDS[number] for number in request.param}
    with MixedCluster(
        tmp_path_factory.mktemp("mixed"), kinds, properties=PROPERTIES, session_timeout_ms=SESSION_TIMEOUT_MS
    ) as running:
        assert wait_until_known(running) == request.param[0]
        yield running
        assert "Traceback" not in running.log_text(OURS), "the broker logged a bug of its own"


def test_a_topic_is_deleted_everywhere_and_can_be_made_again(cluster: MixedCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})

    def is_made() -> bool:
        """Kafka's controller deletes a topic after it has answered, and refuses its name until then."""
        try:
            create_topic(cluster.bootstrap, "again", partitions=2, replication_factor=3)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            return False
        return True

    for _ in range(2):
        wait_until(is_made, "the topic")
        wait_for_replicas(cluster, ["again"])
        admin.delete_topics(["again"], operation_timeout=WAIT_S)["again"].result(WAIT_S)
        wait_until(lambda: "again" not in describe(cluster.bootstrap).topics, "that it is gone")

    def is_gone() -> bool:
        directories = [path for each in KINDS for path in cluster.data_dir(each).glob("again-*")]
        return all(path.name.endswith("-delete") for path in directories)

    wait_until(is_gone, "that its files are gone")


def test_values_that_ours_would_not_take_from_a_client_keep_nothing_from_its_place(
    cluster: MixedCluster,
) -> None:
    """Apache Kafka 3 allows smaller segments than Kafka 4 and ours. They are in the tree by its word."""
    for topic in ("small", "strange"):
        create_topic(cluster.bootstrap, topic, replication_factor=3)
    with zookeeper(cluster) as client:
        small = {"version": 1, "config": {"segment.bytes": "100000"}}
        strange = {"version": 1, "config": {"segment.ms": "0", "message.format.version": "3.0-IV1"}}
        client.set("/config/topics/small", json.dumps(small).encode())
        client.set("/config/topics/strange", json.dumps(strange).encode())
    cluster.stop(OURS)
    cluster.start(OURS)
    wait_for_replicas(cluster, ["small", "strange"])
    assert "a stored config of topic strange is not used: Invalid value 0" in cluster.log_text(OURS)
    admin = AdminClient({"bootstrap.servers": cluster.address(OURS), **QUIET})
    asked = ConfigResource(ResourceType.TOPIC, "small")
    assert admin.describe_configs([asked])[asked].result(WAIT_S)["segment.bytes"].value == "100000"
    with zookeeper(cluster) as client:  # one of Kafka's would not start again with that
        client.set("/config/topics/strange", json.dumps({"version": 1, "config": {}}).encode())


@pytest.mark.parametrize("broker_id", [1, OURS])
def test_a_config_of_one_broker_is_taken_by_that_broker(cluster: MixedCluster, broker_id: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.address(broker_id), **QUIET})
    name, value = "log.cleaner.threads", "2"
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, str(broker_id), incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)
    asked = ConfigResource(ResourceType.BROKER, str(broker_id))

    def is_set() -> bool:
        found = admin.describe_configs([asked])[asked].result(WAIT_S)
        return bool(found[name].value == value)

    wait_until(is_set, "the config")


def java(main_class: str, *args: str, version: str = ZOOKEEPER_MODE_VERSION) -> str:
    command = java_command(
        main_class, *args, version=version, quick=True, jvm_options=("-Xmx256M", *QUIET_TOOL)
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("version", [ZOOKEEPER_MODE_VERSION, DEFAULT_VERSION])
def test_transactions_of_java_producers(cluster: MixedCluster, version: str) -> None:
    """Those of Kafka 4 leave adding partitions to the brokers where these say that they can: not all can here."""
    topic = f"java-{version}"
    create_topic(cluster.bootstrap, topic, assignment=[[1, 2, OURS], [2, OURS, 1], [OURS, 1, 2]])
    wait_for_replicas(cluster, [topic])
    properties = [f"bootstrap.servers={cluster.bootstrap}", "acks=all", "linger.ms=0", "batch.size=2000"]
    said = java(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", "6000", "--record-size", "100", "--throughput", "-1"),
        *("--transactional-id", topic, "--transaction-duration-ms", "50", "--producer-props", *properties),
        version=version,
    )
    assert "6000 records sent" in said
    assert sum(len(read(cluster.bootstrap, topic, partition)) for partition in range(3)) == 6000


def test_each_of_them_is_asked_for_hanging_transactions(cluster: MixedCluster) -> None:
    create_topic(cluster.bootstrap, "asked", replication_factor=3)
    wait_for_replicas(cluster, ["asked"])
    with Transactor(cluster.bootstrap, "asked", partitions=1, name="asked") as transactor:
        transactor.wait_for_more()
        transactor.finish()
    tool = ("org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", cluster.bootstrap)
    found = {each: java(*tool, "find-hanging", "--broker-id", str(each)) for each in KINDS}
    assert found[OURS] == found[1] == found[2]


def test_a_topic_that_one_of_kafkas_makes_at_first_use_gets_leaders(cluster: MixedCluster) -> None:
    """It writes the topic into the tree without a word to the controller."""
    producer = Producer({"bootstrap.servers": cluster.address(1), "allow.auto.create.topics": True, **QUIET})
    producer.produce("first-use", b"value")
    assert producer.flush(WAIT_S) == 0
    assert read(cluster.bootstrap, "first-use", 0) == [b"value"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "nothing stands in the way"),
        ({"broker.id": "1"}, "broker 1 is already in the cluster, at 127.0.0.1:"),
        ({"zookeeper.connect": "{zookeeper}/nowhere"}, "/nowhere holds no cluster of Apache Kafka"),
        (
            {
                "listeners": "INTERNAL://127.0.0.1:0",
                "listener.security.protocol.map": "INTERNAL:PLAINTEXT",
                "inter.broker.listener.name": "INTERNAL",
            },
            "has no listener INTERNAL, by which this broker would reach it",
        ),
        (
            {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"},
            "has no authorizer, and this broker",
        ),
        (
            {"zookeeper.connect": "", "process.roles": "broker"},
            "a broker joins clusters in ZooKeeper mode only",
        ),
    ],
    ids=["nothing", "id", "chroot", "listener", "authorizer", "KRaft"],
)
def test_before_it_joins_a_broker_says_what_stands_in_the_way(
    cluster: MixedCluster, tmp_path: Path, changed: dict[str, str], said: str
) -> None:
    properties = {
        "broker.id": "4",
        "zookeeper.connect": "{zookeeper}",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path / "data"),
        **changed,
    }
    file = tmp_path / "server.properties"
    text = "".join(f"{name}={value}\n" for name, value in properties.items() if value)
    file.write_text(text.replace("{zookeeper}", cluster.zookeeper.address))
    before = nodes(cluster)
    command = [sys.executable, "-m", "penstock", "join", "--config", str(file), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert said in done.stdout + done.stderr
    assert done.returncode == (1 if changed else 0)
    assert nodes(cluster) == before
    assert not (tmp_path / "data").exists()
