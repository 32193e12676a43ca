"""kafka-configs for users, clients and addresses: ours says what Apache Kafka's says, each about the other's work."""

from collections.abc import Sequence

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from simulation.apache.resident_tools import resident_tool
from tests.cli.conftest import run_command
from tests.conftest import StartBroker
from tests.tools.conftest import TOOL_TIMEOUT_S, Output

KAFKAS = "kafka.admin.ConfigCommand"
ANA_APP = [
    "--entity-type",
    "users",
    "--entity-name",
    "ana",
    "--entity-type",
    "clients",
    "--entity-name",
    "app",
]
CHANGES: list[Sequence[str]] = [
    [
        "--alter",
        *ANA_APP,
        "--add-config",
        "producer_byte_rate=1024,request_percentage=12.5,consumer_byte_rate=30000000",
    ],
    ["--alter", "--user", "ana", "--add-config", "producer_byte_rate=2048"],
    ["--alter", "--user", "ana", "--client-defaults", "--add-config", "controller_mutation_rate=0.5"],
    ["--alter", "--entity-type", "users", "--entity-default", "--add-config", "request_percentage=200"],
    ["--alter", "--client", "app", "--add-config", "consumer_byte_rate=7"],
    ["--alter", "--client-defaults", "--add-config", "consumer_byte_rate=8"],
    ["--alter", "--ip", "10.0.0.1", "--add-config", "connection_creation_rate=9"],
    ["--alter", "--entity-type", "ips", "--entity-default", "--add-config", "connection_creation_rate=10"],
    ["--alter", "--user", "ana", "--add-config", "SCRAM-SHA-512=[iterations=8192,password=s3cret]"],
    ["--alter", "--user", "ana", "--add-config", "SCRAM-SHA-256=[password=s3cret]"],
]
LOOKS: list[Sequence[str]] = [
    ["--describe", *ANA_APP],
    ["--describe", "--user", "ana"],
    ["--describe", "--user", "ana", "--client-defaults"],
    ["--describe", "--user-defaults"],
    ["--describe", "--entity-type", "users"],
    ["--describe", "--entity-type", "users", "--entity-type", "clients"],
    ["--describe", "--client", "app"],
    ["--describe", "--entity-type", "clients"],
    ["--describe", "--ip", "10.0.0.1"],
    ["--describe", "--entity-type", "ips"],
    ["--describe", "--user", "nobody"],
    ["--describe", "--client", "nobody"],
]
REFUSED: list[Sequence[str]] = [
    ["--alter", "--user", "ana", "--add-config", "bogus=1"],
    ["--alter", "--user", "ana", "--delete-config", "bogus"],
    ["--alter", "--client", "app", "--add-config", "bogus=1"],
    ["--alter", "--client", "app", "--add-config", "SCRAM-SHA-512=[password=x]"],
    ["--alter", "--user", "ana", "--add-config", "producer_byte_rate=many"],
    ["--alter", "--user", "ana", "--delete-config", "consumer_byte_rate"],
    ["--alter", "--user", "ana", "--add-config", "producer_byte_rate=1,SCRAM-SHA-512=[password=x]"],
    ["--alter", "--user-defaults", "--add-config", "SCRAM-SHA-512=[password=x]"],
    ["--alter", "--user", "ana", "--add-config", "SCRAM-SHA-512=[iterations=5,password=x]"],
    ["--alter", "--ip", "10.0.0.1", "--add-config", "producer_byte_rate=1"],
    ["--alter", "--entity-type", "users", "--add-config", "producer_byte_rate=1"],
]


def ours(broker: PenstockBroker, words: Sequence[str]) -> Output:
    done = run_command("kafka-configs", "--bootstrap-server", broker.bootstrap, *words)
    return Output(words, done.code, done.out, done.err)


def tool(broker: PenstockBroker, *words: str, check: bool = True) -> Output:
    return resident_tool(
        KAFKAS, "--bootstrap-server", broker.bootstrap, *words, check=check, timeout_s=TOOL_TIMEOUT_S
    )


@pytest.fixture
def limited(start_broker: StartBroker) -> PenstockBroker:
    """Of the test's own, as its quotas hold for everybody."""
    return start_broker()


def lines(output: Output) -> list[str]:
    """In no order: the entities are in that of a hash map in Java."""
    return sorted(output.stdout.splitlines())


@pytest.mark.parametrize("who", ["ours changes", "Kafka's changes"])
def test_both_tools_say_the_same(limited: PenstockBroker, who: str) -> None:
    for words in CHANGES:
        if who == "ours changes":
            done = ours(limited, words)
        else:
            done = tool(limited, *words)
        assert done.returncode == 0, done.stderr
        what = {"--user": "user ana", "--client": "client app", "--ip": "ip 10.0.0.1"}
        if words[1] in what and "--client-defaults" not in words:
            assert done.stdout == f"Completed updating config for {what[words[1]]}.\n"
    if who == "Kafka's changes":
        assert ours(limited, CHANGES[0]).stdout == tool(limited, *CHANGES[0]).stdout
        assert ours(limited, CHANGES[2]).stdout == tool(limited, *CHANGES[2]).stdout
        assert ours(limited, CHANGES[3]).stdout == tool(limited, *CHANGES[3]).stdout
    for words in LOOKS:
        mine, theirs = ours(limited, words), tool(limited, *words)
        assert lines(mine) == lines(theirs), words
        assert mine.returncode == theirs.returncode == 0
    for deletion in (
        ["--alter", *ANA_APP, "--delete-config", "request_percentage"],
        ["--alter", "--user", "ana", "--delete-config", "SCRAM-SHA-512"],
    ):
        assert (
            ours(limited, deletion) if who == "ours changes" else tool(limited, *deletion)
        ).returncode == 0
    found = ours(limited, ["--describe", "--user", "ana"]).stdout
    assert found == (
        "Quota configs for user-principal 'ana' are producer_byte_rate=2048.0\n"
        "SCRAM credential configs for user-principal 'ana' are SCRAM-SHA-256=iterations=4096\n"
    )


@pytest.mark.parametrize("words", REFUSED, ids=lambda words: " ".join(words))
def test_both_tools_refuse_in_the_same_words(limited: PenstockBroker, words: Sequence[str]) -> None:
    mine, theirs = ours(limited, words), tool(limited, *words, check=False)
    assert mine.stderr.splitlines()[0] == theirs.stderr.splitlines()[0]
    assert mine.returncode == theirs.returncode == 1
