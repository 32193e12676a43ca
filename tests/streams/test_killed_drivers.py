"""The driver of a running plan is killed while input flows; another begins where it was. Nothing is lost or comes twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.streams import driver_program
from tests.streams.topics import Reader, put, until

KEYS = 20
Start = Callable[..., tuple[subprocess.Popen[str], list[int]]]


@pytest.fixture
def start_driver(broker: PenstockBroker) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []
    tasks: list[int] = []

    def start(source: str, sink: str, launcher: str) -> tuple[subprocess.Popen[str], list[int]]:
        command = [
            sys.executable,
            "-m",
            driver_program.__name__,
            broker.bootstrap,
            source,
            sink,
            f"app-{sink}",
            launcher,
        ]
        started.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
        )
        output = started[-1].stdout
        assert output is not None
        first, *process_ids = output.readline().split()
        assert first == "running"
        tasks.extend(int(each) for each in process_ids)
        return started[-1], tasks[-len(process_ids) :]

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    until(lambda: not any(map(is_there, tasks)), "a task has outlived its driver")


def is_there(process_id: int) -> bool:
    """A process that nobody has waited for is not there any more."""
    try:
        return ") Z " not in Path(f"/proc/{process_id}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("launcher", ["processes", "spark"])
def test_a_killed_driver_loses_and_repeats_nothing(
    broker: PenstockBroker, make_topic: MakeTopic, start_driver: Start, launcher: str
) -> None:
    source, sink = make_topic(partitions=2), make_topic(partitions=2)
    total = 0

    def feed() -> None:
        nonlocal total
        clicks = [(f"k{n % KEYS}", {"PAGE": "p", "N": 1}, 1000 + n) for n in range(2000)]
        put(broker.bootstrap, source, clicks)
        total += len(clicks)

    with Reader(broker.bootstrap, sink, 2) as reader:
        driver, process_ids = start_driver(source, sink, launcher)
        feed()
        until(lambda: len(reader.look()) > 0)
        feed()
        driver.kill()
        driver.wait()
        start_driver(source, sink, launcher)
        until(lambda: not any(map(is_there, process_ids)), "a task has outlived its driver")
        feed()
        found = reader.wait_until(lambda records: len(records) >= total)
    assert {key: value["N"] for key, value, _ in found} == {f"k{n}": total // KEYS for n in range(KEYS)}
    assert len(found) == total
    assert os.getpid() not in process_ids
