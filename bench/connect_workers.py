"""Workers of Connect in front of the broker of a round: Apache's and ours, started as users start them."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.context import ROOT, Context
from bench.servers import KAFKA_CONNECT
from penstock.testing.processes import ProcessFailed, RunningProcess, free_port, start_process
from simulation.apache.java import java_command, libs_directory

HOST = "127.0.0.1"
TIMEOUT_S = 120.0
RETRY_S = 0.05
COMPILE_TIMEOUT_S = 120
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
STANDALONE, DISTRIBUTED = "standalone", "distributed"
MAINS = {STANDALONE: "ConnectStandalone", DISTRIBUTED: "ConnectDistributed"}
HEAP = ("-Xms256M", "-Xmx2G")  # of Apache's scripts
SOURCE = ROOT / "bench" / "java" / "PacedSourceConnector.java"
PLUGINS = ROOT / "bench" / "connect_plugins"
PROCESSES = "none"  # penstock.connect.master: tasks are processes, and not Spark's


@dataclass(frozen=True)
class Worker:
    process: RunningProcess
    port: int

    @property
    def pid(self) -> int:
        return self.process.pid

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """JSON; None for an empty answer."""
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://{HOST}:{self.port}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def start(self, name: str, config: Mapping[str, str]) -> None:
        """Workers that just find together refuse for a moment."""
        wait_for(
            lambda: self.ask("PUT", f"/connectors/{name}/config", config) or True,
            f"the connector {name}",
            self,
        )

    def stop(self, name: str) -> None:
        self.ask("DELETE", f"/connectors/{name}")

    def running(self) -> dict[str, set[str]]:
        """Connectors that run with all of their tasks: on which workers."""
        found = {}
        for name, one in self.ask("GET", "/connectors?expand=status").items():
            parts = [one["status"]["connector"], *one["status"]["tasks"]]
            if len(parts) > 1 and {part["state"] for part in parts} == {"RUNNING"}:
                found[name] = {part["worker_id"] for part in parts}
        return found

    def leads(self) -> bool:
        """Of ours."""
        with urllib.request.urlopen(f"http://{HOST}:{self.port}/metrics", timeout=TIMEOUT_S) as answer:
            return b"penstock_connect_leader 1.0" in answer.read()


def wait_for(condition: Any, what: str, worker: Worker) -> Any:
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        error: object = "not yet"
        try:
            if found := condition():
                return found
        except (OSError, KeyError, ValueError) as refused:
            error = refused.read() if isinstance(refused, urllib.error.HTTPError) else refused
        if not worker.process.is_running or time.monotonic() > deadline:
            raise worker.process.failure(f"{what}: {error!r}")
        time.sleep(RETRY_S)


@contextmanager
def workers(
    context: Context,
    kind: str,
    *,
    count: int = 1,
    master: str = "local",
    group: str = "bench",
    plugins: Path | None = None,
) -> Iterator[Sequence[Worker]]:
    """They answer; those of a group may not have found together yet. `master`: where tasks of ours run."""
    with context.fresh_directory() as directory:
        started: list[Worker] = []
        try:
            for number in range(count):
                started.append(_start(context, kind, directory, number, master, group, plugins))
            for worker in started:
                # The answer to /health comes when it can be asked.
                wait_for(lambda worker=worker: worker.ask("GET", "/health"), "a worker", worker)
            yield started
        finally:
            for worker in started:
                worker.process.stop(timeout_s=TIMEOUT_S)


def _start(
    context: Context,
    kind: str,
    directory: Path,
    number: int,
    master: str,
    group: str,
    plugins: Path | None,
) -> Worker:
    port = free_port()
    is_apache = context.kind.name == KAFKA_CONNECT
    properties = {
        "bootstrap.servers": context.server().bootstrap,
        "listeners": f"http://{HOST}:{port}",
        "key.converter": STRINGS,
        "value.converter": STRINGS,
    }
    if kind == STANDALONE:
        properties["offset.storage.file.filename"] = str(directory / "offsets")
    else:
        properties |= {
            "group.id": group,
            **{f"{each}.storage.topic": f"{group}-{each}" for each in ("config", "offset", "status")},
            **{f"{each}.storage.replication.factor": "1" for each in ("config", "offset", "status")},
        }
    if is_apache:
        # By default connectors of a worker that dies wait for five minutes.
        properties["scheduled.rebalance.max.delay.ms"] = "0"
        if plugins is not None:
            properties["plugin.path"] = str(plugins)
    else:
        properties["plugin.path"] = str(plugins or PLUGINS)
    file = directory / f"worker-{number}.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    if is_apache:
        main = f"org.apache.kafka.connect.cli.{MAINS[kind]}"
        command = java_command(main, str(file), jvm_options=HEAP, more_jars=[compiled(directory)])
    else:
        command = [sys.executable, "-m", "penstock", "connect", kind, str(file)]
        if kind == DISTRIBUTED:
            command += ["--master", master]
    label = "Apache's worker" if is_apache else "Penstock's worker"
    return Worker(start_process(command, name=label, log_path=directory / f"worker-{number}.log"), port)


def compiled(directory: Path) -> Path:
    """The folder with the classes of the paced source."""
    classes = directory / "classes"
    if not classes.exists():
        command = ["javac", "-cp", f"{libs_directory()}{os.sep}*", "-d", str(classes), str(SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False)
        if done.returncode:
            raise ProcessFailed(f"javac: {done.stderr}")
    return classes
