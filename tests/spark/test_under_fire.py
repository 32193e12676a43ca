"""Things die, one after the other, in the middle of batches: whoever reads committed rows sees each of them once.

Twenty deaths take three minutes; a usual run draws six of them, PENSTOCK_FIRE_EVENTS=20 has all. Their order, and where in a
batch they come, is drawn from a seed that is printed; PENSTOCK_FIRE_SEED=… draws the same again.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import ProcessFailed, RunningProcess
from tests.clients.admin import create_topic
from tests.conftest import StartBroker
from tests.spark.under_fire import (
    DEADLINE_S,
    Feeder,
    Output,
    by_key,
    kill_driver,
    kill_worker,
    start_driver,
    until,
)

SEED = int(os.environ.get("PENSTOCK_FIRE_SEED", random.SystemRandom().randrange(1_000_000)))
EVENTS = {"driver": 3, "driver and its JVM": 3, "worker": 7, "broker": 4, "broker, in order": 3}
EVENTS_DRAWN = int(os.environ.get("PENSTOCK_FIRE_EVENTS", "6"))
LONGEST_BATCH_S = 0.6
FAILURES_MAX = 5  # of queries, without anybody's doing
ENDS_OF_TRANSACTIONS = (
    10  # what a broker or a new driver may write for those that were left open: no progress yet
)


class Scene:
    """A broker, a driver with two queries, and what chance does to them."""

    def __init__(self, start_broker: StartBroker, directory: Path) -> None:
        self._start_broker = start_broker
        self._directory = directory / "queries"
        self._directory.mkdir()
        self._chance = random.Random(SEED)
        self._broker: PenstockBroker = start_broker("broker")
        self.bootstrap = self._broker.bootstrap
        self._topics = ("fed", "copy", "shuffled")
        for topic, partitions in zip(self._topics, (3, 1, 1), strict=True):
            create_topic(self.bootstrap, topic, partitions=partitions)
        self.outputs = [Output(self.bootstrap, topic) for topic in self._topics[1:]]
        self._driver: RunningProcess = self._new_driver()
        self._failures = 0

    def _new_driver(self) -> RunningProcess:
        return start_driver(self.bootstrap, self._topics, self._directory)

    def _start_again(self, failure: ProcessFailed) -> None:
        """Spark ends a query for reasons of its own now and then, such as a task that it serialised while another query
        changed what is in it. Whoever runs a query starts it again, and each row is to be there once all the same."""
        self._failures += 1
        if self._driver.is_running or self._failures > FAILURES_MAX:
            raise failure
        print(f"{time.monotonic():.3f} {failure}", flush=True)
        self._driver = self._new_driver()

    def _until(self, reached: Callable[[], bool], what: str) -> None:
        try:
            until(reached, what, self._driver)
        except ProcessFailed as failure:
            self._start_again(failure)
            self._until(reached, what)

    def wait_for_a_moment_in_a_batch(self) -> None:
        for output in self.outputs:
            self._until(output.answers, "an answer of the broker")
        begun = [output.end_offset() + ENDS_OF_TRANSACTIONS for output in self.outputs]
        self._until(
            lambda: all(output.end_offset() > end for output, end in zip(self.outputs, begun, strict=True)),
            "progress of both queries",
        )
        time.sleep(self._chance.uniform(0, LONGEST_BATCH_S))  # this is the point that chance decides

    def bring(self, event: str) -> None:
        if event == "worker":
            try:
                kill_worker(self._driver, self._chance.choice)
            except ProcessFailed as failure:
                self._start_again(failure)
        elif event.startswith("driver"):
            kill_driver(self._driver, with_its_jvm="JVM" in event)
            self._driver = self._new_driver()
        else:
            if event == "broker":
                self._broker.kill()
            else:
                self._broker.stop()
            self._broker = self._start_broker("broker", port=self._broker.port)

    def finish(self) -> None:
        """Everything is fed: the driver ends by itself when everything is copied."""
        (self._directory / "everything-is-fed").touch()
        while (code := self._driver.wait(timeout_s=DEADLINE_S)) != 0:
            self._start_again(self._driver.failure(f"ended with {code}"))
        for output in self.outputs:
            output.close()


@pytest.mark.timeout(1500)
def test_each_row_is_there_once_and_in_order_whatever_dies(start_broker: StartBroker, tmp_path: Path) -> None:
    print(f"PENSTOCK_FIRE_SEED={SEED}")
    events = [event for event, times in EVENTS.items() for _ in range(times)]
    random.Random(SEED).shuffle(events)
    scene = Scene(start_broker, tmp_path)
    feeder = Feeder(scene.bootstrap, "fed", scene.outputs)
    feeder.start()
    for event in events[:EVENTS_DRAWN]:
        scene.wait_for_a_moment_in_a_batch()
        print(f"{time.monotonic():.3f} {event}", flush=True)
        scene.bring(event)
    fed = feeder.finish()
    scene.finish()
    for output in scene.outputs:
        written = output.committed()
        assert sorted(value for _, value in written) == [value for _, value in fed]
        assert by_key(written) == by_key(fed)
