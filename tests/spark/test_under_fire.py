"""Twenty things die, one after the other, in the middle of batches: whoever reads committed rows sees each of them once.

The order of events, and where in a batch they come, is drawn from a seed that is printed;
PENSTOCK_FIRE_SEED=… draws the same again.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import RunningProcess
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
LONGEST_BATCH_S = 0.6
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

    def _new_driver(self) -> RunningProcess:
        return start_driver(self.bootstrap, self._topics, self._directory)

    def wait_for_a_moment_in_a_batch(self) -> None:
        for output in self.outputs:
            until(output.answers, "an answer of the broker", self._driver)
        begun = [output.end_offset() + ENDS_OF_TRANSACTIONS for output in self.outputs]
        until(
            lambda: all(output.end_offset() > end for output, end in zip(self.outputs, begun, strict=True)),
            "progress of both queries",
            self._driver,
        )
        time.sleep(self._chance.uniform(0, LONGEST_BATCH_S))  # this is the point that chance decides

    def bring(self, event: str) -> None:
        if event == "worker":
            kill_worker(self._driver, self._chance.choice)
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
        assert self._driver.wait(timeout_s=DEADLINE_S) == 0, self._driver.log_text()[-3000:]
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
    for event in events:
        scene.wait_for_a_moment_in_a_batch()
        print(f"{time.monotonic():.3f} {event}", flush=True)
        scene.bring(event)
    fed = feeder.finish()
    scene.finish()
    for output in scene.outputs:
        written = output.committed()
        assert sorted(value for _, value in written) == [value for _, value in fed]
        assert by_key(written) == by_key(fed)
