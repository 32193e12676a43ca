"""What a task takes of the worker's properties, and the settings of its clients."""

from __future__ import annotations

import pickle

import pytest

from penstock.connect import InvalidConfig
from penstock.connect.tasks.clients import (
    CONSUMER,
    PRODUCER,
    make_producer,
    policy_of,
    properties_of,
    refused_overrides,
    settings_of,
)
from penstock.connect.tasks.fencing import transactional_id
from penstock.connect.tasks.settings import WorkerSettings

PROPERTIES = {
    "bootstrap.servers": "one:9092",
    "group.id": "workers",
    "offset.flush.interval.ms": "1500",
    "exactly.once.source.support": "enabled",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "producer.linger.ms": "7",
    "producer.batch.size": "1000",
    "consumer.fetch.min.bytes": "9",
    "key.converter": "K",
}
OVERRIDES = {
    "producer.override.linger.ms": "8",
    "consumer.override.group.id": "mine",
    "producer.override.sasl.jaas.config": "secret",
}


def test_the_workers_properties_have_kafkas_names_and_defaults() -> None:
    worker = WorkerSettings.of(PROPERTIES)
    assert (worker.bootstrap, worker.group_id, worker.flush_interval_s) == ("one:9092", "workers", 1.5)
    assert (worker.is_exactly_once, worker.flush_timeout_s, worker.makes_topics) == (True, 5.0, True)
    assert pickle.loads(pickle.dumps(worker)) == worker
    assert "secret" not in repr(WorkerSettings.of({"sasl.jaas.config": "secret"}))


def test_a_value_that_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"exactly\.once\.source\.support"):
        WorkerSettings.of({"exactly.once.source.support": "yes"})
    with pytest.raises(InvalidConfig, match=r"offset\.flush\.interval\.ms"):
        WorkerSettings.of({"offset.flush.interval.ms": "soon"})


def test_a_client_has_the_workers_settings_and_the_connectors_over_them() -> None:
    worker = WorkerSettings.of(PROPERTIES)
    found = properties_of(worker, OVERRIDES, PRODUCER)
    assert found["linger.ms"] == "8"
    assert found["batch.size"] == "1000"
    assert found["security.protocol"] == "SASL_PLAINTEXT"
    assert "key.converter" not in found
    assert properties_of(worker, OVERRIDES, CONSUMER)["group.id"] == "mine"


def test_kafkas_names_become_librdkafkas() -> None:
    worker = WorkerSettings.of({"bootstrap.servers": "one:9092", "consumer.fetch.max.wait.ms": "20"})
    found = settings_of(worker, {"consumer.override.no.such.thing": "1"}, CONSUMER, group_id="ours")
    assert found["fetch.wait.max.ms"] == "20"
    assert found["isolation.level"] == "read_uncommitted"
    assert found["group.id"] == "ours"
    assert "no.such.thing" not in found


def test_members_of_the_new_protocol_are_not_told_what_it_does_not_know() -> None:
    worker = WorkerSettings.of({})
    config = {"consumer.override.group.protocol": "consumer", "consumer.override.session.timeout.ms": "9000"}
    assert "session.timeout.ms" not in settings_of(worker, config, CONSUMER)


@pytest.mark.parametrize(
    "given", ["acks=1", "acks=0", "retries=0", "max.in.flight.requests.per.connection=9"]
)
def test_who_asks_for_less_than_an_idempotent_producer_gets_it(given: str) -> None:
    name, _, value = given.partition("=")
    worker = WorkerSettings.of({})
    assert settings_of(worker, {}, PRODUCER)["enable.idempotence"] is True
    settings = settings_of(worker, {f"producer.override.{name}": value}, PRODUCER)
    assert settings["enable.idempotence"] is False
    make_producer(settings)


@pytest.mark.parametrize(
    ("policy", "refused"),
    [
        ("All", set()),
        ("None", set(OVERRIDES)),
        ("Principal", {"producer.override.linger.ms", "consumer.override.group.id"}),
        ("Allowlist", {"consumer.override.group.id", "producer.override.sasl.jaas.config"}),
        ("org.apache.kafka.connect.connector.policy.NoneConnectorClientConfigOverridePolicy", set(OVERRIDES)),
    ],
)
def test_a_policy_says_what_a_connector_may_override(policy: str, refused: set[str]) -> None:
    worker = WorkerSettings.of(
        {
            "connector.client.config.override.policy": policy,
            "connector.client.config.override.allowlist": "linger.ms",
        }
    )
    assert refused_overrides(worker, OVERRIDES).keys() == refused
    if refused:
        with pytest.raises(InvalidConfig, match="policy does not allow"):
            properties_of(worker, OVERRIDES, PRODUCER)


def test_a_policy_that_nobody_has_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="Mine"):
        policy_of(WorkerSettings.of({"connector.client.config.override.policy": "Mine"}))


def test_transactional_ids_are_kafkas() -> None:
    assert transactional_id(WorkerSettings.of(PROPERTIES), "files", 3) == "workers-files-3"
