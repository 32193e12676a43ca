"""Every tool and verb that asks a cluster, at one behind TLS and a login; and those that are not let in."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from penstock.cli.verbs.app import Verbs
from penstock.stack.certificates import Authority
from tests.cli.conftest import BIN, Finished, run_command
from tests.clients.admin import create_topic
from tests.registry_of_tests import registry_of_tests
from tests.secured import PLAIN_LOGIN, SCRAM_LOGIN, STORE_PASSWORD, Secured, secured_cluster
from tests.secured_penstock import secured_penstock

TOPIC = "orders"
GROUP = "readers"


@pytest.fixture(scope="module", params=[secured_cluster, secured_penstock], ids=["Kafka", "Penstock"])
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with request.param(tmp_path_factory.mktemp("secured")) as running:
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
    done = run_command(
        "kafka-producer-perf-test", *at, "--topic", "paid", "--num-records", "2", "--record-size", "9", "--throughput",
        "-1", "--transactional-id", "payments", "--command-config", config,
    )  # fmt: skip
    assert "2 records sent" in done.out, done.err
    (secured.directory / "delete.json").write_text(
        '{"partitions": [{"topic": "orders", "partition": 0, "offset": 0}], "version": 1}'
    )
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
    "acls --add --allow-principal User:eva --operation Read --topic apart": "Adding ACLs for resource",
    "acls --list": "name=apart",
    "cluster cluster-id": "Cluster ID: ",
    "cluster list-endpoints": "unfenced",
    "features describe": "Feature: group.version",
    "producer-perf-test --topic perf --num-records 10 --record-size 10 --throughput -1": "10 records sent",
    "consumer-perf-test --topic perf --num-records 10 --timeout 30000": "start.time",
    "e2e-latency --topic perf --num-records 5 --producer-acks 1 --record-size 10": "Avg latency",
    "verifiable-producer --topic perf --max-messages 3": "producer_send_success",
    "verifiable-consumer --topic perf --group-id check --max-messages 3": "records_consumed",
    "delete-records --offset-json-file DIR/delete.json": "low_watermark",
    "streams-application-reset --application-id check --input-topics orders --dry-run": "Topic: orders Partition: 0",
}  # fmt: skip


@pytest.mark.parametrize("words", TOOLS)
def test_a_tool_is_let_in(used: Secured, config: str, words: str) -> None:
    tool, *rest = words.replace("DIR", str(used.directory)).split()
    at = ("--bootstrap-server", used.kafka.address("SASL_SSL"), "--command-config", config)
    done = run_command(f"kafka-{tool}", *at, *rest)
    assert TOOLS[words] in done.out, done.err
    assert done.code == 0, done.err


METADATA = {
    secured_cluster: {
        "--status": "LeaderId:               1",
        "--replication --human-readable": " ms ago",
    },
    secured_penstock: {
        "--status": "this cluster has no metadata quorum",
        "--replication": "no metadata quorum",
    },
}


@pytest.mark.parametrize(
    ("secured", "words", "told"),
    [(cluster, words, told) for cluster, rows in METADATA.items() for words, told in rows.items()],
    indirect=["secured"],
)
def test_the_metadata_are_asked_about(used: Secured, config: str, words: str, told: str) -> None:
    at = ("--bootstrap-server", used.kafka.address("SASL_SSL"), "--command-config", config)
    done = run_command("kafka-metadata-quorum", *at, "describe", *words.split())
    assert told in done.out + done.err


OTHER_GROUPS = {
    secured_cluster: {"share-groups": "GROUP", "streams-groups": "GROUP"},
    secured_penstock: {"share-groups": "no share groups", "streams-groups": "no streams groups"},
}


@pytest.mark.parametrize(
    ("secured", "tool", "told"),
    [(cluster, tool, told) for cluster, rows in OTHER_GROUPS.items() for tool, told in rows.items()],
    indirect=["secured"],
)
def test_groups_of_other_kinds_are_asked_about(used: Secured, config: str, tool: str, told: str) -> None:
    at = ("--bootstrap-server", used.kafka.address("SASL_SSL"), "--command-config", config)
    done = run_command(f"kafka-{tool}", *at, "--list", "--state")
    assert told in done.out + done.err


def test_replicas_are_compared(used: Secured, config: str) -> None:
    """Until it is ended."""
    at = ("--broker-list", used.kafka.address("SASL_SSL"), "--command-config", config)
    command = [str(BIN / "kafka-replica-verification"), *at, "--topics-include", TOPIC]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert "verification process is started" in process.stdout.readline()
        finally:
            process.kill()


WITH_SCHEMAS = {
    "avro": ('{"type":"record","name":"R","fields":[{"name":"f","type":"int"}]}', '{"f":7}'),
    "json-schema": ('{"type":"object","properties":{"f":{"type":"integer"}}}', '{"f":7}'),
    "protobuf": ('syntax = "proto3"; message R { int32 f = 1; }', '{"f":7}'),
}


@pytest.mark.parametrize("kind", WITH_SCHEMAS)
def test_tools_for_values_with_schemas_are_let_in(used: Secured, config: str, kind: str) -> None:
    schema, value = WITH_SCHEMAS[kind]
    at = ("--bootstrap-server", used.kafka.address("SASL_SSL"), "--topic", f"of-{kind}")
    with registry_of_tests() as registry:
        url = ("--property", f"schema.registry.url={registry.url}")
        words = ("--command-config", config, *url, "--property", f"value.schema={schema}")
        done = run_command(f"kafka-{kind}-console-producer", *at, *words, stdin=f"{value}\n")
        assert (done.err, done.code) == ("", 0)
        words = ("--command-config", config, *url, "--from-beginning", "--max-messages", "1")
        done = run_command(f"kafka-{kind}-console-consumer", *at, *words)
        assert json.loads(done.out.splitlines()[0]) == json.loads(value), done.err


NOT_ASKING = {"console-share-consumer", "dump-log", "server-start", "server-stop", "storage"}
ELSEWHERE = {"delegation-tokens"}  # its own tests speak to secured brokers
TESTED = {
    "metadata-quorum",
    "replica-verification",
    "console-producer",
    "console-consumer",
    "share-groups",
    "streams-groups",
}
TESTED |= {f"{kind}-console-{end}" for kind in WITH_SCHEMAS for end in ("producer", "consumer")}


def test_no_tool_is_left_out() -> None:
    tools = {path.name.removeprefix("kafka-") for path in BIN.glob("kafka-*") if path.suffix != ".sh"}
    tested = {words.split()[0] for words in TOOLS}
    assert tools - NOT_ASKING - ELSEWHERE == tested | TESTED


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
    "transactions hanging": "",
    "acls list": "",
    "status": "",
    "cluster": "cluster",
    "produce orders": "",
    "offsets orders": "orders",
    "topics create verbs --partitions 1": "",
    "topics alter verbs --partitions 2": "",
    "configs set --topic verbs retention.ms=7000000": "",
    "configs delete --topic verbs retention.ms": "",
    "topics delete verbs --yes": "",
    "groups reset readers --topic orders --to latest --yes": "orders",
    "groups lag readers": GROUP,
    "groups delete-offsets check --topic perf": "",
    "groups delete check --yes": "",
    "transactions describe payments": "CompleteCommit",
    "acls add --principal User:lea --allow Read --topic verbs": "User:lea",
    "acls check --principal User:lea --operation Read --topic verbs": "",
    "acls remove --principal User:lea --topic verbs --yes": "User:lea",
    "quotas set --user lea producer_byte_rate=5MB": "",
    "quotas list": "lea",
    "quotas remove --user lea": "",
    "users set yan --password-file -": "",
    "users list": "yan",
    "users remove yan": "",
    "dlq show orders": "",
    "dlq replay orders --dry-run": "",
    "sql SELECT": "1",
    "log strays list": "",
    "doctor --watch 0 --fail-on never": "",
    "plan --from-cluster --measure 0.5": "partitions",
    "apply --file FILE": "",
}
# They are let in, and then there is nothing for them to do in this cluster.
REFUSED = {
    "transactions abort orders 0 0 --yes": "no open transaction begins at 0 in orders-0",
    "log strays restore orders": "stray",
    "cluster drain 9": "broker 9",
    "cluster remove 9": "broker 9",
    "cluster replace 1 --with 9": "broker 9",
    "takeover 1:9 --plan": "broker 9",
}
SERVICES = {
    "console",
    "registry",
    "rest",
    "sql-server",
    "connect distributed",
    "connect standalone",
}  # their own tests speak to secured brokers
STANDS_FOR = {
    "SELECT": "select count(*) - count(*) + 1 from orders",
    "FILE": str(Path(__file__).with_name("one_topic.yaml")),
}


@pytest.mark.parametrize("words", VERBS)
def test_a_verb_is_let_in(used: Secured, config: str, words: str) -> None:
    done = run_verb(used, config, words)
    assert VERBS[words] in done.out, done.err
    assert done.code == 0, done.err


@pytest.mark.parametrize("words", REFUSED)
def test_a_verb_that_is_refused_is_let_in_too(used: Secured, config: str, words: str) -> None:
    done = run_verb(used, config, words)
    assert REFUSED[words] in done.err
    assert done.code == 1


def verbs_that_ask(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from verbs_that_ask(below, (*path, name))
    if any(parameter.name == "bootstrap_server" for parameter in command.params):
        yield " ".join(path)


def test_no_verb_is_left_out() -> None:
    tested = [*VERBS, *REFUSED]
    asking = set(verbs_that_ask(Verbs("penstock"))) - SERVICES
    assert [verb for verb in asking if not any(f"{words} ".startswith(f"{verb} ") for words in tested)] == []


def run_verb(secured: Secured, config: str, words: str) -> Finished:
    return run_command(
        "penstock",
        *(STANDS_FOR.get(word, word) for word in words.split()),
        *("-b", secured.kafka.address("SASL_SSL"), "--command-config", config),
        stdin="a\n",
    )


@pytest.mark.parametrize(
    "words", ["topics list", "groups list", "consume orders --from-beginning -n 1", "status"]
)
def test_java_s_own_stores_are_read(used: Secured, tmp_path: Path, words: str) -> None:
    """A trust store and a key store in JKS, at a listener that wants a certificate of ours."""
    options = used.options(
        "SSL",
        ssl_truststore_location=str(used.java_truststore("JKS")),
        ssl_truststore_password=STORE_PASSWORD,
        ssl_keystore_location=str(used.java_keystore()),
        ssl_keystore_password=STORE_PASSWORD,
    )
    config = properties(tmp_path / "client.properties", options)
    done = run_command(
        "penstock", *words.split(), "-b", used.kafka.address("SSL"), "--command-config", config
    )
    assert (done.err, done.code) == ("", 0)
    wrong = properties(tmp_path / "wrong.properties", {**options, "ssl.keystore.password": "wrong"})
    done = run_command("penstock", *words.split(), "-b", used.kafka.address("SSL"), "--command-config", wrong)
    assert done.err.startswith("penstock: ssl.keystore.password: does not open ")
    assert done.code == 1


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
        ({"security.protocol": "PLAINTEXT"}, "sasl.jaas.config, ssl.truststore.location have no effect"),
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
    assert len([line for line in told.splitlines() if not line.startswith("WARN: ")]) == 1, told
    assert done.code != 0
