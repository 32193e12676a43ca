"""The doctor at real clusters of ours: planted faults are found, and the command that is told mends them."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from penstock.advice.doctor import Severity, with_connection
from penstock.cli.verbs.app import run
from penstock.client.errors import UserError
from penstock.testing.clusters import create_topic, wait_until, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.processes import free_port
from tests.advice.patients import commit, findings, reading, watch, write
from tests.conftest import StartBroker
from tests.docs.pages import ROOT

MENDED = {
    "replication": ("single", {"replication_factor": 1, "config": {"min.insync.replicas": "1"}}),
    "min-isr": ("careless", {"config": {"min.insync.replicas": "1"}}),
    "segments": ("small", {"config": {"segment.bytes": "1048576"}}),
    "message-size": ("huge", {"config": {"max.message.bytes": "50000000"}}),
    "settings": ("unclean", {"config": {"unclean.leader.election.enable": "true"}}),
}


def mend(bootstrap: str, command: str | None) -> None:
    assert command is not None
    for line in with_connection(command, bootstrap).split("\n"):
        program, *words = shlex.split(line)
        assert program == "penstock"
        assert run(words) == 0, line


def test_a_cluster_as_it_should_be_has_no_findings(cluster: PenstockCluster) -> None:
    create_topic(cluster.bootstrap, "healthy", partitions=3)
    write(cluster.bootstrap, "healthy", 10)
    with reading(cluster.bootstrap, "healthy-readers", "healthy") as consumer:
        commit(consumer, "healthy", 10)
        assert findings(cluster.bootstrap, seen=watch(10, lambda: None)) == []


@pytest.mark.parametrize("check", MENDED)
def test_a_planted_fault_is_found_and_the_command_mends_it(cluster: PenstockCluster, check: str) -> None:
    topic, how = MENDED[check]
    create_topic(cluster.bootstrap, topic, **how)  # type: ignore[arg-type]
    (finding,) = findings(cluster.bootstrap, check)
    assert any(line.startswith(topic) for line in finding.evidence)
    mend(cluster.bootstrap, finding.command)
    wait_until_in_sync(cluster.bootstrap, [topic])
    assert findings(cluster.bootstrap, check) == []


def test_a_group_that_falls_behind_is_seen_between_two_looks(cluster: PenstockCluster) -> None:
    topic = "behind"
    create_topic(cluster.bootstrap, topic)
    write(cluster.bootstrap, topic, 500)
    with reading(cluster.bootstrap, "slow readers", topic) as consumer:
        commit(consumer, topic, 10)

        def goes_on() -> None:
            write(cluster.bootstrap, topic, 200)
            commit(consumer, topic, 60)

        (finding,) = findings(cluster.bootstrap, "lag", seen=watch(20, goes_on))
        assert "group slow readers falls behind" in finding.title
        assert finding.evidence[0].startswith("lag 490 → 640 in 20.0 s")
        assert findings(cluster.bootstrap, "lag", seen=watch(20, lambda: commit(consumer, topic, 700))) == []


def test_a_group_that_nobody_reads_for_is_told_until_it_is_deleted(cluster: PenstockCluster) -> None:
    create_topic(cluster.bootstrap, "left")
    write(cluster.bootstrap, "left", 20)
    with reading(cluster.bootstrap, "forgotten", "left") as consumer:
        commit(consumer, "left", 5)
        assert findings(cluster.bootstrap, "idle-groups") == []
    (finding,) = findings(cluster.bootstrap, "idle-groups")
    assert finding.evidence == ("forgotten: 15 records to read, nobody there",)
    assert run(["groups", "delete", "forgotten", "-y", "-b", cluster.bootstrap]) == 0
    assert findings(cluster.bootstrap, "idle-groups") == []


def test_a_hot_partition_is_seen_between_two_looks(cluster: PenstockCluster) -> None:
    create_topic(cluster.bootstrap, "hot", partitions=4)

    def writes() -> None:
        write(cluster.bootstrap, "hot", 1000, partition=2)
        write(cluster.bootstrap, "hot", 50, partition=1)

    (finding,) = findings(cluster.bootstrap, "hot-partitions", seen=watch(1, writes))
    assert finding.evidence[0].startswith("hot-2 gets 95% of the topic's 1,050 records/s")


def test_a_disk_that_will_be_full_before_retention_deletes_is_told(cluster: PenstockCluster) -> None:
    create_topic(cluster.bootstrap, "flood", config={"retention.ms": "-1"})
    seen = watch(1e-5, lambda: write(cluster.bootstrap, "flood", 2000, size=1000))  # 200 GB/s
    found = [one for one in findings(cluster.bootstrap, "disk", seen=seen) if "is full in" in one.title]
    assert found
    assert found[0].severity is Severity.ERROR
    assert any("flood: " in line for one in found for line in one.evidence)
    assert found[0].command is not None
    assert "retention.ms" in found[0].command
    assert run(["topics", "delete", "flood", "-y", "-b", cluster.bootstrap]) == 0


def test_records_of_the_future_are_told(cluster: PenstockCluster) -> None:
    create_topic(cluster.bootstrap, "future", config={"message.timestamp.after.max.ms": str(2**63 - 1)})
    write(cluster.bootstrap, "future", 1, when_ms=int(time.time() * 1000) * 1000)
    (finding,) = findings(cluster.bootstrap, "clocks")
    assert finding.evidence[0].startswith("future-0: newest ")
    mend(cluster.bootstrap, finding.command)
    with pytest.raises(AssertionError, match="INVALID_TIMESTAMP"):
        write(cluster.bootstrap, "future", 1, when_ms=int(time.time() * 1000) * 1000)
    assert run(["topics", "delete", "future", "-y", "-b", cluster.bootstrap]) == 0


def test_a_broker_that_died_is_missing_and_others_tell_what_it_kept(cluster: PenstockCluster) -> None:
    create_topic(cluster.bootstrap, "here", partitions=3)
    cluster.kill(3)
    try:
        wait_until(
            lambda: any("missing" in one.title for one in findings(cluster.address(1), "replicas")),
            "it is missed",
        )
        found = findings(cluster.address(1), "replicas")
        assert found[0].title == "1 broker that should keep partitions is missing"
        assert any("under-replicated" in one.title for one in found)
        assert found[0].command == "penstock cluster replace 3 --with ID"
    finally:
        cluster.start(3)
    wait_until(lambda: findings(cluster.bootstrap, "replicas", "reachable") == [], "all is healthy again")


def test_leaders_that_moved_are_told_with_the_election_that_brings_them_back(
    cluster: PenstockCluster,
) -> None:
    create_topic(cluster.bootstrap, "led", assignment=[[2, 1, 3]] * 4)
    cluster.stop(2)
    cluster.start(2)
    wait_until_in_sync(cluster.bootstrap, ["led"])
    (finding,) = findings(cluster.bootstrap, "preferred-leaders")
    assert any(": led by" in line for line in finding.evidence)
    assert finding.command is not None
    command = with_connection(finding.command, cluster.bootstrap)
    assert command.startswith("kafka-leader-election ")
    subprocess.run(f"bin/{command}", shell=True, cwd=ROOT, check=True, timeout=60, capture_output=True)
    assert findings(cluster.bootstrap, "preferred-leaders") == []


def test_an_address_that_clients_cannot_reach_is_an_error(start_broker: StartBroker) -> None:
    port, nobody = free_port(), free_port()
    broker = start_broker(
        options={
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{nobody}",
        },
        port=port,
    )
    found = findings(broker.bootstrap)
    assert found[0].check == "reachable"
    assert f"advertises 127.0.0.1:{nobody}: connection refused" in found[0].evidence[0]


def test_a_listener_for_everybody_without_a_login_is_told(start_broker: StartBroker) -> None:
    port = free_port()
    broker = start_broker(
        options={
            "listeners": f"PLAINTEXT://0.0.0.0:{port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        },
        port=port,
    )
    (finding,) = findings(broker.bootstrap, "security")
    assert finding.evidence[0].endswith(f"PLAINTEXT://0.0.0.0:{port} (PLAINTEXT)")


def test_who_may_see_nothing_is_told_so_and_not_that_all_is_well(start_broker: StartBroker) -> None:
    broker = start_broker(
        options={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:somebody",
        }
    )
    found = findings(broker.bootstrap)
    assert [one.check for one in found] == ["permissions"]
    assert any("log directories of broker" in line for line in found[0].evidence)


def test_a_check_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(UserError, match="there is no check 'nope'; there are reachable, "):
        findings("localhost:1", "nope")


def test_the_command_ends_with_0_without_errors_and_with_1_for_what_is_asked(
    cluster: PenstockCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    create_topic(cluster.bootstrap, "noted", config={"segment.bytes": "1048576"})
    words = ["doctor", "-b", cluster.bootstrap, "--watch", "0", "--only", "segments", "-o", "json"]
    assert run(words) == 0
    (finding,) = json.loads(capsys.readouterr().out)
    assert finding["severity"] == "note"
    assert finding["commands"] == [
        f"penstock configs delete --topic noted segment.bytes -b {cluster.bootstrap}"
    ]
    assert run([*words, "--fail-on", "note"]) == 1
    mend(
        cluster.bootstrap,
        "\n".join(one.removesuffix(f" -b {cluster.bootstrap}") for one in finding["commands"]),
    )
    capsys.readouterr()
    assert run([*words, "--fail-on", "note"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_cluster_that_does_not_answer_is_an_error_of_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    assert run(["doctor", "-b", nobody, "--watch", "0", "-o", "json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)
    assert (finding["check"], finding["severity"]) == ("reachable", "error")


def test_members_of_a_stack_that_died_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(tmp_path / "stack")
    up = ["up", "--data", data, "--brokers", "1", "--port", "0", "--zookeeper-port", "0"]
    assert run([*up, "--with", "registry", "--registry-port", "0"]) == 0
    try:
        assert run(["down", "--data", data, "--only", "registry"]) == 0
        capsys.readouterr()
        assert run(["doctor", "--data", data, "--watch", "0", "--only", "services", "-o", "json"]) == 1
        (finding,) = json.loads(capsys.readouterr().out)
        assert finding["title"] == "registry of the stack: not running"
        (command,) = finding["commands"]
        assert run(shlex.split(command)[1:]) == 0
        capsys.readouterr()
        assert run(["doctor", "--data", data, "--watch", "0", "--only", "services", "-o", "json"]) == 0
        assert json.loads(capsys.readouterr().out) == []
    finally:
        run(["down", "--data", data])


def test_names_of_a_cluster_are_shown_as_they_are(
    cluster: PenstockCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    create_topic(cluster.bootstrap, "marked")
    write(cluster.bootstrap, "marked", 5)
    with reading(cluster.bootstrap, "[bold]of[/bold] `id`", "marked") as consumer:
        commit(consumer, "marked", 1)
    assert run(["doctor", "-b", cluster.bootstrap, "--watch", "0", "--only", "idle-groups"]) == 0
    shown = capsys.readouterr().out
    assert "[bold]of[/bold] `id`: 4 records to read" in shown
    assert "$ penstock groups describe '[bold]of[/bold] `id`' -b " in shown
    assert run(["groups", "delete", "[bold]of[/bold] `id`", "-y", "-b", cluster.bootstrap]) == 0
