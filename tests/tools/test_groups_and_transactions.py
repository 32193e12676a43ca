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

from penstock.testing.apache_kafka import QUIET_TOOL, TOOL_HEAP, ApacheKafka, java_command
from penstock.testing.penstock_broker import PenstockBroker
from tests.cli.group_members import commit, create_topic, member, produce
from tests.tools.conftest import TOOL_TIMEOUT_S, TOOLS

BIN = Path(__file__).resolve().parents[2] / "bin"
DEADLINE_S = 60.0
SMALL_HEAP = ("-Xmx512M", "-Xms128M")
# The tools run for a second: compiling them well costs more than it brings.
SHORT_LIVED = (*TOOL_HEAP, *QUIET_TOOL, "-XX:TieredStopAtLevel=1")
CONSUMER_GROUPS = ("consumer.group.ConsumerGroupCommand", "kafka-consumer-groups")
GROUPS = ("GroupsCommand", "kafka-groups")
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
        ApacheKafka(tmp_path_factory.mktemp("apache"), heap=SMALL_HEAP) as running,
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
    """Some lines are run against both clusters, the others against Penstock alone: each costs the start of a JVM."""
    pairs = [("penstock", line) for line in [*everywhere, *here]]
    pairs += [("apache", line) for line in everywhere]
    return pytest.mark.parametrize(("bootstrap", "line"), pairs, indirect=["bootstrap"])


def java(tool: str, *words: str) -> Said:
    command = java_command(f"{TOOLS}.{tool}", *words, jvm_options=SHORT_LIVED)
    done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False)
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
