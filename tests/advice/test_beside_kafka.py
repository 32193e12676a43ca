"""Doctor and plan at a broker of Apache Kafka 4.3."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from penstock.advice.doctor.gathering import Watch, gather
from penstock.advice.plan.measured import measure
from penstock.cli.verbs.app import run
from penstock.client.clients import Connection
from penstock.testing.clusters import create_topic
from simulation.apache.apache_kafka import ApacheKafka
from tests.advice.patients import commit, findings, reading, watch, write


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    with ApacheKafka(tmp_path_factory.mktemp("kafka"), quick=True) as running:
        yield running


def test_faults_of_a_cluster_of_apache_kafka_are_found(kafka: ApacheKafka) -> None:
    small = {"segment.bytes": "1048576", "max.message.bytes": "50000000"}
    create_topic(kafka.bootstrap, "orders", partitions=2, replication_factor=1, config=small)
    write(kafka.bootstrap, "orders", 500)
    with reading(kafka.bootstrap, "slow", "orders") as consumer:
        commit(consumer, "orders", 10)
        seen = watch(20, lambda: write(kafka.bootstrap, "orders", 300))
        found = {one.check: one for one in findings(kafka.bootstrap, seen=seen)}
    assert set(found) == {"replication", "segments", "message-size", "lag"}
    assert found["lag"].title == "group slow does not move: its lag grows"
    assert found["segments"].command == "penstock configs delete --topic orders segment.bytes"


def test_the_facts_of_apache_kafka_are_complete(kafka: ApacheKafka) -> None:
    facts = gather(Connection(kafka.bootstrap), watch=Watch(0))
    assert facts.unseen == ()
    assert facts.unreachable is None
    (broker,) = facts.brokers
    assert broker.problem is None
    assert broker.setting("listeners")
    assert broker.cluster_id == (facts.health.cluster_id if facts.health else None)
    assert all(one.total_bytes and one.usable_bytes for one in facts.directories)
    assert measure(facts).brokers == 1


def test_a_plan_is_made_of_what_apache_kafka_does(
    kafka: ApacheKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", "-b", kafka.bootstrap, "--from-cluster", "--measure", "0.5", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["brokers"] == 3
