"""The logs of connectors, asked of a worker: what tasks wrote, in threads and in processes of their own; and tasks that hang."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.connect.workers import STRINGS, Worker, closing, group_properties, until, write_properties

PLUGIN = """
import logging
import os
import threading
import time

from penstock.connect import Kind, Setting, Settings, SourceConnector, SourceTask


class TalkativeTask(SourceTask):
    def start(self):
        self.polls = 0
        self.log.info("task %d begins in process %d with %s", self.context.task, os.getpid(), self.given["password"])
        threading.Thread(target=lambda: self.log.warning("another thread of task %d", self.context.task)).start()
        for number in range(int(self.given.get("floods", 0))):
            self.log.info("flood %d", number)

    def poll(self):
        self.polls += 1
        if self.polls == 2:
            try:
                raise ValueError("of the second poll")
            except ValueError:
                self.log.exception("it went wrong")
        if os.path.exists(self.given["hangs"]):
            self.log.info("it hangs")
        while os.path.exists(self.given["hangs"]):
            time.sleep(0.02)
        self.context.wait(0.02)


class Talkative(SourceConnector):
    task_class = TalkativeTask
    settings = Settings(
        Setting("password", Kind.PASSWORD, "A secret."), Setting("hangs", Kind.STRING, "While this file is there.")
    )

    def start(self):
        logging.getLogger("penstock.connect.talkative").info("the connector begins")

    def task_configs(self, max_tasks):
        return [dict(self.given) for _ in range(max_tasks)]
