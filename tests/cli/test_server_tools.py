"""kafka-server-start, kafka-server-stop and kafka-storage: a broker from a server.properties of Kafka's."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.kafka.server_stop import server_words
from penstock.inspection.formatting import look_at_directories
from penstock.testing.processes import free_port
from tests.cli.conftest import BIN, Finished

Run = Callable[..., Finished]
DEADLINE_S = 60
CLUSTER_ID = "JEXY6aqzQY-32P5TStzaFg"


class Server:
    """A server.properties as Apache ships it, with ports and a directory of the test's."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.file = directory / "server.properties"
        # An id of its own: kafka-server-stop must not find a broker of another test.
        self.node_id = 10_000 + os.getpid() % 50_000
        self.file.write_text(
            "process.roles=broker,controller\n"
            f"node.id={self.node_id}\n"
            "controller.quorum.bootstrap.servers=localhost:9093\n"
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{free_port()}\n"
            "controller.listener.names=CONTROLLER\n"
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
            f"log.dirs={directory / 'data'}\n"
        )

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def stop(self, run: Run, *words: str) -> Finished:
        return run("kafka-server-stop", f"--node-id={self.node_id}", *words)


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


@pytest.fixture
def started(server: Server, run: Run) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [BIN / "kafka-server-start.sh", server.file.name, "--override", "num.partitions=3"],
        cwd=server.directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def eventually(run: Callable[[], Any], expected: Any) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while (found := run()) != expected:
        assert time.monotonic() < deadline_s, found


def test_a_broker_starts_from_kafkas_file_and_is_stopped_in_order(
    server: Server, started: subprocess.Popen[bytes], run: Run
) -> None:
    assert started.stdout is not None
    assert started.stdout.readline().startswith(b"penstock: listening on ")
    at = ("--bootstrap-server", server.bootstrap)
    assert run("kafka-topics", *at, "--create", "--topic", "orders").code == 0
    assert "PartitionCount: 3" in run("kafka-topics", *at, "--describe", "--topic", "orders").out
    assert server.stop(run, "--process-role=broker") == ("", "", 0)
    assert started.wait(DEADLINE_S) == 0
    assert (server.directory / "data" / ".kafka_cleanshutdown").exists()
    assert server.stop(run) == ("No kafka server to stop\n", "", 1)


def test_a_daemon_says_what_it_has_to_say_in_a_file(server: Server, run: Run, tmp_path: Path) -> None:
    logs = {"LOG_DIR": str(tmp_path / "logs")}
    done = run("kafka-server-start", "-daemon", server.file.name, cwd=tmp_path, environment=logs)
    assert done == ("", "", 0)
    try:
        at = ("kafka-cluster", "--bootstrap-server", server.bootstrap, "cluster-id")
        eventually(lambda: run(*at).code, 0)
        assert "listening on" in (tmp_path / "logs" / "kafkaServer.out").read_text()
    finally:
        assert server.stop(run).code == 0
    eventually(lambda: server.stop(run), ("No kafka server to stop\n", "", 1))


def test_a_stop_with_another_signal_or_role(
    server: Server, started: subprocess.Popen[bytes], run: Run
) -> None:
    assert started.stdout is not None
    started.stdout.readline()
    node = f"--node-id={server.node_id}"
    assert run("kafka-server-stop", node, environment={"SIGNAL": "NOPE"}).err == (
        "kafka-server-stop: SIGNAL=NOPE is not a signal: TERM, INT or KILL\n"
    )
    assert run("kafka-server-stop", node, "--process-role=king").code == 1
    assert run("kafka-server-stop", node, environment={"SIGNAL": "KILL"}) == ("", "", 0)
    assert started.wait(DEADLINE_S) == -signal.SIGKILL


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "USAGE: kafka-server-start [-daemon] server.properties [--override property=value]*"),
        (["--override", "a=b"], "USAGE: kafka-server-start [-daemon] server.properties [--override property=value]*"),
        (["x.properties", "--override", "a"], "kafka-server-start: Invalid command line properties: a"),
        (["/nonexistent"], "penstock: cannot read /nonexistent: No such file or directory"),
    ],
)  # fmt: skip
def test_a_start_that_cannot_be_is_told_in_one_line(run: Run, words: list[str], said: str) -> None:
    done = run("kafka-server-start", *words)
    assert (done.err.splitlines()[0], done.out, done.code) == (said, "", 1)


