"""The pages about Connect: their files are written, their workers started, their commands typed, in their order, and they show
what the pages say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.connect import common_settings
from penstock.connect.running.options import OWN_OPTIONS, WITHOUT_EFFECT
from penstock.testing.penstock_broker import PenstockBroker
from penstock.web.options import WEB_OPTIONS
from tests.docs.pages import HOW_TO, ROOT
from tests.web.services import WebProcess

PAGE = HOW_TO / "connect.md"
WRITING_PAGE = HOW_TO / "write-a-connector.md"
WORKER = "localhost:8083"
DEADLINE_S = 100.0
LOOKS = (
    "cat ",
    "bin/penstock connectors list",
    "bin/penstock connectors status",
    "bin/penstock connectors offsets show",
    "bin/penstock consume",
    "bin/kafka-console-consumer",
)
"""Commands that change nothing: what they show comes about in a while."""
pytestmark = pytest.mark.timeout(300)


class Step(NamedTuple):
    kind: str
    title: str
    text: str


def steps(page: str) -> list[Step]:
    fences = re.findall(r'^```([\w-]+)(?: title="([^"]*)")?\n(.*?)^```\n', page, re.DOTALL | re.MULTILINE)
    return [Step(*fence) for fence in fences]


class Reader:
    """Who does what the page says, in an empty folder."""

    def __init__(self, folder: Path, broker: PenstockBroker) -> None:
        self._folder, self._broker = folder, broker
        self._worker: WebProcess | None = None
        self._count = 0
        (folder / "plugins").mkdir()

    def does(self, step: Step) -> None:
        if step.title:
            text = step.text.replace("localhost:9092", self._broker.bootstrap)
            (self._folder / step.title).write_text(text)
        elif step.kind == "sh":
            self._starts(step.text.partition("#")[0])
        elif step.kind == "console":
            for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", step.text, re.MULTILINE):
                self._types(command, tidied(shown))

    def _starts(self, command: str) -> None:
        self.close()
        self._count += 1
        words = command.replace("bin/penstock", f"{ROOT}/bin/penstock").split()
        # Names of files on the page are those of the folder.
        line = f"cd {self._folder} && exec {' '.join(words)} --host 127.0.0.1 --port 0"
        self._worker = WebProcess(["sh", "-c", line], self._folder / f"worker-{self._count}.log")

    def _types(self, command: str, expected: str) -> None:
        deadline_s = time.monotonic() + DEADLINE_S
        may_wait = command.startswith(LOOKS) or (command.startswith("curl -s http") and "-X" not in command)
        while (shown := self._shown(command)) != expected:
            assert may_wait, f"{command}\n{shown}"
            assert time.monotonic() < deadline_s, f"{command}\n{shown}"

    def _shown(self, command: str) -> str:
        assert self._worker is not None
        port = str(self._worker.port)
        text = command.replace("bin/", f"{ROOT}/bin/").replace("localhost:9092", self._broker.bootstrap)
        environment = {
            **os.environ, "PENSTOCK_CONNECT": self._worker.url, "PENSTOCK_BOOTSTRAP": self._broker.bootstrap, "COLUMNS": "120",
        }  # fmt: skip
        done = subprocess.run(
            ["timeout", str(int(DEADLINE_S)), "sh", "-c", text.replace("localhost:8083", f"127.0.0.1:{port}")],
            capture_output=True, text=True, check=False, cwd=self._folder, env=environment,
        )  # fmt: skip
        failed = f"exit code {done.returncode}\n" if done.returncode else ""
        return tidied((failed + done.stdout + done.stderr).replace(f"127.0.0.1:{port}", "127.0.0.1:8083"))

    def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            assert worker.close() == 0
            assert "Traceback" not in worker.log


def tidied(shown: str) -> str:
    return "\n".join(line.rstrip() for line in shown.strip("\n").splitlines())


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    options = {"group.initial.rebalance.delay.ms": "0"}
    with PenstockBroker(tmp_path / "broker", options=options) as broker:
        folder = tmp_path / "folder"
        folder.mkdir()
        found = Reader(folder, broker)
        try:
            yield found
        finally:
            found.close()


@pytest.mark.parametrize("page", [PAGE, WRITING_PAGE], ids=lambda page: page.stem)
def test_what_the_page_shows_is_what_a_reader_sees(reader: Reader, page: Path) -> None:
    found = steps(page.read_text())
    assert len(found) > 5
    for step in found:
        reader.does(step)


def test_the_tests_of_the_page_about_writing_pass(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    for step in steps(WRITING_PAGE.read_text()):
        if step.kind == "python":
            (tmp_path / step.title).write_text(step.text)
    words = ["-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "plugins")},
    )  # fmt: skip
    assert "4 passed" in done.stdout, done.stdout + done.stderr


def test_thirty_lines_are_enough_for_a_connector() -> None:
    programs = {step.title: step.text for step in steps(WRITING_PAGE.read_text())}
    for title in ("plugins/numbers_source.py", "plugins/lines_sink.py"):
        lines = [line for line in programs[title].splitlines() if line.strip()]
        assert len(lines) <= 30, title


def test_the_properties_of_the_page_are_there() -> None:
    known = {option.name for option in (*OWN_OPTIONS, *WEB_OPTIONS)}
    for kind in ("source", "sink"):
        known |= {setting.name for setting in common_settings.settings_of(kind)}
    named = set(
        re.findall(
            r"`((?:errors|exactly|transaction|config|plugin|penstock|offset)\.[a-z_.]+)(?:=[^`]*)?`",
            PAGE.read_text(),
        )
    )
    named.discard("penstock.connect")  # the group of entry points
    assert named
    assert {
        name
        for name in named
        if name not in known and not name.startswith((*WITHOUT_EFFECT, "config.providers."))
    } == set()