"""


def talkative(tmp_path: Path, **more: str) -> dict[str, str]:
    return {
        "connector.class": "Talkative",
        "tasks.max": "2",
        "password": f"${{file:{tmp_path / 'secrets'}:password}}",
        "hangs": str(tmp_path / "hang"),
        **more,
    }


def prepared(tmp_path: Path) -> dict[str, str]:
    """The plugin, the file with the secret, and what a worker must know of them."""
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "talkative_plugin.py").write_text(PLUGIN)
    write_properties(tmp_path / "secrets", {"password": "s3cret-word"})
    return {
        "plugin.path": str(plugins),
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "task.shutdown.graceful.timeout.ms": "1000",
    }


def worker_of(broker: PenstockBroker, tmp_path: Path, kind: str) -> Worker:
    known = prepared(tmp_path)
    if kind == "distributed":
        return Worker(tmp_path, {**group_properties(broker.bootstrap), **known})
    alone = {
        "bootstrap.servers": broker.bootstrap,
        "listeners": "http://127.0.0.1:0",
        "key.converter": STRINGS,
        "value.converter": STRINGS,
        "offset.storage.file.filename": str(tmp_path / "offsets"),
    }
    return Worker(tmp_path, {**alone, **known}, kind="standalone")


def logs(worker: Worker, name: str, query: str = "") -> dict[str, Any]:
    status, found = worker.call("GET", f"/connectors/{name}/logs{query}")
    assert status == 200, found
    return dict(found)


def said(worker: Worker, name: str, text: str) -> Mapping[str, Any] | None:
    lines = logs(worker, name, "?lines=1000")["lines"]
    return next((line for line in lines if text in line["text"]), None)


@pytest.mark.parametrize("kind", ["standalone", "distributed"])
def test_what_tasks_write_is_asked_of_the_worker(broker: PenstockBroker, tmp_path: Path, kind: str) -> None:
    worker = worker_of(broker, tmp_path, kind)
    with closing(worker):
        worker.create("talks", talkative(tmp_path))
        worker.wait_for("talks", "RUNNING", "RUNNING", "RUNNING")
        for text, task, level in (
            ("task 1 begins in process", 1, "INFO"),
            ("another thread of task 0", 0, "WARNING"),
            ("ValueError: of the second poll", 1, "ERROR"),
            ("the connector begins", None, "INFO"),
        ):
            found = until(lambda text=text, task=task: any(  # type: ignore[misc]
                text in line["text"] and line["task"] == task for line in logs(worker, "talks")["lines"]), text)  # fmt: skip
            assert found
            line = said(worker, "talks", text)
            assert line is not None
            assert line["level"] == level
        everything = json.dumps(logs(worker, "talks", "?lines=1000"))
        assert "s3cret" not in everything
        numbers = [line["number"] for line in logs(worker, "talks", "?lines=1000")["lines"]]
        assert numbers == sorted(set(numbers)), "nothing is told twice"
        assert {line["task"] for line in logs(worker, "talks", "?task=1")["lines"]} == {1}
        assert len(logs(worker, "talks", "?lines=1")["lines"]) == 1
        last = logs(worker, "talks")["last"]
        assert logs(worker, "talks", f"?after={last}")["lines"] == []
        assert worker.call("GET", "/connectors/nope/logs")[0] == 404


def test_a_flood_is_bounded_and_what_is_left_out_is_counted(broker: PenstockBroker, tmp_path: Path) -> None:
    worker = worker_of(broker, tmp_path, "distributed")
    with closing(worker):
        worker.create("floods", talkative(tmp_path, floods="50000"))
        line = until(lambda: said(worker, "floods", "lines are left out here"), "that some are left out")
        assert int(line["text"].split()[0]) > 100
        assert len(logs(worker, "floods", "?lines=5000")["lines"]) <= 1000


def test_the_command_shows_them_also_of_a_worker_that_does_not_lead(
    broker: PenstockBroker, tmp_path: Path
) -> None:
    known = {**group_properties(broker.bootstrap), **prepared(tmp_path)}
    first = Worker(tmp_path, known, name="first")
    until(lambda: first.leads, "leading")
    second = Worker(tmp_path, known, name="second")
    with closing(first, second):
        until(lambda: second.call("GET", "/connectors")[0] == 200, "the second")
        first.create("talks", talkative(tmp_path))
        until(lambda: said(first, "talks", "of the second poll"), "the failure")
        words = ["connectors", "logs", "talks", "-u", second.url]
        command = [sys.executable, "-m", "penstock", *words]
        shown = subprocess.run([*command, "-n", "500"], capture_output=True, text=True, timeout=60)
        assert shown.returncode == 0, shown.stderr
        assert "INFO task 0: task 0 begins in process" in shown.stdout
        assert "INFO connector: the connector begins" in shown.stdout
        last = logs(first, "talks")["last"]
        following = subprocess.Popen(
            [*command, "-f", "-n", "500", "-o", "json"], stdout=subprocess.PIPE, text=True
        )
        try:
            assert following.stdout is not None
            assert json.loads(following.stdout.readline())["number"] <= last
            assert first.call("POST", "/connectors/talks/tasks/1/restart")[0] == 204
            numbers = [json.loads(following.stdout.readline())["number"]]
            while numbers[-1] <= last:
                numbers.append(json.loads(following.stdout.readline())["number"])
            assert numbers == sorted(set(numbers))
        finally:
            following.kill()
            following.wait()
            assert following.stdout is not None
            following.stdout.close()
        gone = subprocess.run(
            [*command[:-3], "nope", "-u", second.url], capture_output=True, text=True, timeout=60
        )
        assert gone.returncode == 1
        assert "nope" in gone.stderr


@pytest.mark.parametrize("kind", ["standalone", "distributed"])
def test_a_task_that_hangs_is_ended_by_restart(broker: PenstockBroker, tmp_path: Path, kind: str) -> None:
    worker = worker_of(broker, tmp_path, kind)
    with closing(worker):
        worker.create("hangs", talkative(tmp_path, **{"tasks.max": "1"}))
        worker.wait_for("hangs", "RUNNING", "RUNNING")
        until(lambda: said(worker, "hangs", "of the second poll"), "its second poll")
        (tmp_path / "hang").write_text("")
        until(lambda: said(worker, "hangs", "it hangs"), "that it hangs")

        def begun() -> int:
            lines = logs(worker, "hangs", "?lines=1000")["lines"]
            return sum("task 0 begins in process" in line["text"] for line in lines)

        before = begun()
        assert worker.call("POST", "/connectors/hangs/tasks/0/restart")[0] == 204
        until(lambda: begun() > before, "a new life")
        assert said(worker, "hangs", "does not come back, and is ended")
        (tmp_path / "hang").unlink()
        worker.wait_for("hangs", "RUNNING", "RUNNING")