def test_only_what_kafka_server_start_of_this_installation_started_is_stopped() -> None:
    from sys import executable

    of_checkout = [executable, "-m", "penstock.cli.kafka", "server_start", "server.properties"]
    of_install = [executable, "/usr/bin/kafka-server-start", "server.properties"]
    assert server_words(of_checkout) == server_words(of_install) == ["server.properties"]
    assert server_words([executable, "-m", "penstock", "broker"]) is None
    assert server_words(["/elsewhere/python", *of_checkout[1:]]) is None
    assert server_words(["vim", "kafka-server-start"]) is None
    assert server_words([]) is None


def test_directories_are_formatted_once_and_the_broker_takes_the_clusters_id(
    server: Server, run: Run, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    info = ("kafka-storage", "info", "--config", str(server.file))
    assert run(*info) == (f"Found problem:\n  {data} does not exist\n\n", "", 1)
    formatting = ("kafka-storage", "format", "-c", str(server.file), "-t", CLUSTER_ID)
    assert run(*formatting, "--standalone") == (
        f"Formatting data directory {data} with cluster.id {CLUSTER_ID}.\n",
        "",
        0,
    )
    metadata = f"{{broker.id={server.node_id}, cluster.id={CLUSTER_ID}, version=0}}"
    assert run(*info) == (f"Found log directory:\n  {data}\n\nFound metadata: {metadata}\n\n", "", 0)
    assert run(*formatting) == (
        "",
        f"kafka-storage: Log directory {data} is already formatted. Use --ignore-formatted to ignore this directory "
        "and format the others.\n",
        1,
    )
    assert run(*formatting, "-g").out == "All of the log directories are already formatted.\n"
    assert run(*formatting[:-1], "another", "-g").err == (
        f"kafka-storage: Invalid cluster.id in: {data}/meta.properties. Expected another, but read {CLUSTER_ID}\n"
    )
    run("kafka-server-start", "-daemon", str(server.file), environment={"LOG_DIR": str(tmp_path)})
    try:
        at = ("kafka-cluster", "--bootstrap-server", server.bootstrap, "cluster-id")
        eventually(lambda: run(*at).out, f"Cluster ID: {CLUSTER_ID}\n")
    finally:
        assert server.stop(run).code == 0
    eventually(lambda: server.stop(run).code, 1)


def test_a_random_id_is_new_each_time_and_looks_like_no_option(run: Run) -> None:
    made = {run("kafka-storage.sh", "random-uuid").out for _ in range(3)}
    assert len(made) == 3
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}\n", text) for text in made)


def test_what_a_format_cannot_do_is_refused(server: Server, run: Run) -> None:
    words = ("kafka-storage", "format", "-c", str(server.file), "-t", CLUSTER_ID)
    assert run(*words, "--feature", "kraft.version=1").err == (
        "kafka-storage: --feature is not supported: features are those of the brokers here\n"
    )
    assert run("kafka-storage", "format", "-c", str(server.file)).err.startswith(
        "argument --cluster-id is required\n"
    )
    assert not (server.directory / "data").exists()


def test_directories_that_disagree_are_named(tmp_path: Path) -> None:
    for name, cluster in (("a", "one"), ("b", "other")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.properties").write_text(f"version=0\nbroker.id=1\ncluster.id={cluster}\n")
    (tmp_path / "c").mkdir()
    (tmp_path / "d").write_text("")
    found = look_at_directories(str(tmp_path / name) for name in "abcd")
    assert found.problems == [
        f"Metadata for {tmp_path}/b was {{broker.id=1, cluster.id=other, version=0}}, but other directories featured "
        "{broker.id=1, cluster.id=one, version=0}",
        f"{tmp_path}/c is not formatted.",
        f"{tmp_path}/d is not a directory",
    ]
