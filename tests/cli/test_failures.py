import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.processes import free_port

Run = Callable[..., Any]

TOOLS = {
    "kafka-topics": ["--list"],
    "kafka-configs": ["--describe", "--topic", "t"],
    "kafka-console-producer": ["--topic", "t"],
    "kafka-console-consumer": ["--topic", "t"],
    "kafka-avro-console-producer": ["--topic", "t", "--property", 'value.schema="int"'],
    "kafka-avro-console-consumer": ["--topic", "t"],
    "kafka-get-offsets": [],
    "kafka-delete-records": ["--offset-json-file", "FILE"],
    "kafka-broker-api-versions": [],
    "kafka-acls": ["--list"],
    "kafka-delegation-tokens": ["--describe", "--command-config", "/dev/null"],
    "kafka-log-dirs": ["--describe"],
    "kafka-consumer-groups": ["--list"],
    "kafka-groups": ["--list"],
    "kafka-share-groups": ["--list"],
    "kafka-streams-groups": ["--list"],
    "kafka-replica-verification": [],
    "kafka-metadata-quorum": ["describe", "--status"],
    "kafka-transactions": ["list"],
    "kafka-cluster": ["cluster-id"],
    "kafka-features": ["describe"],
    "kafka-producer-perf-test": ["--topic", "t", "--num-records", "1", "--record-size", "1", "--throughput", "-1"],
    "kafka-consumer-perf-test": ["--topic", "t", "--num-records", "1"],
    "kafka-e2e-latency": [
        "--topic", "t", "--num-records", "1", "--producer-acks", "1", "--record-size", "1",
    ],
    "kafka-streams-application-reset": ["--application-id", "a"],
    "kafka-verifiable-producer": ["--topic", "t"],
    "kafka-verifiable-consumer": ["--topic", "t", "--group-id", "g"],
}  # fmt: skip
LOCAL_TOOLS = [
    "kafka-dump-log",
    "kafka-storage",
    "kafka-server-start",
    "kafka-server-stop",
    "kafka-console-share-consumer",
    "zookeeper-security-migration",
]
HELPFUL = ("kafka-features", "kafka-metadata-quorum", "kafka-storage")
"""To these help is no failure, as with Apache Kafka."""
VERBS = [
    ["topics", "list"],
    ["topics", "describe", "t"],
    ["topics", "create", "t"],
    ["topics", "delete", "t", "--yes"],
    ["produce", "t", "x"],
    ["consume", "t"],
    ["configs", "describe", "--topic", "t"],
    ["configs", "set", "--topic", "t", "a=b"],
    ["offsets"],
    ["cluster"],
    ["takeover", "1:2", "--plan"],
    ["groups", "list"],
    ["groups", "lag"],
    ["groups", "reset", "g", "--all-topics", "--to", "latest"],
    ["transactions", "list"],
    ["acls", "list"],
    ["acls", "check", "--principal", "User:ana", "--operation", "Read", "--topic", "t"],
]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_says_in_one_line_that_no_broker_is_there(run: Run, tool: str, tmp_path: Path) -> None:
    file = tmp_path / "delete.json"
    file.write_text('{"partitions": [{"topic": "t", "partition": 0, "offset": 1}]}')
    words = [str(file) if word == "FILE" else word for word in TOOLS[tool]]
    port = free_port()
    done = run(tool, "--bootstrap-server", f"localhost:{port}", *words, stdin="x\n")
    assert done.err == (
        f"{tool}: cannot reach a broker at localhost:{port}: connection refused. "
        f"Is it running? Try: penstock broker --port {port}\n"
    )
    assert (done.out, done.code) == ("", 1)


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_a_verb_says_in_one_line_that_no_broker_is_there(run: Run, words: list[str]) -> None:
    done = run("penstock", *words, "-b", f"127.0.0.1:{free_port()}")
    assert done.err.startswith("penstock: cannot reach a broker at 127.0.0.1:")
    assert done.err.count("\n") == 1
    assert (done.out, done.code) == ("", 1)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Something that takes connections and says nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_peer_that_does_not_answer_is_given_up(run: Run, silent_port: int) -> None:
    done = run("kafka-topics", "--bootstrap-server", f"127.0.0.1:{silent_port}", "--list")
    assert (
        done.err == f"kafka-topics: cannot reach a broker at 127.0.0.1:{silent_port}: no answer within 4 s.\n"
    )
    assert done.code == 1


def test_each_of_several_addresses_is_tried(run: Run, broker: Any) -> None:
    done = run("kafka-topics", "--bootstrap-server", f"127.0.0.1:{free_port()},{broker.bootstrap}", "--list")
    assert (done.err, done.code) == ("", 0)


def test_an_address_that_is_none_is_told_so(run: Run) -> None:
    done = run("kafka-topics", "--bootstrap-server", "localhost", "--list")
    assert done.out == (
        "Error while executing topic command : 'localhost' is not an address: write HOST:PORT, such as localhost:9092\n"
    )
    assert (done.err, done.code) == ("", 1)


@pytest.mark.parametrize("tool", [*TOOLS, *LOCAL_TOOLS])
def test_help_ends_with_an_example_and_version_names_both(run: Run, tool: str) -> None:
    shown = run(tool, "--help")
    help_text, nothing = (shown.out, shown.err) if tool in HELPFUL else (shown.err, shown.out)
    assert (nothing, shown.code) == ("", 0 if tool in HELPFUL else 1)
    assert help_text.splitlines()[-1].lstrip().startswith((tool, "echo"))
    assert run(f"{tool}.sh", "--version") == ("4.3.1 (penstock 0.1.0)\n", "", 0)


def test_an_unknown_option_is_named(run: Run) -> None:
    assert run("kafka-topics", "--lst") == ("", "lst is not a recognized option\n", 1)
    done = run("penstock", "topics", "list", "--nope")
    assert done.err.splitlines()[-1] == "Error: No such option '--nope'."
    assert done.code == 2


def test_a_launcher_works_through_a_link_from_any_folder(run: Run, broker: Any, tmp_path: Path) -> None:
    import subprocess

    from tests.cli.conftest import BIN

    link = tmp_path / "topics"
    link.symlink_to(BIN / "kafka-topics.sh")
    done = subprocess.run([str(link), "--version"], capture_output=True, cwd=tmp_path, check=True, text=True)
    assert done.stdout == "4.3.1 (penstock 0.1.0)\n"


def test_client_properties_that_mean_nothing_here_are_told_in_one_line(
    run: Run, broker: Any, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "key.serializer=a.B\nrequest.timeout.ms=4000\nsecurity.protocol=PLAINTEXT\nwhat.is.this=1\n"
    )
    done = run(
        "kafka-topics", "--bootstrap-server", broker.bootstrap, "--list", "--command-config", str(file)
    )
    assert done.err == "WARN: there are no such client properties: what.is.this\n"
    assert done.code == 0


def test_a_client_property_with_a_wrong_value_is_one_line(run: Run, broker: Any) -> None:
    done = run(
        "kafka-console-producer", "--bootstrap-server", broker.bootstrap, "--topic", "t",
        "--command-property", "linger.ms=soon", "--timeout", "5",
    )  # fmt: skip
    assert done.code == 0
    done = run(
        "kafka-console-producer", "--bootstrap-server", broker.bootstrap, "--topic", "t",
        "--command-property", "acks=some",
    )  # fmt: skip
    assert done.err == "kafka-console-producer: acks: must be all or -1 or 0 or 1, not 'some'\n"
    assert (done.err.count("\n"), done.code) == (1, 1)
