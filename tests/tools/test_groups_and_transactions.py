"""The Java tools for groups and transactions against the broker; and ours beside them, word for word.

The same comparison runs against Apache Kafka: there it shows that our tools read a Kafka cluster as Kafka's do.
"""

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer

from penstock.testing.penstock_broker import PenstockBroker
from simulation.apache.apache_kafka import ApacheKafka
from simulation.apache.resident_tools import resident_tool
from tests.cli.conftest import run_command
from tests.cli.group_members import commit, create_topic, member, produce
from tests.tools.conftest import TOOL_TIMEOUT_S, TOOLS

BIN = Path(__file__).resolve().parents[2] / "bin"
DEADLINE_S = 60.0
CONSUMER_GROUPS = ("consumer.group.ConsumerGroupCommand", "kafka-consumer-groups")
GROUPS = ("GroupsCommand", "kafka-groups")
RESETTER = ("StreamsResetter", "kafka-streams-application-reset")
TRANSACTIONS = ("TransactionsCommand", "kafka-transactions")


class Said(NamedTuple):
    out: str
    code: int


@pytest.fixture(scope="module")
def penstock_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    options = {"group.initial.rebalance.delay.ms": "0"}
    with (
        PenstockBroker(tmp_path_factory.mktemp("penstock"), options=options) as running,
        filled(running.bootstrap),
    ):
        yield running.bootstrap


@pytest.fixture(scope="module")
def apache_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with (
        ApacheKafka(tmp_path_factory.mktemp("apache"), quick=True) as running,
        filled(running.bootstrap),
    ):
        yield running.bootstrap


@contextmanager
def filled(address: str) -> Iterator[None]:
    """Groups of each kind (empty, with a member, with a member of the newer protocol); a transaction committed, one open."""
    create_topic(address, "orders", partitions=4)
    create_topic(address, "a.topic.with.a.rather.long.name", partitions=1)
    produce(address, "orders", [7, 5, 3, 0])
    commit(address, "idle", "orders", {0: 3, 1: 5})
    commit(address, "idle", "a.topic.with.a.rather.long.name", {0: 0})
    commit(address, "late", "orders", {2: 1})
    committed = transactional_producer(address, "committed")
    committed.produce("orders", b"x", partition=3)
    committed.commit_transaction(DEADLINE_S)
    unfinished = transactional_producer(address, "open")
    unfinished.produce("orders", b"x", partition=3)
    assert unfinished.flush(DEADLINE_S) == 0
    with (
        member(address, "busy", ["orders"], client_id="reader"),
        member(address, "modern", ["orders"], client_id="new", group_protocol="consumer"),
    ):
        yield
    unfinished.purge()


def transactional_producer(address: str, transactional_id: str) -> Producer:
    settings = {"bootstrap.servers": address, "log_level": 0, "transaction.timeout.ms": 600_000}
    producer = Producer({**settings, "transactional.id": transactional_id})
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    return producer


@pytest.fixture
def bootstrap(request: pytest.FixtureRequest) -> str:
    """Of the cluster that the test names."""
    address: str = request.getfixturevalue(f"{request.param}_cluster")
    return address


def lines(*, everywhere: list[str], here: list[str]) -> pytest.MarkDecorator:
    """Some lines are run against both clusters, the others against Penstock alone."""
    pairs = [("penstock", line) for line in [*everywhere, *here]]
    pairs += [("apache", line) for line in everywhere]
    return pytest.mark.parametrize(("bootstrap", "line"), pairs, indirect=["bootstrap"])


def java(tool: str, *words: str) -> Said:
    done = resident_tool(f"{TOOLS}.{tool}", *words, timeout_s=TOOL_TIMEOUT_S, check=False)
    return Said(done.stdout, done.returncode)


@pytest.fixture
def both(bootstrap: str) -> "Both":
    """What Kafka's tool says, and what ours does. Stack traces and usage go to stderr and are not compared."""

    def run(tools: tuple[str, str], line: str) -> tuple[Said, Said]:
        words = ("--bootstrap-server", bootstrap, *shlex.split(line))
        ours = subprocess.run(
            [BIN / tools[1], *words], capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False
        )
        return java(tools[0], *words), Said(ours.stdout, ours.returncode)

    return run


Both = Callable[[tuple[str, str], str], tuple[Said, Said]]


@lines(
    everywhere=[
        "--list --state --type",
        "--describe --all-groups --verbose",
        "--describe --group busy --group modern --group idle --members --verbose",
        "--describe --group modern --group busy --state --verbose",
        "--delete --group busy --group nope",
        "--delete-offsets --group idle --topic nope --topic orders:9",
    ],
    here=[
        "--list",
        "--describe --group idle",
        "--describe --group nope",
        "--delete-offsets --group busy --topic orders",
    ],
)
def test_groups_are_told_in_kafkas_words(both: Both, line: str) -> None:
    kafkas, ours = both(CONSUMER_GROUPS, line)
    assert ours == kafkas


@lines(
    everywhere=[
        "--group idle --group late --topic orders:0,2 --to-latest --dry-run --export",
        "--all-groups --topic orders --to-offset 4 --dry-run",
    ],
    here=[
        "--group idle --topic orders --topic a.topic.with.a.rather.long.name --to-current --dry-run --export",
        "--group idle --topic orders:0,1 --shift-by -4 --dry-run",
        "--group late --topic orders --to-datetime 2099-01-01T00:00:00.000 --dry-run",
        "--group fresh --topic orders --by-duration P1D --execute",
        "--group idle --topic orders:9 --to-latest --dry-run",
    ],
)
def test_resets_are_planned_as_kafka_plans_them(both: Both, line: str) -> None:
    kafkas, ours = both(CONSUMER_GROUPS, f"--reset-offsets {line}")
    assert ours == kafkas


