"""Runs shop_program.py, in this process or as a driver of its own."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.spark.conftest import produce

PROGRAM = Path(__file__).with_name("shop_program.py")
RUN_TIMEOUT_S = 400
TEST_TIMEOUT_S = 500
ORDERS = 6


class Place(NamedTuple):
    """Where a Python function of the program ran."""

    prefix: Path
    package: Path
    library: Path
    compiled_walks: int


class Shop:
    """A topic with orders, and the program over it, which writes to a topic of its own each time."""

    def __init__(self, broker: PenstockBroker, make_topic: MakeTopic, directory: Path) -> None:
        self._broker = broker
        self._make_topic = make_topic
        self._directory = directory
        self._orders = make_topic(partitions=2)
        records = [{"value": f"order {n}", "key": f"k{n}", "partition": n % 2} for n in range(ORDERS)]
        produce(broker.bootstrap, self._orders, records)

    def run(self, master: str, ship: str = "as-usual", *, python: Path | None = None) -> tuple[str, Place]:
        done = self.attempt(master, ship, python=python)
        assert done.returncode == 0, done.stderr
        return _result(done.stdout)

    def attempt(
        self, master: str, ship: str, *, python: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
        if python is not None:
            environment["PYSPARK_PYTHON"] = str(python)
        return subprocess.run(
            [sys.executable, *self._words(master, ship)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )

    def run_here(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> tuple[str, Place]:
        """In the session that this process has."""
        monkeypatch.setattr(sys, "argv", self._words("local[2]", "as-usual"))
        runpy.run_path(str(PROGRAM), run_name="__main__")
        return _result(capsys.readouterr().out)

    def _words(self, master: str, ship: str) -> list[str]:
        out = self._make_topic()
        checkpoint = self._directory / out
        return [str(PROGRAM), master, ship, self._broker.bootstrap, self._orders, out, str(checkpoint)]


def _result(output: str) -> tuple[str, Place]:
    printed, where = output.splitlines()[-2:]
    prefix, package, library, compiled_walks = json.loads(where)
    return printed, Place(Path(prefix), Path(package), Path(library), compiled_walks)
