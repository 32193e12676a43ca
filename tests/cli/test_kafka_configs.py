import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.penstock_broker import READY_LINE, PenstockBroker
from tests.cli.conftest import run_command
from tests.conftest import StartBroker

Kafka = Callable[..., Any]


@pytest.fixture
def topic(kafka: Kafka, topic_name: str) -> str:
    assert kafka("topics", "--create", "--topic", topic_name).code == 0
    return topic_name


def test_settings_are_added_described_and_taken_back(kafka: Kafka, topic: str) -> None:
    added = kafka(
        "configs",
        "--alter",
        "--topic",
        topic,
        "--add-config",
        "retention.ms=7200000,cleanup.policy=[delete,compact]",
    )
    assert added == (f"Completed updating config for topic {topic}.\n", "", 0)
    described = kafka("configs", "--describe", "--entity-type", "topics", "--entity-name", topic)
    assert described.out == (
        f"Dynamic configs for topic {topic} are:\n"
        "  cleanup.policy=delete,compact sensitive=false "
        "synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=delete,compact, DEFAULT_CONFIG:log.cleanup.policy=delete}\n"
        "  retention.ms=7200000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=7200000}\n"
    )
    kafka("configs", "--alter", "--topic", topic, "--delete-config", "retention.ms,cleanup.policy")
    assert kafka("configs", "--describe", "--topic", topic).out == f"Dynamic configs for topic {topic} are:\n"


def test_all_settings_of_a_topic_are_33(kafka: Kafka, topic: str) -> None:
    first, *settings = kafka("configs", "--describe", "--topic", topic, "--all").out.splitlines()
    assert first == f"All configs for topic {topic} are:"
    assert len(settings) == 33


def test_settings_come_from_a_file(kafka: Kafka, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.properties"
    file.write_text("retention.ms = 5000\n# a comment\nsegment.ms: 6000\n")
    assert kafka("configs", "--alter", "--topic", topic, "--add-config-file", str(file)).code == 0
    described = kafka("configs", "--describe", "--topic", topic).out
    assert "  retention.ms=5000 " in described
    assert "  segment.ms=6000 " in described


def test_an_unknown_setting_is_refused_in_two_lines(kafka: Kafka, topic: str) -> None:
    refused = kafka("configs", "--alter", "--topic", topic, "--add-config", "bogus=1")
    first, second = refused.err.splitlines()
    assert first.startswith("Error while executing config command with args '--bootstrap-server ")
    assert (
        second
        == "org.apache.kafka.common.errors.InvalidConfigurationException: Unknown topic config name: bogus"
    )
    assert (refused.out, refused.code) == ("", 1)


def test_settings_of_all_brokers_are_changed_and_taken_back(kafka: Kafka) -> None:
    done = kafka(
        "configs",
        "--alter",
        "--entity-type",
        "brokers",
        "--entity-default",
        "--add-config",
        "log.retention.ms=2000000",
    )
    assert done == ("Completed updating default config for brokers in the cluster.\n", "", 0)
    described = kafka("configs", "--describe", "--broker-defaults").out
    assert described.splitlines()[0] == "Default configs for brokers in the cluster are:"
    assert (
        "  log.retention.ms=2000000 sensitive=false "
        "synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=2000000}" in described.splitlines()
    )
    assert kafka("configs", "--alter", "--broker-defaults", "--delete-config", "log.retention.ms").code == 0


def test_what_is_not_there_is_told_without_an_error(kafka: Kafka) -> None:
    assert kafka("configs", "--describe", "--topic", "nope") == (
        "The topic 'nope' doesn't exist and doesn't have dynamic config.\n", "", 0,
    )  # fmt: skip
    assert kafka("configs", "--describe", "--broker", "77") == (
        "The broker '77' doesn't exist and doesn't have dynamic config.\n", "", 0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--describe"], "At least one entity type must be specified"),
        (
            ["--alter", "--topic", "t"],
            "At least one of --add-config, --add-config-file, or --delete-config must be",
        ),
        (
            ["--alter", "--entity-type", "topics", "--add-config", "a=b"],
            "An entity name must be specified with --alter of",
        ),
        (
            ["--describe", "--entity-type", "foo"],
            "Invalid entity type foo, the entity type must be one of topics,",
        ),
        (
            ["--describe", "--broker", "x"],
            "The entity name for brokers must be a valid integer broker id, but it is: x",
        ),
        (
            ["--describe", "--topic", "a", "--entity-type", "topics"],
            "Duplicate entity type(s) specified: topics",
        ),
        (
            ["--alter", "--topic", "t", "--add-config", "a"],
            "requirement failed: Invalid entity config: all configs",
        ),
        (
            ["--describe", "--entity-type", "broker-loggers", "--entity-name", "1"],
            "kafka-configs: settings of broker-loggers are not in this version yet",
        ),
        (
            ["--alter", "--topic", "t", "--add-config-file", "/none"],
            "kafka-configs: cannot read /none: no such file",
        ),
    ],
)
def test_a_wrong_command_line_is_one_line(run: Kafka, words: list[str], reason: str) -> None:
    done = run("kafka-configs", "--bootstrap-server", "localhost:1", *words)
    assert done.err.startswith(reason)
    assert done.err.count("\n") == 1
    assert (done.out, done.code) == ("", 1)


