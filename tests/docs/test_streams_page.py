"""The page about streams: every program on it runs, its test passes, and its first program runs against a broker."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.spark.tasks import JobState, ThreadLauncher
from penstock.testing.penstock_broker import PenstockBroker
from tests.cli.conftest import run_command
from tests.conftest import MakeTopic
from tests.docs.pages import HOW_TO, blocks
from tests.streams.topics import put, until

PAGE = HOW_TO / "streams.md"
TITLED = re.compile(r"^```python title=\"(.*?)\"\n(.*?)^```", re.DOTALL | re.MULTILINE)
TIMEOUT_S = 120
PROGRAMS = blocks(PAGE.read_text(), "python")


def python(directory: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", *words],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def titled() -> dict[str, str]:
    return dict(TITLED.findall(PAGE.read_text()))


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_a_program_of_the_page_runs(tmp_path: Path, program: str) -> None:
    assert "with app.test() as test:" in program
    python(tmp_path, "-c", program)


def test_the_test_of_the_page_passes(tmp_path: Path) -> None:
    for name, text in titled().items():
        (tmp_path / name).write_text(text)
    assert "1 passed" in python(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def test_the_first_program_runs_against_a_broker(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    """In the process of the test: on Spark it is run in tests/streams. The command of the page plans to reset it."""
    clicks, visits = make_topic(), make_topic()
    text = titled()["visits.py"].replace('"localhost:9092"', repr(broker.bootstrap))
    text = text.replace('"clicks"', repr(clicks)).replace('.to("visits")', f".to({visits!r})")
    names: dict[str, Any] = {"__name__": "visits"}
    exec(compile(text, "visits.py", "exec"), names)
    app = names["app"]
    now_ms = int(time.time() * 1000)
    put(
        broker.bootstrap,
        clicks,
        [("ann", {"page": "Home", "ms": 250}, now_ms), ("bob", {"page": "x", "ms": 1}, now_ms)],
    )
    query = app.start(launcher=ThreadLauncher())
    try:
        assert query.wait_until_running(TIMEOUT_S) == JobState.RUNNING
        visits_now = app.store("visits")
        until(lambda: [entry.value for entry in visits_now.fetch("home")] == [{"count": 1}])
    finally:
        app.stop()
    (command,) = [
        line
        for block in blocks(PAGE.read_text(), "console")
        for line in block.splitlines()
        if line.startswith("$ bin/kafka-streams-application-reset")
    ]
    words = command.removeprefix("$ bin/").replace("localhost:9092", broker.bootstrap).split()
    done = run_command(*[clicks if word == "clicks" else word for word in words])
    assert f"Topic: {clicks} Partition: 0 Offset: 0" in done.out
    assert "visits-visits-changelog" in done.out
