"""The driver of a running plan, or Spark's workers, are killed while input flows; others begin where they were. Nothing is lost
or comes twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.spark.tasks import JobState
from penstock.streams.running.query import RunningQuery
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.spark.conftest import SMALL_JVM
from tests.streams import driver_program, plans
from tests.streams.topics import DEADLINE_S, Reader, put, until

KEYS = 20
KILLS = 4
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


@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # py4j's
def test_workers_of_spark_that_are_killed_at_random_moments_lose_and_repeat_nothing(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    import penstock.spark

    seed = int(os.environ.get("STREAMS_SEED", "1"))
    print(f"STREAMS_SEED={seed}")
    chance = random.Random(seed)
    source, sink = make_topic(partitions=2), make_topic(partitions=2)
    spark = penstock.spark.session("penstock-tests", long_tasks=True, **SMALL_JVM)
    total = 0
    try:
        query = RunningQuery.start(
            plans.counted(source, sink),
            f"app-{sink}",
            bootstrap=broker.bootstrap,
            guarantee="exactly_once_v2",
            parallelism=2,
            spark=spark,
        )
        assert query.wait_until_running(DEADLINE_S) == JobState.RUNNING, query.errors
        with Reader(broker.bootstrap, sink, 2) as reader:
            for _ in range(KILLS):
                clicks = [(f"k{n % KEYS}", {"PAGE": "p", "N": 1}, 1000 + n) for n in range(1000)]
                put(broker.bootstrap, source, clicks)
                seen = total + chance.randrange(len(clicks))
                total += len(clicks)
                until(lambda seen=seen: len(reader.look()) >= seen)
                task = chance.randrange(2)
                victim = query.tasks[task].process_id
                os.kill(victim, signal.SIGKILL)
                until(lambda task=task, victim=victim: query.tasks[task].process_id not in (0, victim))
            found = reader.wait_until(lambda records: len(records) >= total)
            query.stop()
            found = reader.look()
        assert {key: value["N"] for key, value, _ in found} == {f"k{n}": total // KEYS for n in range(KEYS)}
        assert len(found) == total
    finally:
        spark.stop()
