"""Schema registries and REST proxies in front of the broker of a round: Karapace's and ours, started as users start them."""

import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.context import Context
from bench.servers import KARAPACE
from penstock.testing.processes import ProcessFailed, ProcessUsage, RunningProcess, free_port, start_process

HOST = "127.0.0.1"
READY_TIMEOUT_S = 60.0
ASK_TIMEOUT_S = 30.0
RETRY_INTERVAL_S = 0.005
REGISTRY_TYPE = "application/vnd.schemaregistry.v1+json"
JSON_RECORDS_TYPE = "application/vnd.kafka.json.v2+json"


def check_karapace(folder: Path) -> None:
    """SystemExit where Karapace could not be started from there."""
    if not python_of(folder).exists() or not (folder / "src" / "karapace").is_dir():
        raise SystemExit(
            f"bench: {folder} is no checkout of Karapace with its packages in {folder}/.venv: clone "
            "Aiven-Open/karapace there, then python3.12 -m venv .venv and .venv/bin/pip install ."
        )


def python_of(folder: Path) -> Path:
    return folder / ".venv" / "bin" / "python"


@dataclass(frozen=True)
class Service:
    process: RunningProcess
    port: int

    def usage(self) -> ProcessUsage:
        return self.process.usage()

    def ask(self, method: str, path: str, body: Any = None, content_type: str = REGISTRY_TYPE) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": content_type}
        request = urllib.request.Request(f"http://{HOST}:{self.port}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=ASK_TIMEOUT_S) as answer:
            return json.load(answer)

    def wait_for(self, method: str, path: str, body: Any = None) -> Any:
        """Asks until there is an answer other than an error; a registry without a leader has none for a write."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while True:
            try:
                return self.ask(method, path, body)
            except (OSError, urllib.error.URLError) as error:
                if not self.process.is_running or time.monotonic() > deadline:
                    raise self.process.failure(f"{method} {path}: {error}") from None
            time.sleep(RETRY_INTERVAL_S)


@contextmanager
def registry(context: Context, *, topic: str) -> Iterator[Service]:
    """Whether it can be asked yet, the caller has to see."""
    settings = {"TOPIC_NAME": topic, "GROUP_ID": topic, "KARAPACE_REGISTRY": "true"}
    properties = {"kafkastore.topic": topic, "schema.registry.group.id": topic}
    with _started(context, "registry", "karapace", settings, properties) as service:
        yield service


@contextmanager
def rest_proxy(context: Context) -> Iterator[Service]:
    with _started(context, "rest", "karapace.kafka_rest_apis", {"KARAPACE_REST": "true"}, {}) as service:
        service.wait_for("GET", "/topics")
        yield service


@contextmanager
def _started(
    context: Context, verb: str, module: str, settings: dict[str, str], properties: dict[str, str]
) -> Iterator[Service]:
    bootstrap, port = context.server().bootstrap, free_port()
    with context.fresh_directory() as directory:
        log_path = directory / f"{verb}.log"
        if context.kind.name == KARAPACE:
            folder = context.scale.karapace
            if folder is None:
                raise ProcessFailed("where Karapace is has not been said: --karapace DIR")
            given = {
                "BOOTSTRAP_URI": bootstrap,
                "HOST": HOST,
                "ADVERTISED_HOSTNAME": HOST,
                "PORT": str(port),
                "LOG_LEVEL": "WARNING",
                **settings,
            }
            process = start_process(
                [python_of(folder), "-m", module],
                name=f"Karapace's {verb}",
                log_path=log_path,
                environment={f"KARAPACE_{name}": value for name, value in given.items()}
                | {"PYTHONPATH": os.fspath(folder / "src")},
                working_directory=folder,
            )
        else:
            file = directory / f"{verb}.properties"
            file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
            command = [sys.executable, "-m", "penstock", verb, "-b", bootstrap, "--host", HOST]
            command += ["--port", str(port), "--config", str(file)]
            process = start_process(command, name=f"Penstock's {verb}", log_path=log_path)
        try:
            yield Service(process, port)
        finally:
            process.stop()
