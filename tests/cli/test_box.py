"""penstock up, down and status: a cluster in a box."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.boxes import TestBox
from tests.cli.conftest import BIN, TIMEOUT_S, run_command
from tests.clients.driver import wait_until


@pytest.fixture
def box(tmp_path: Path) -> Iterator[TestBox]:
    made = TestBox(tmp_path / "box")
    yield made
    made.close()


def test_a_cluster_comes_up_shows_what_is_wrong_and_goes_down(box: TestBox) -> None:
    started = box.up_anew("--brokers", "3")
    assert started.code == 0, started.err
    assert "broker-3 is up" in started.err
    pids = box.pids()
    assert set(pids) == {"zookeeper", "broker-1", "broker-2", "broker-3"}
    create = ("--create", "--topic", "orders", "--partitions", "3", "--replication-factor", "3")
    config = ("--config", "min.insync.replicas=3")
    assert run_command("kafka-topics", "--bootstrap-server", box.bootstrap, *create, *config).code == 0
    healthy = box.run("status")
    assert healthy.code == 0, healthy.out
    assert "under-replicated partitions: 0" in healthy.out
    assert "leader skew: 1.00" in healthy.out
    assert "healthy: " in healthy.out
    assert [broker["leaders"] for broker in box.status()["brokers"]] == [1, 1, 1]

    box.kill("broker-2")
    wait_until(lambda: box.status()["missing_brokers"] == [2], "the loss of broker 2 to be noticed")
    wait_until(lambda: len(box.status()["under_replicated"]) == 3, "the ISRs to shrink")
    shown = box.run("status")
    assert shown.code == 1
    assert "broker-2    not running" in shown.out
    assert "brokers that are missing: 2" in shown.out
    assert "under-replicated partitions: 3" in shown.out
    assert "offline partitions: 0" in shown.out
    assert "below min ISR partitions: 3" in shown.out

    assert box.up("--only", "broker-2").code == 0
    wait_until(lambda: box.status()["healthy"], "all replicas to be in sync")
    again = box.up()
    assert f"broker-1 runs already (pid {pids['broker-1']}" in again.err
    assert box.pids() == {**pids, "broker-2": box.pids()["broker-2"]}
    assert box.pids()["broker-2"] != pids["broker-2"]

    down = box.run("down")
    assert down.code == 0, down.err
    assert down.err.index("broker-1 has stopped") < down.err.index("zookeeper has stopped")
    assert box.pids() == {}
    assert "zookeeper does not run" in box.run("down").err
    assert not [path.name for path in box.directory.glob("*.log") if "Traceback" in path.read_text()]


def test_one_broker_is_enough_and_the_older_spelling_finds_it(box: TestBox) -> None:
    assert box.up_anew().code == 0
    topics = ("kafka-topics", "--zookeeper", box.zookeeper)
    made = run_command(
        *topics, "--topic", "first", "--create", "--partitions", "3", "--replication-factor", "1"
    )
    assert made.out == "Created topic first.\n"
    assert made.err.startswith("Warning: --zookeeper is deprecated and will be removed")
    assert made.err.count("\n") == 1
    assert run_command(*topics, "--list").out == "first\n"
    assert (
        "PartitionCount: 3\tReplicationFactor: 1"
        in run_command(*topics, "--topic", "first", "--describe").out
    )
    configs = (
        "kafka-configs",
        "--zookeeper",
        box.zookeeper,
        "--entity-type",
        "topics",
        "--entity-name",
        "first",
    )
    added = run_command(*configs, "--alter", "--add-config", "min.insync.replicas=2")
    assert added.out == "Completed updating config for topic first.\n"
    assert "min.insync.replicas=2" in run_command(*configs, "--describe").out
    nowhere = run_command("kafka-topics", "--zookeeper", f"{box.zookeeper}/elsewhere", "--list")
    assert nowhere.code == 1
    assert nowhere.err.endswith("has no Kafka cluster (/brokers/ids is missing)\n")
    box.kill("broker-1")
    wait_until(
        lambda: "knows no live broker" in run_command(*topics, "--list").err, "the broker's session to end"
    )


def test_an_ensemble_of_three_outlives_one_of_its_servers(box: TestBox) -> None:
    assert box.up_anew("--zookeepers", "3").code == 0
    box.kill("zookeeper-2")
    create = ("--create", "--topic", "orders")

    def is_made() -> bool:
        return (
            run_command("kafka-topics", "--bootstrap-server", box.bootstrap, *create, "--if-not-exists").code
            == 0
        )

    wait_until(is_made, "a topic in spite of the lost server")
    assert not box.status()["healthy"]
    assert box.up().code == 0
    assert box.status()["healthy"]


def test_a_port_in_use_is_one_clear_line_and_leaves_nothing(box: TestBox) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = box.up("--port", "0", "--zookeeper-port", str(port))
    assert done.code == 1
    assert re.fullmatch(
        rf"penstock: zookeeper cannot use port {port} \(address already in use\): stop \S+ \(pid {os.getpid()}\), which uses "
        "it, or make a cluster elsewhere with --zookeeper-port and --data\n",
        done.err,
    )
    assert [path.name for path in box.directory.iterdir()] == ["box.lock"]


def test_the_process_id_of_somebody_else_is_not_ours(box: TestBox) -> None:
    assert box.up_anew().code == 0
    assert box.run("down").code == 0
    (box.directory / "broker-1.pid").write_text(f"{os.getpid()}\n")
    assert [one["pid"] for one in box.status()["services"]] == [None, None]
    assert "broker-1 does not run" in box.run("down").err
    (box.directory / "broker-1.pid").write_text("nonsense")
    assert "broker-1 does not run" in box.run("down").err


def test_what_an_interrupted_up_started_is_waited_for_by_the_next(box: TestBox) -> None:
    def is_under_way(member: str) -> bool:
        """Before that the shell that starts it waits for a word, and ends with the command."""
        pid = box.pids().get(member)
        command = Path(f"/proc/{pid}/cmdline")
        return pid is not None and command.exists() and not command.read_bytes().startswith(b"/bin/sh")

    def interrupted_at(member: str, *words: str) -> str:
        up = [str(BIN / "penstock"), "up", *words, "--data", str(box.directory)]
        with subprocess.Popen(up, stderr=subprocess.PIPE, text=True) as process:
            wait_until(lambda: is_under_way(member) or process.poll() is not None, f"the start of {member}")
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=TIMEOUT_S)[1]
        # A shell tells 130 of both. Python ends by the signal when it came while a named tuple was being made, handled or not.
        assert process.returncode in (130, -signal.SIGINT), said
        return said

    hint = f"what was started goes on: penstock down --data {box.directory} stops it\n"
    assert hint in interrupted_at("zookeeper", "--port", "0", "--zookeeper-port", "0")
    zookeeper = box.pids()["zookeeper"]
    assert hint in interrupted_at("broker-1")
    broker = box.pids()["broker-1"]
    done = box.up()
    assert done.code == 0, done.err
    assert f"zookeeper runs already (pid {zookeeper}," in done.err
    # It runs already, or it is ready after a while: the same process in both cases.
    assert re.search(rf"broker-1 (runs already|is up) \(pid {broker},", done.err), done.err
    assert run_command("kafka-topics", "--bootstrap-server", box.bootstrap, "--list").code == 0


def test_brokers_listen_on_an_address_of_ipv6(box: TestBox) -> None:
    started = box.up_anew("--host", "::1")
    assert started.code == 0, started.err
    (port,) = (member["port"] for member in box.status()["services"] if member["name"] == "broker-1")
    assert f"The cluster is at [::1]:{port}," in started.out
    assert box.status()["healthy"]
    moved = box.up("--host", "127.0.0.1")
    assert moved.err.endswith("now: penstock down first, then up with the other --listen\n")


def test_a_cluster_that_refuses_is_told_in_json(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def refuse_api_versions() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(bytes.fromhex("0000000c 00000001 002a 01 00000000 00"))

        refusing = threading.Thread(target=refuse_api_versions)
        refusing.start()
        done = run_command("penstock", "status", "--json", "-b", f"127.0.0.1:{server.getsockname()[1]}")
        refusing.join()
    assert done.code == 1
    said = json.loads(done.out)
    assert (said["healthy"], said["problem"]) == (False, "the broker refused ApiVersions with error 42")


def test_a_broker_that_cannot_start_is_shown_with_the_end_of_its_log(box: TestBox) -> None:
    properties = box.directory / "broker-1" / "meta.properties"
    properties.parent.mkdir(parents=True)
    properties.write_text("version=0\nbroker.id=7\n")
    done = box.up_anew("--set", "num.partitions=6")
    assert done.code == 1
    assert "penstock: broker-1 ended: the end of" in done.err
    assert "7" in done.err.splitlines()[-1]
    assert "Traceback" not in done.err
    assert f"what was started goes on: penstock down --data {box.directory} stops it\n" in done.err
    assert json.loads((box.directory / "box.json").read_text())["settings"] == {}
    properties.unlink()
    without = box.up()
    assert without.code == 0, without.err


def test_services_go_on_where_their_logs_have_no_room(box: TestBox) -> None:
    box.directory.mkdir()
    for name in ("zookeeper", "broker-1"):
        (box.directory / f"{name}.log").symlink_to("/dev/full")
    done = box.up_anew()
    assert done.code == 0, done.err
    assert box.status()["healthy"]
    assert box.run("down").code == 0


def test_an_option_that_brokers_would_refuse_is_not_remembered(box: TestBox) -> None:
    assert box.up_anew().code == 0
    before = (box.directory / "box.json").read_text()
    for setting, why in (("num.partitions=many", "num.partitions"), ("bad=1", "unknown option bad")):
        refused = box.up("--set", setting)
        assert refused.code == 1
        assert why in refused.err
        assert refused.err.count("\n") == 1
    assert (box.directory / "box.json").read_text() == before
    changed = box.up("--set", "num.partitions=6")
    assert changed.code == 0, changed.err
    assert "broker-1 ran already, with the options of before: penstock cluster restart" in changed.err


def test_where_there_is_no_cluster_the_commands_say_so(tmp_path: Path) -> None:
    for words in (("down",), ("status",), ("cluster", "restart", "--rolling")):
        done = run_command("penstock", *words, "--data", str(tmp_path / "nowhere"))
        assert done.code == 1
        assert done.err.startswith(f"penstock: there is no cluster in {tmp_path}/nowhere: penstock up --data")
        assert done.err.count("\n") == 1


def test_a_single_broker_does_not_take_a_cluster_for_its_log(tmp_path: Path) -> None:
    (tmp_path / "box.json").write_text("{}")
    done = run_command("penstock", "broker", "--data", str(tmp_path), "--port", "0")
    assert done.code == 1
    assert done.err.startswith(f"penstock: {tmp_path} holds a cluster: penstock up --data")