@lines(
    everywhere=["--application-id idle --input-topics orders,nope --shift-by -1 --dry-run"],
    here=[
        "--application-id idle --input-topics orders --to-offset 4 --internal-topics nope --dry-run",
        "--application-id nope --intermediate-topics orders --dry-run",
        "--application-id idle --input-topics orders --to-datetime 2099-01-01T00:00:00.000 --dry-run",
        "--application-id busy --input-topics orders",
    ],
)
def test_an_application_is_reset_in_kafkas_words(both: Both, line: str) -> None:
    kafkas, ours = both(RESETTER, line)
    assert ours.code == kafkas.code
    assert ours.out.splitlines() == kafkas.out.splitlines()


@lines(everywhere=["--list"], here=["--list --group-type consumer"])
def test_kafka_groups_lists_the_same(both: Both, line: str) -> None:
    kafkas, ours = both(GROUPS, line)
    assert ours == kafkas


@pytest.mark.parametrize("bootstrap", ["penstock", "apache"], indirect=True)
def test_each_tool_sees_what_the_other_did(both: Both, bootstrap: str) -> None:
    commit(bootstrap, "shared", "orders", {0: 1})
    java(
        CONSUMER_GROUPS[0],
        *("--bootstrap-server", bootstrap, "--reset-offsets", "--group", "shared", "--topic", "orders:0"),
        *("--to-offset", "4", "--execute"),
    )
    kafkas, ours = both(CONSUMER_GROUPS, "--describe --group shared")
    assert ours == kafkas
    assert ours.out.splitlines()[2].split()[:6] == ["shared", "orders", "0", "4", "7", "3"]
    subprocess.run(
        [BIN / CONSUMER_GROUPS[1], "--bootstrap-server", bootstrap, "--delete", "--group", "shared"],
        check=True,
        capture_output=True,
    )
    assert "shared" not in both(CONSUMER_GROUPS, "--list")[0].out.split()


@lines(
    everywhere=[
        "list",
        "describe --transactional-id open",
        "describe-producers --topic orders --partition 3",
    ],
    here=[
        "list --transactional-id-pattern 'comm.*'",
        "describe --transactional-id nope",
        "find-hanging --topic orders --max-transaction-timeout 0",
        "abort --topic orders --partition 3 --start-offset 4711",
    ],
)
def test_transactions_are_told_in_kafkas_words(both: Both, line: str) -> None:
    kafkas, ours = both(TRANSACTIONS, line)
    assert _without_duration(ours.out) == _without_duration(kafkas.out)
    assert ours.code == kafkas.code


def _without_duration(text: str) -> str:
    """How long a transaction has been open is more for whoever asks later."""
    return re.sub(r"(?<=\t)\d+ +(?=\torders-3)", "…", text)


def test_the_quorum_of_apache_kafka_is_described_as_by_its_own_tool(apache_cluster: str) -> None:
    """But for offsets and times, which go on."""
    at = ("--bootstrap-server", apache_cluster)

    def shown(text: str) -> list[str]:
        return re.sub(r"\b\d{2,}( *)(?=\s|$)", "N", text).splitlines()

    for words in (("describe", "--status"), ("describe", "--replication")):
        ours = run_command("kafka-metadata-quorum", *at, *words)
        theirs = resident_tool(f"{TOOLS}.MetadataQuorumCommand", *at, *words, timeout_s=TOOL_TIMEOUT_S)
        assert shown(ours.out) == shown(theirs.stdout)
        assert ours.code == 0
    remove = (
        "remove-controller",
        "--controller-id",
        "9",
        "--controller-directory-id",
        "JEXY6aqzQY-32P5TStzaFg",
    )
    ours = run_command("kafka-metadata-quorum", *at, *remove)
    theirs = resident_tool(
        f"{TOOLS}.MetadataQuorumCommand", *at, *remove, timeout_s=TOOL_TIMEOUT_S, check=False
    )
    assert ours.err.strip() == theirs.stderr.splitlines()[0]
    assert ours.code == theirs.returncode == 1


def test_a_cluster_of_ours_has_no_quorum(penstock_cluster: str) -> None:
    done = run_command(
        "kafka-metadata-quorum", "--bootstrap-server", penstock_cluster, "describe", "--status"
    )
    assert done.err == (
        "this cluster has no metadata quorum (it is not in KRaft mode): its metadata is in ZooKeeper or in the "
        "broker's own store\n"
    )
    assert (done.out, done.code) == ("", 1)


FORMATTERS = "org.apache.kafka.tools.consumer"


@pytest.mark.parametrize(
    ("formatter", "topic"),
    [
        ("OffsetsMessageFormatter", "__consumer_offsets"),
        ("GroupMetadataMessageFormatter", "__consumer_offsets"),
        ("TransactionLogMessageFormatter", "__transaction_state"),
    ],
)
def test_internal_topics_are_printed_as_kafka_prints_them(
    penstock_cluster: str, formatter: str, topic: str
) -> None:
    """Kafka's tool of 4.3 leaves out the ends of lines; the groups of the tools themselves come and go."""

    def lines(out: str) -> list[str]:
        return sorted(
            line for line in out.replace("}{", "}\n{").splitlines() if "console-consumer" not in line
        )

    words = (
        *("--bootstrap-server", penstock_cluster, "--topic", topic, "--from-beginning"),
        *("--timeout-ms", "5000", "--formatter", f"{FORMATTERS}.{formatter}"),
    )
    kafkas = lines(java("consumer.ConsoleConsumer", *words).out)
    done = subprocess.run(
        [BIN / "kafka-console-consumer", *words],
        capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False,
    )  # fmt: skip
    assert lines(done.stdout) == kafkas
    assert len(kafkas) > 1
