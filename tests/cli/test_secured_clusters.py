"""Every tool and verb that asks a cluster, at one behind TLS and a login; and those that are not let in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing.certificates import Authority
from tests.cli.conftest import Finished, run_command
from tests.clients.admin import create_topic
from tests.secured import PLAIN_LOGIN, SCRAM_LOGIN, STORE_PASSWORD, Secured, secured_cluster

TOPIC = "orders"
GROUP = "readers"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_cluster(tmp_path_factory.mktemp("secured")) as running:
        create_topic(running.kafka.bootstrap, TOPIC, partitions=2)
        yield running


def properties(path: Path, options: dict[str, str]) -> str:
    """A file as Java's programs read it: a backslash stands for itself when it is doubled."""
    lines = [f"{name}={value}".replace("\\", "\\\\") for name, value in options.items()]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def config(secured: Secured) -> str:
    """With a trust store of Java's keytool, and a login without quotes."""
    options = secured.options(
        "SASL_SSL",
        ssl_truststore_location=str(secured.java_truststore()),
        ssl_truststore_type="PKCS12",
        ssl_truststore_password=STORE_PASSWORD,
        sasl_jaas_config=SCRAM_LOGIN.replace('"', ""),
    )
    return properties(secured.directory / "client.properties", options)


@pytest.fixture(scope="module")
def used(secured: Secured, config: str) -> Secured:
    """Records and a group, by the console tools."""
    at = ("--bootstrap-server", secured.kafka.address("SASL_SSL"))
    done = run_command(
        "kafka-console-producer", *at, "--topic", TOPIC, "--command-config", config, stdin="a\nb\nc\n"
    )
    assert (done.err, done.code) == ("", 0)
    done = run_command(
        "kafka-console-consumer", *at, "--topic", TOPIC, "--from-beginning", "--max-messages", "3",
        "--group", GROUP, "--command-config", config,
    )  # fmt: skip
    assert sorted(done.out.split()) == ["a", "b", "c"]
    assert done.code == 0
    return secured


TOOLS = {
    "topics --list": TOPIC,
    "topics --describe --topic orders": "PartitionCount: 2",
    "topics --create --topic made --partitions 3": "Created topic made.",
    "configs --alter --entity-type topics --entity-name orders --add-config retention.ms=5000000": "Completed",
    "configs --describe --entity-type topics --entity-name orders": "Dynamic configs for topic orders are:",
    "configs --describe --entity-type brokers --entity-default": "Default configs for brokers",
    "configs --alter --entity-type groups --entity-name readers --add-config consumer.session.timeout.ms=50000": "Completed",
    "configs --describe --entity-type groups --entity-name readers": "Dynamic configs for group readers are:",
    "groups --list": GROUP,
    "consumer-groups --list": GROUP,
    "consumer-groups --describe --group readers": "LOG-END-OFFSET",
    "consumer-groups --describe --group readers --state": "STATE",
    "consumer-groups --reset-offsets --group readers --topic orders --to-earliest --execute": "NEW-OFFSET",
    "consumer-groups --delete-offsets --group readers --topic orders": "Successful",
    "get-offsets --topic orders": "orders:0:",
    "get-offsets --topic orders --time -4": "orders:0:",
    "log-dirs --describe --topic-list orders": '"partition":"orders-0"',
    "broker-api-versions": "Fetch(1): ",
    "transactions list": "TransactionalId",
    "leader-election --election-type preferred --all-topic-partitions": "",
    "reassign-partitions --list": "No partition reassignments found.",
    "client-metrics --list": "",
    "cluster cluster-id": "Cluster ID: ",
    "cluster list-endpoints": "unfenced",
    "features describe": "Feature: group.version",
    "producer-perf-test --topic perf --num-records 10 --record-size 10 --throughput -1": "10 records sent",
}  # fmt: skip


@pytest.mark.parametrize("words", TOOLS)
def test_a_tool_is_let_in(used: Secured, config: str, words: str) -> None:
    tool, *rest = words.split()
    at = ("--bootstrap-server", used.kafka.address("SASL_SSL"), "--command-config", config)
    done = run_command(f"kafka-{tool}", *at, *rest)
    assert TOOLS[words] in done.out, done.err
    assert done.code == 0, done.err


def test_the_older_spelling_of_the_option_is_not_passed_over(used: Secured, config: str) -> None:
    at = ("--bootstrap-server", used.kafka.address("SASL_SSL"), "--admin.config", config)
    words = ("--election-type", "preferred", "--topic", TOPIC, "--partition", "0")
    done = run_command("kafka-leader-election", *at, *words)
    assert "Valid replica already elected for partitions orders-0" in done.out, done.err


VERBS = {
    "topics list": TOPIC,
    "topics describe orders": "orders",
    "configs describe --topic orders --all": "retention.ms",
    "groups list": GROUP,
    "groups describe readers": GROUP,
    "consume orders --from-beginning -n 1": "",
    "transactions list": "",
    "status": "",
}


@pytest.mark.parametrize("words", VERBS)
def test_a_verb_is_let_in(used: Secured, config: str, words: str) -> None:
    done = run_verb(used, config, words)
    assert VERBS[words] in done.out, done.err
    assert done.code == 0, done.err


def run_verb(secured: Secured, config: str, words: str) -> Finished:
    return run_command(
        "penstock", *words.split(), "-b", secured.kafka.address("SASL_SSL"), "--command-config", config
    )


def test_a_password_with_quotes_and_backslashes_is_what_it_says(used: Secured, tmp_path: Path) -> None:
    options = used.options("SASL_SSL", sasl_mechanism="PLAIN", sasl_jaas_config=PLAIN_LOGIN)
    config = properties(tmp_path / "client.properties", options)
    assert TOPIC in run_verb(used, config, "topics list").out
    described = run_verb(used, config, "groups list -o json")
    assert GROUP in [group["group"] for group in json.loads(described.out)]


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"sasl.jaas.config": SCRAM_LOGIN.replace("scram-secret", "no")}, "refused the login of 'ana'"),
        ({"ssl.truststore.location": "OTHER"}, "is not trusted"),
        ({"security.protocol": "PLAINTEXT"}, ""),
        ({"security.protocol": "SASL"}, "security.protocol: 'SASL' is not PLAINTEXT, SSL"),
        ({"sasl.mechanism": "GUESS"}, "sasl.mechanism: 'GUESS' cannot be used here"),
    ],
)
@pytest.mark.parametrize(
    "command", ["penstock topics list", "kafka-topics --list", "kafka-log-dirs --describe"]
)
def test_who_is_not_let_in_is_told_why_in_one_line(
    used: Secured, tmp_path: Path, command: str, changed: dict[str, str], complaint: str
) -> None:
    options = used.options("SASL_SSL") | changed
    if options["ssl.truststore.location"] == "OTHER":
        options["ssl.truststore.location"] = str(Authority(tmp_path / "other").path)
    config = properties(tmp_path / "client.properties", options)
    name, *words = command.split()
    done = run_command(
        name, *words, "--bootstrap-server", used.kafka.address("SASL_SSL"), "--command-config", config
    )
    told = done.out + done.err  # kafka-topics tells most of its errors as Kafka's does, where its results go
    assert complaint in told
    assert "scram-secret" not in told
    assert told.count("\n") == 1, told
    assert done.code != 0
