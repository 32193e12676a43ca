"""What is measured beside Apache's Connect: the parts that need neither."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from bench.connect_workers import PLUGINS, Worker, wait_for
from bench.measure import Sample, Scale
from bench.report import markdown, summarise_all
from bench.runner import Results
from bench.servers import CONNECT, KAFKA_CONNECT
from bench.workloads import WORKLOADS
from bench.workloads.connect import FileConnectors, IdleConnectors, KilledWorker, SourceLatency
from penstock.connect.plugins import Plugins
from penstock.testing.processes import ProcessFailed, start_process

OURS = (FileConnectors, SourceLatency, IdleConnectors, KilledWorker)


def test_the_workloads_are_in_the_table() -> None:
    found = [workload for workload in WORKLOADS if isinstance(workload, OURS)]
    assert len(found) == len(OURS)
    results = Results()
    for workload in found:
        for name, value in ((KAFKA_CONNECT, 4.0), (CONNECT, 2.0)):
            results.add(workload.name, name, Sample({row.key: value for row in workload.rows}))
    lines = summarise_all(found, results, "today")
    text = markdown(lines, {}, results, Scale(quick=False))
    assert "## Connect\n" in text
    assert "| file to topic, records/s | 4.00 | 2.00 | 0.50 × | ≥ 1 × | **no** |" in text
    assert "| 50 idle connectors, MB | 4.00 | 2.00 | 0.50 × | ≤ 1500 MB (value) | yes |" in text


def test_the_paced_source_is_found_by_its_name_in_either_worker() -> None:
    found: Any = Plugins([str(PLUGINS)]).load("PacedSourceConnector", "source")
    connector = found()
    connector.configure({"topic": "t", "rate": "1000"})
    task = connector.task_class()
    task.configure(connector.task_configs(1)[0])
    task.start()
    records = [record for _ in range(20) for record in task.poll()]
    assert {len(record.value) for record in records} == {100}
    assert [int(record.key) for record in records] == list(range(len(records)))


class Told(Worker):
    def ask(self, method: str, path: str, body: Any = None) -> Any:
        def told(*states: str) -> dict[str, Any]:
            connector, *tasks = [
                {"state": state, "worker_id": f"w{number}"} for number, state in enumerate(states)
            ]
            return {"status": {"connector": connector, "tasks": tasks}}

        return {"a": told("RUNNING", "RUNNING"), "b": told("RUNNING"), "c": told("RUNNING", "FAILED")}


@pytest.fixture
def worker(tmp_path: Path) -> Told:
    return Told(start_process([sys.executable, "-c", "pass"], name="a worker", log_path=tmp_path / "log"), 1)


def test_a_connector_runs_when_its_tasks_do(worker: Told) -> None:
    assert worker.running() == {"a": {"w0", "w1"}}


def test_a_worker_that_ends_is_not_waited_for(worker: Told) -> None:
    worker.process.wait(timeout_s=10)
    with pytest.raises(ProcessFailed, match="what it waits for: 'not yet'"):
        wait_for(lambda: False, "what it waits for", worker)
