"""How a broker says that it cannot start, and how it stops: one clear line and an exit code, never a traceback."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.testing.penstock_broker import READY_LINE, PenstockBroker
from penstock.testing.processes import free_port, start_process
from tests.conftest import StartBroker
from tests.crash.plain_client import create_topic, produce, read_all

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

SERVER_PROPERTIES = """\
# Names as in the file that Kafka ships.
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:{port},CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:{port},CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs={directory}
num.partitions=3
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.flush.interval.messages=10000
log.flush.interval.ms=1000
log.retention.hours=168
log.retention.bytes=1073741824
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def run_broker(*arguments: str | Path | int, timeout_s: float = 60.0) -> subprocess.CompletedProcess[str]:
    """A broker that is expected to end by itself."""
    command = [sys.executable, "-m", "penstock", "broker", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)


def assert_one_clear_line(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr, done.stderr
    assert "listening" not in done.stdout
    complaints = [line for line in done.stderr.splitlines() if line.startswith("penstock: ")]
    assert len(complaints) == 1, done.stderr
    assert done.stderr.splitlines()[-1] == complaints[0]
    for word in words:
        assert word in complaints[0], complaints[0]


def test_a_data_directory_in_use_is_refused(start_broker: StartBroker) -> None:
    first = start_broker()
    done = run_broker("--port", free_port(), "--data", first.data_dir)
    assert_one_clear_line(done, str(first.data_dir), "in use")
    create_topic(first.bootstrap, "still-served")


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert_one_clear_line(run_broker("--port", port, "--data", tmp_path / "data"), str(port), "in use")


def test_a_data_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("I was here first")
    for path in (tmp_path / "file", tmp_path / "file" / "data"):
        assert_one_clear_line(run_broker("--port", free_port(), "--data", path), str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "I was here first"


def test_a_data_directory_that_cannot_be_made_is_refused() -> None:
    assert_one_clear_line(
        run_broker("--port", free_port(), "--data", "/proc/no-such-place"), "/proc/no-such-place"
    )


def test_a_data_directory_of_another_broker_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "meta.properties").write_text("version=0\nbroker.id=77\ncluster.id=abcdefghijklmnopqrstuv\n")
    assert_one_clear_line(
        run_broker("--port", free_port(), "--data", data), "broker.id=77", "meta.properties"
    )


def test_a_data_directory_of_another_cluster_is_refused(start_broker: StartBroker) -> None:
    broker = start_broker()
    broker.stop()
    meta = broker.data_dir / "meta.properties"
    lines = [line for line in meta.read_text().splitlines() if not line.startswith("cluster.id")]
    meta.write_text("\n".join([*lines, "cluster.id=abcdefghijklmnopqrstuv", ""]))
    assert_one_clear_line(run_broker("--port", free_port(), "--data", broker.data_dir), "cluster.id")


@pytest.mark.parametrize("damage", ["garbage", "empty", "cut", "zeros inside", "a directory"])
def test_a_damaged_metadata_store_is_refused(start_broker: StartBroker, damage: str) -> None:
    broker = start_broker()
    for number in range(20):
        create_topic(broker.bootstrap, f"topic-{number}")
    broker.stop()
    (store,) = broker.data_dir.glob("*.db")
    content = store.read_bytes()
    if damage == "garbage":
        store.write_bytes(os.urandom(len(content)))
    elif damage == "empty":
        store.write_bytes(b"")
    elif damage == "cut":
        store.write_bytes(content[: len(content) // 2])
    elif damage == "zeros inside":
        store.write_bytes(content[:4096] + bytes(len(content) - 4096))
    else:
        store.unlink()
        store.mkdir()
    assert_one_clear_line(run_broker("--port", free_port(), "--data", broker.data_dir), store.name)


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ("num.partitions=abc", "num.partitions"),
        ("num.partitions=0", "num.partitions"),
        ("log.retention.ms=0", "log.retention.ms"),
        ("log.segment.bytes=1e9", "log.segment.bytes"),
        ("auto.create.topics.enable=perhaps", "auto.create.topics.enable"),
        ("listeners=nonsense", "listeners"),
        ("listeners=PLAINTEXT://:99999", "listeners"),
        ("listeners=SSL://:0", "SSL"),
        ("advertised.listeners=PLAINTEXT://0.0.0.0:9092", "advertised.listeners"),
        ("super.users=alice", "User:alice"),
        ("num.partitions", "NAME=VALUE"),
        ("=5", "NAME=VALUE"),
    ],
)
def test_an_option_value_that_cannot_be_is_refused(tmp_path: Path, setting: str, word: str) -> None:
    arguments = ("--data", tmp_path / "data", "--set", setting)
    if not setting.startswith("listeners"):
        arguments = ("--port", "0", *arguments)  # type: ignore[assignment]
    assert_one_clear_line(run_broker(*arguments), word)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("authorizer.class.name=com.example.Authorizer", ["StandardAuthorizer"]),
        ("listeners=SSL://:9093", ["--port", "SSL"]),
        ("listeners=INSIDE://:9093\nlistener.security.protocol.map=INSIDE:SASL_SSL", ["--port", "SASL_SSL"]),
    ],
)
def test_protection_that_is_asked_for_and_cannot_be_given_is_refused(
    tmp_path: Path, entry: str, words: list[str]
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(entry + "\n")
    done = run_broker("--config", file, "--port", free_port(), "--data", tmp_path / "data")
    assert_one_clear_line(done, entry.partition("\n")[0], *words)


@pytest.mark.parametrize(("host", "is_told"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_a_broker_that_is_open_to_a_network_says_so(tmp_path: Path, host: str, is_told: bool) -> None:
    command = [sys.executable, "-m", "penstock", "broker", "--host", host, "--port", "0"]
    broker = start_process(
        [*command, "--data", str(tmp_path / "data")], name="broker", log_path=tmp_path / "log"
    )
    try:
        broker.wait_for_line(r"serves 0 topics", timeout_s=30)
    finally:
        broker.stop()
    assert ("docs/security.md" in (tmp_path / "log").read_text()) == is_told


def test_a_configuration_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "missing.properties"
    binary = tmp_path / "binary.properties"
    binary.write_bytes(b"\xff\xfe\x00\x01")
    for path in (missing, binary, tmp_path):
        assert_one_clear_line(run_broker("--config", path, "--data", tmp_path / "data"), str(path))


def test_an_unknown_option_is_ignored_with_its_nearest_name(start_broker: StartBroker) -> None:
    broker = start_broker(options={"num.partition": "6"})
    lines = [line for line in broker.log_path.read_text().splitlines() if "num.partition" in line]
    assert len(lines) == 1
    assert "WARNING" in lines[0]
    assert "did you mean num.partitions?" in lines[0]


def test_the_file_that_kafka_ships_is_accepted(tmp_path: Path) -> None:
    port = free_port()
    config = tmp_path / "server.properties"
    config.write_text(SERVER_PROPERTIES.format(port=port, directory=tmp_path / "data"))
    command = [sys.executable, "-m", "penstock", "broker", "--config", str(config)]
    with start_process(command, name="Penstock", log_path=tmp_path / "penstock.log") as process:
        process.wait_for_line(READY_LINE, timeout_s=15)
        create_topic(f"127.0.0.1:{port}", "made", partitions=2)
        assert (tmp_path / "data" / "made-1").is_dir()
        text = process.log_text()
        assert text.count("no effect in Penstock") == 1
        assert "num.io.threads" in text
        assert "unknown option" not in text
        assert process.stop() == 0
    assert "Traceback" not in process.log_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_broker_cleanly(start_broker: StartBroker, number: signal.Signals) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, "kept")
    produce(broker.bootstrap, "kept", [b"%d" % each for each in range(100)])
    assert not (broker.data_dir / CLEAN_SHUTDOWN).exists()
    os.kill(broker.pid, number)
    assert broker.process.wait(timeout_s=15) == 0
    assert (broker.data_dir / CLEAN_SHUTDOWN).exists()
    again = start_broker(port=broker.port)
    assert read_all(again.bootstrap, "kept") == [b"%d" % each for each in range(100)]
    assert not (broker.data_dir / CLEAN_SHUTDOWN).exists()


def test_a_signal_while_clients_wait_stops_the_broker_soon(start_broker: StartBroker) -> None:
    broker = start_broker()
    idle = [socket.create_connection(("127.0.0.1", broker.port), timeout=5) for _ in range(50)]
    for one in idle:
        one.sendall(b"\x00\x00\x00\x50half a request")
    try:
        assert broker.stop(timeout_s=15) == 0
        assert (broker.data_dir / CLEAN_SHUTDOWN).exists()
    finally:
        for one in idle:
            one.close()


def test_a_signal_right_at_the_start_ends_the_broker(tmp_path: Path) -> None:
    for delay_s in (0.02, 0.05, 0.1, 0.15, 0.2):
        broker = PenstockBroker(tmp_path, wait_until_ready=False)
        try:
            broker.process.wait(timeout_s=delay_s)
        except Exception:
            pass
        assert broker.stop(timeout_s=15) in (0, -signal.SIGTERM)
        assert "Traceback" not in broker.log_path.read_text()
    with PenstockBroker(tmp_path) as whole:
        create_topic(whole.bootstrap, "works")


def test_a_copied_data_directory_serves_the_same_records(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker(name="original")
    create_topic(broker.bootstrap, "copied")
    produce(broker.bootstrap, "copied", [b"one", b"two"])
    broker.stop()
    shutil.copytree(broker.data_dir, tmp_path / "copy" / "data")
    copy = start_broker(name="copy")
    assert read_all(copy.bootstrap, "copied") == [b"one", b"two"]
