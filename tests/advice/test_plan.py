"""`penstock plan` at the command line and at a running cluster."""

from __future__ import annotations

import json
import threading

import pytest

from penstock.cli.verbs.app import run
from penstock.testing.clusters import create_topic
from penstock.testing.penstock_cluster import PenstockCluster
from tests.advice.patients import write


def test_a_plan_shows_its_arithmetic_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "plan",
        "--throughput",
        "50MB/s",
        "--record-size",
        "1KB",
        "--retention",
        "7d",
        "--replication",
        "3",
    ]
    assert (
        run(
            [
                *words,
                "--consumers",
                "12",
                "--broker-disk",
                "12TB",
                "--broker-cores",
                "8",
                "--growth",
                "20%/year",
            ]
        )
        == 0
    )
    shown = capsys.readouterr().out
    assert "50 MB/s × 1.3 (headroom) × 1.2 (growth, 1 year)" in shown
    assert "78,000 records/s" in shown
    assert "$ penstock topics create TOPIC --partitions 18 --replication-factor 3" in shown


def test_programs_get_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(
            [
                "plan",
                "--throughput",
                "20000 records/s",
                "--record-size",
                "500",
                "--broker-disk",
                "1TB",
                "-o",
                "json",
            ]
        )
        == 0
    )
    made = json.loads(capsys.readouterr().out)
    assert made["planned_bytes_per_s"] == pytest.approx(13e6)
    assert made["brokers_by"]["replication"] == 3
    assert {"what", "arithmetic", "result"} == set(made["lines"][0])


def test_a_rule_of_thumb_is_another_where_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(["plan", "--throughput", "50MB/s", "--assume", "partition_bytes_per_s=1MB/s", "-o", "json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["partitions"] == 72
    assert run(["plan", "--assume", "list"]) == 0
    assert "disk_used_at_most" in capsys.readouterr().out
    assert run(["plan", "--throughput", "50MB/s", "--assume", "nope=1"]) == 1


@pytest.mark.parametrize(
    "words", [["--throughput", "much"], ["--throughput", "1MB/s", "--retention", "long"]]
)
def test_a_figure_that_cannot_be_read_is_one_line(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", *words]) == 1
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_without_a_throughput_it_is_said_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan"]) == 2
    assert "--from-cluster" in capsys.readouterr().err


def test_a_running_cluster_is_measured_and_checked(
    cluster: PenstockCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    create_topic(cluster.bootstrap, "busy", partitions=2)
    ends = threading.Event()

    def goes_on() -> None:
        while not ends.is_set():
            write(cluster.bootstrap, "busy", 500, size=1000)

    writing = threading.Thread(target=goes_on)
    writing.start()
    try:
        asked = ["plan", "-b", cluster.bootstrap, "--measure", "2", "-o", "json"]
        assert run([*asked, "--from-cluster"]) == 0
        made = json.loads(capsys.readouterr().out)
        assert run([*asked, "--check", "--assume", "partition_bytes_per_s=1"]) == 1
        found = json.loads(capsys.readouterr().out)
    finally:
        ends.set()
        writing.join()
    assert made["wanted"]["bytes_per_s"] > 1000
    assert 900 < made["wanted"]["record_bytes"] < 1500
    assert made["brokers"] >= 3
    assert made["wanted"]["broker_disk_bytes"] > 0
    assert "a partition of busy gets more than 1 B/s" in [one["title"] for one in found]
