"""`penstock connectors`, against a standalone worker."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.connect.workers import STRINGS, Worker, until

TIMEOUT_S = 60


@pytest.fixture(scope="module")
def worker(broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    directory = tmp_path_factory.mktemp("standalone")
    properties = {
        "bootstrap.servers": broker.bootstrap,
        "listeners": "http://127.0.0.1:0",
        "key.converter": STRINGS,
        "value.converter": STRINGS,
        "offset.storage.file.filename": str(directory / "offsets"),
        "offset.flush.interval.ms": "200",
    }
    running = Worker(directory, properties, kind="standalone")
    yield running
    running.close()


def connectors(worker: Worker, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "penstock", "connectors", *words, "-u", worker.url]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S)


def test_a_connector_is_made_watched_moved_and_deleted(
    worker: Worker, tmp_path: Path, topic_name: str
) -> None:
    assert "there are no connectors" in connectors(worker, "list").stderr
    lines = tmp_path / "lines.txt"
    lines.write_text("one\n")
    words = ["create", "lines", "--class", "FileStreamSource", "--set", f"file={lines}", "--ask"]
    made = connectors(worker, *words, stdin=f"{topic_name}\n")
    assert made.returncode == 0, made.stderr
    assert "topic (string): The topic that the lines go to." in made.stderr, (
        "it is asked for, with what it means"
    )
    worker.wait_for("lines", "RUNNING", "RUNNING")
    (listed,) = json.loads(connectors(worker, "list", "-o", "json").stdout)
    assert listed == {
        "name": "lines", "type": "source", "state": "RUNNING", "tasks": ["RUNNING"], "class": "FileStreamSource",
    }  # fmt: skip
    told = connectors(worker, "status", "lines")
    assert told.returncode == 0
    assert "task 0: RUNNING" in told.stdout
    until(lambda: worker.call("GET", "/connectors/lines/offsets")[1]["offsets"], "an offset")
    (offset,) = json.loads(connectors(worker, "offsets", "show", "lines", "-o", "json").stdout)
    assert offset["offset"] == {"position": 4}
    refused = connectors(worker, "offsets", "reset", "lines")
    assert refused.returncode == 1
    assert "must be in the STOPPED state" in refused.stderr
    assert connectors(worker, "alter", "lines", "batch.size=5").returncode == 0
    assert json.loads(connectors(worker, "config", "lines", "-o", "json").stdout)["batch.size"] == "5"
    for word in ("pause", "resume", "restart", "stop"):
        done = connectors(worker, word, "lines")
        assert done.returncode == 0, done.stderr
    worker.wait_for("lines", "STOPPED")
    place = json.dumps({"filename": str(lines)})
    moved = connectors(
        worker, "offsets", "alter", "lines", "--partition", place, "--offset", '{"position": 0}'
    )
    assert "altered successfully" in moved.stderr
    assert "reset successfully" in connectors(worker, "offsets", "reset", "lines").stderr
    assert connectors(worker, "delete", "lines").returncode == 0
    gone = connectors(worker, "status", "lines")
    assert (gone.returncode, gone.stderr) == (1, "penstock: No status found for connector lines\n")


def test_a_failure_is_shown_with_its_trace(worker: Worker, topic_name: str, tmp_path: Path) -> None:
    out = tmp_path / "no" / "out.txt"
    worker.create("broken", {"connector.class": "FileStreamSink", "file": str(out), "topics": topic_name})
    until(lambda: worker.states("broken")[1] == ["FAILED"], "its failure")
    told = connectors(worker, "status", "broken")
    assert told.returncode == 1
    assert f"the file {out} cannot be written" in told.stdout
    assert "Traceback" in told.stdout
    worker.call("DELETE", "/connectors/broken")


def test_a_file_is_checked_before_it_is_sent(worker: Worker, tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text(
        json.dumps(
            {"name": "x", "config": {"connector.class": "FileStreamSource", "fil": "a", "tasks.max": "0"}}
        )
    )
    checked = connectors(worker, "validate", str(file))
    assert checked.returncode == 1
    assert 'topic: Missing required configuration "topic"' in checked.stdout
    assert "tasks.max: Invalid value 0" in checked.stdout
    assert "fil: the connector does not know it (did you mean file?)" in checked.stdout
    good = tmp_path / "good.properties"
    good.write_text("name=x\nconnector.class=FileStreamSource\ntopic=t\n")
    assert connectors(worker, "validate", str(good)).returncode == 0
    assert "FileStreamSinkConnector" in connectors(worker, "plugins").stdout


def test_no_worker_is_told_in_a_line() -> None:
    command = [sys.executable, "-m", "penstock", "connectors", "list", "-u", "http://127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 1
    assert done.stderr.startswith("penstock: no Connect worker answers at http://127.0.0.1:1")