def test_what_a_broker_was_given_or_decided_at_its_start_is_static(
    kafka: Kafka, broker: PenstockBroker
) -> None:
    said = kafka("configs", "--describe", "--broker", "1", "--all").out
    address = f"PLAINTEXT://127.0.0.1:{broker.port}"
    for line in (
        "broker.id=1 sensitive=false synonyms={STATIC_BROKER_CONFIG:broker.id=1, DEFAULT_CONFIG:broker.id=-1}",
        "node.id=1 sensitive=false synonyms={STATIC_BROKER_CONFIG:node.id=1, DEFAULT_CONFIG:node.id=1}",
        f"log.dirs={broker.data_dir} sensitive=false synonyms={{STATIC_BROKER_CONFIG:log.dirs={broker.data_dir}}}",
        f"listeners=PLAINTEXT://127.0.0.1:{broker.port} sensitive=false synonyms={{STATIC_BROKER_CONFIG:"
        f"listeners=PLAINTEXT://127.0.0.1:{broker.port}, DEFAULT_CONFIG:listeners=PLAINTEXT://:9092}}",
        f"advertised.listeners={address} sensitive=false synonyms={{STATIC_BROKER_CONFIG:advertised.listeners={address}}}",
        "group.initial.rebalance.delay.ms=0 sensitive=false synonyms={STATIC_BROKER_CONFIG:"
        "group.initial.rebalance.delay.ms=0, DEFAULT_CONFIG:group.initial.rebalance.delay.ms=3000}",
    ):
        assert f"  {line}\n" in said


def test_a_broker_that_picked_its_port_tells_the_one_it_has(start_broker: StartBroker) -> None:
    broker = start_broker(options={"broker.id": "7"}, port=0)
    port = broker.process.wait_for_line(READY_LINE)[2]
    bootstrap = ("--bootstrap-server", f"127.0.0.1:{port}")
    said = run_command("kafka-configs", *bootstrap, "--describe", "--broker", "7", "--all").out
    for line in (
        f"listeners=PLAINTEXT://127.0.0.1:{port} ",
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{port} ",
        "broker.id=7 sensitive=false synonyms={STATIC_BROKER_CONFIG:broker.id=7, DEFAULT_CONFIG:broker.id=-1}\n",
    ):
        assert f"  {line}" in said


def test_configs_of_groups_and_client_metrics_outlive_a_restart(start_broker: StartBroker) -> None:
    entities = {
        "groups": ("a/b c", "consumer.session.timeout.ms=46000"),
        "client-metrics": ("all", "interval.ms=500"),
    }
    for is_first in (True, False):
        broker = start_broker()
        for kind, (name, change) in entities.items():
            words = ("--bootstrap-server", broker.bootstrap, "--entity-type", kind, "--entity-name", name)
            if is_first:
                assert run_command("kafka-configs", *words, "--alter", "--add-config", change).code == 0
            assert f"  {change} " in run_command("kafka-configs", *words, "--describe").out
        broker.stop()


def test_the_number_of_connections_is_bounded_from_the_moment_that_it_is_set(
    start_broker: StartBroker,
) -> None:
    broker = start_broker()
    words = (
        "--entity-type",
        "brokers",
        "--entity-default",
        "--alter",
        "--add-config",
        "max.connections.per.ip=1",
    )
    done = run_command("kafka-configs", "--bootstrap-server", broker.bootstrap, *words)
    assert done.code == 0, done.err
    address = ("127.0.0.1", broker.port)
    with (
        socket.create_connection(address, timeout=30),
        socket.create_connection(address, timeout=30) as refused,
    ):
        assert refused.recv(1) == b""


@pytest.mark.parametrize("setting", ["listeners=PLAINTEXT://:1", "listener.security.protocol.map=A:B"])
def test_what_a_broker_listens_on_is_not_changed_live(kafka: Kafka, setting: str) -> None:
    words = ("--entity-type", "brokers", "--entity-name", "1")
    done = kafka("configs", *words, "--alter", "--add-config", setting)
    name = setting.partition("=")[0]
    assert done.code == 1
    assert f"Cannot update these configs dynamically: [{name}]" in done.err
    assert "DYNAMIC" not in kafka("configs", *words, "--describe").out
